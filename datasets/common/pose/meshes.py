"""Triangle meshes, read without running any code that a file may hold."""

import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np


@dataclass(frozen=True)
class Mesh:
    """The surface of one object, as triangles.

    Args:
        name: how errors and files call it.
        vertices: `(V, 3)` float64, z up.
        faces: `(F, 3)` int64 rows of `vertices`, counted from 0.
    """

    name: str
    vertices: np.ndarray
    faces: np.ndarray


def read_mat(path: Path) -> list[Mesh]:
    """Return the meshes of a category of PASCAL3D+, a struct array with `vertices` and 1-based `faces`."""
    from scipy.io import loadmat  # rebuilds arrays and structs only

    return [
        Mesh(f"{path.stem}/{k:02d}", np.asarray(m["vertices"], np.float64), np.asarray(m["faces"], np.int64) - 1)
        for k, m in enumerate(loadmat(path, variable_names=[path.stem])[path.stem].ravel())
    ]


def parse_obj(text: str, name: str) -> Mesh:
    """Return the mesh of a Wavefront .obj file: its vertices and faces, polygons as fans, everything else left out."""
    vertices: list[list[float]] = []
    faces: list[tuple[int, int, int]] = []
    for line in text.splitlines():
        kind, *values = line.split() or [""]
        if kind == "v":
            vertices.append([float(value) for value in values[:3]])
        elif kind == "f":
            corners = [int(value.partition("/")[0]) for value in values]
            rows = [c - 1 if c > 0 else len(vertices) + c for c in corners]
            faces += [(rows[0], a, b) for a, b in pairwise(rows[1:])]
    return Mesh(name, np.array(vertices, np.float64), np.array(faces, np.int64))


def read_objs(path: Path, names: list[str]) -> Iterator[Mesh]:
    """Yield the .obj members `names` of a tar archive in the archive's order, read one by one; nothing is unpacked."""
    with tarfile.open(path) as archive:
        for member in archive:
            if member.name in names and (stream := archive.extractfile(member)) is not None:
                yield parse_obj(stream.read().decode("ascii"), member.name)
