"""Triangle meshes, read without running any code that a file may hold."""

from __future__ import annotations

import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

from cmixup.errors import InputError, format_value
from datasets.common.damaged import naming

MOST_BYTES = 1 << 28  # of a mesh in an archive: no more is unpacked


@dataclass(frozen=True)
class Mesh:
    """The surface of one object, as triangles.

    Args:
        name: how errors and files call it.
        vertices: `(V, 3)` float64, z up.
        faces: `(F, 3)` int64 rows of `vertices`, counted from 0.

    Raises:
        InputError: no faces, arrays of another shape, a vertex that is not finite, a face without its vertices.
    """

    name: str
    vertices: np.ndarray
    faces: np.ndarray

    def __post_init__(self) -> None:
        for label, array in (("vertices", self.vertices), ("faces", self.faces)):
            if array.size and (array.ndim != 2 or array.shape[1] != 3):
                raise InputError(f"{label} of mesh {self.name} must be (N, 3), got shape {array.shape}")
        if not self.faces.size:
            raise InputError(f"mesh {self.name} has no faces")
        if not np.isfinite(self.vertices).all():
            raise InputError(f"vertices of mesh {self.name} have values that are not finite")
        low, high = int(self.faces.min()), int(self.faces.max())
        if low < 0 or high >= len(self.vertices):
            raise InputError(
                f"faces of mesh {self.name} must name its {len(self.vertices)} vertices, got {low} to {high}"
            )


def read_mat(path: Path) -> list[Mesh]:
    """Return the meshes of a category of PASCAL3D+, a struct array with `vertices` and 1-based `faces`.

    Raises:
        InputError: the file holds something else, or a mesh without faces.
    """
    from scipy.io import loadmat  # rebuilds arrays and structs only

    with naming(path, "a .mat file"):
        content = loadmat(path, variable_names=[path.stem])
    models = content.get(path.stem)
    if not isinstance(models, np.ndarray) or not {"vertices", "faces"} <= set(models.dtype.names or ()):
        raise InputError(f"{path} must hold a struct array {path.stem} with the fields vertices and faces")
    with naming(path, "meshes"):
        return [
            Mesh(f"{path.stem}/{k:02d}", np.asarray(m["vertices"], np.float64), np.asarray(m["faces"], np.int64) - 1)
            for k, m in enumerate(models.ravel())
        ]


def parse_obj(text: str, name: str) -> Mesh:
    """Return the mesh of a Wavefront .obj file: its vertices and faces, polygons as fans, everything else left out.

    Raises:
        InputError: a line that cannot be read, or a mesh without faces.
    """
    vertices: list[list[float]] = []
    faces: list[tuple[int, int, int]] = []
    for number, line in enumerate(text.splitlines(), start=1):
        kind, *values = line.split() or [""]
        try:
            if kind == "v":
                x, y, z = map(float, values[:3])
                vertices.append([x, y, z])
            elif kind == "f":
                corners = [int(value.partition("/")[0]) for value in values]
                rows = [c - 1 if c > 0 else len(vertices) + c for c in corners]
                faces += [(rows[0], a, b) for a, b in pairwise(rows[1:])]
        except (ValueError, IndexError):
            raise InputError(f"line {number} of mesh {name} cannot be read: {format_value(line)}") from None
    with naming(f"mesh {name}", "faces"):  # a number may be too large for them
        return Mesh(name, np.array(vertices, np.float64), np.array(faces, np.int64))


def read_objs(path: Path, names: list[str]) -> Iterator[Mesh]:
    """Yield the .obj members `names` of a tar archive in the archive's order, read one by one; nothing is unpacked.

    Raises:
        InputError: a member that is not there, or see `parse_obj`.
    """
    wanted = set(names)
    with naming(path, "a tar archive"), tarfile.open(path) as archive:
        for member in archive:
            if member.name in wanted and (stream := archive.extractfile(member)) is not None:
                wanted.remove(member.name)
                if member.size > MOST_BYTES:
                    raise InputError(f"{path} has a member {member.name} of {member.size} bytes, expected a mesh")
                yield parse_obj(stream.read().decode("ascii", errors="replace"), member.name)
    if wanted:
        raise InputError(f"{path} has no member {min(wanted)}")
