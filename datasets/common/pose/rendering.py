"""Triangle meshes in files, and shaded grey views of them from around, by a small z-buffer.

The original views (google-research meta_learning_without_memorization/pose_data) are 128 x 128 grey renderings of
centred objects at random azimuths, made with MuJoCo; its camera and light are not restored here. Ours: the object is
centred on its bounding box and scaled to the unit sphere; the camera circles it at an elevation of 20 degrees, four
radii away, and the sphere spans 95 % of the image; flat two-sided Lambert shading with a light that moves with the
camera, from its upper left; black background; two samples a pixel and axis.
"""

import tarfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import numpy as np

SIZE = 128
SAMPLES = 2  # a pixel and axis
ELEVATION = np.deg2rad(20.0)
DISTANCE = 4.0  # of the camera, in radii of the object
FILL = 0.95  # of the image by the unit sphere
AMBIENT = 0.25
LIGHT = np.array([-0.4, 0.6, 0.7])  # right, up and towards the camera
VERSION = 1  # raise it when the pictures change
DEPTH_BITS = 20


@dataclass(frozen=True)
class Mesh:
    """The surface of one object, as triangles."""

    name: str
    vertices: np.ndarray  # (V, 3) float64, z up
    faces: np.ndarray  # (F, 3) int64 rows of `vertices`, counted from 0


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


def normalised(mesh: Mesh) -> np.ndarray:
    """Return the vertices `(V, 3)` with the middle of the bounding box at 0 and the farthest one at 1."""
    corners = mesh.vertices[np.unique(mesh.faces)]
    centre = (corners.min(axis=0) + corners.max(axis=0)) / 2
    radius = np.linalg.norm(corners - centre, axis=1).max()
    return (mesh.vertices - centre) / max(radius, np.finfo(np.float64).tiny)


def camera(azimuth: float) -> np.ndarray:
    """Return the camera's axes right, up and towards it as rows, `(3, 3)`; its azimuth, in turns, is from x to y."""
    angle = 2 * np.pi * azimuth
    cos_a, sin_a, cos_e, sin_e = np.cos(angle), np.sin(angle), np.cos(ELEVATION), np.sin(ELEVATION)
    return np.array([
        [-sin_a, cos_a, 0.0], [-cos_a * sin_e, -sin_a * sin_e, cos_e], [cos_a * cos_e, sin_a * cos_e, sin_e],
    ])  # fmt: skip


def render(mesh: Mesh, azimuths: np.ndarray, size: int = SIZE) -> np.ndarray:
    """Return one view for each of the azimuths `(n,)`, in turns, `(n, size, size)` uint8."""
    vertices = normalised(mesh)
    corners = vertices[mesh.faces]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    length = np.linalg.norm(normal, axis=1)
    has_area = length > 0  # a face without area shows nothing
    faces, normal = mesh.faces[has_area], normal[has_area] / length[has_area, None]
    light = LIGHT / np.linalg.norm(LIGHT)
    views = np.empty((len(azimuths), size, size), np.uint8)
    for k, azimuth in enumerate(azimuths):
        axes = camera(float(azimuth))
        shade = AMBIENT + (1 - AMBIENT) * np.abs(normal @ (axes.T @ light))
        fine = _rasterise(vertices @ axes.T, faces, np.rint(255 * shade).astype(np.int64), size * SAMPLES)
        views[k] = np.rint(fine.reshape(size, SAMPLES, size, SAMPLES).mean(axis=(1, 3)))
    return views


def _rasterise(points: np.ndarray, faces: np.ndarray, shade: np.ndarray, size: int) -> np.ndarray:
    """Return the nearest face's shade at every pixel centre, `(size, size)`; 0 where there is none.

    Vertices are `(V, 3)` along the camera's axes, shades `(F,)` whole numbers in 0..255.
    """
    near = 1 / (DISTANCE - points[:, 2])  # of depth; linear on the screen
    focal = FILL * (size / 2) * np.sqrt(DISTANCE**2 - 1)
    across = size / 2 + focal * points[:, 0] * near - 0.5  # pixel centres at whole numbers
    down = size / 2 - focal * points[:, 1] * near - 0.5
    x, y, z = across[faces], down[faces], near[faces]
    first_x, first_y = np.ceil(x.min(axis=1)), np.ceil(y.min(axis=1))
    width = np.floor(x.max(axis=1)) - first_x + 1
    count = (width * (np.floor(y.max(axis=1)) - first_y + 1)).astype(np.int64)
    area = (x[:, 1] - x[:, 0]) * (y[:, 2] - y[:, 0]) - (x[:, 2] - x[:, 0]) * (y[:, 1] - y[:, 0])
    drawn_faces = np.flatnonzero((width > 0) & (count > 0) & (area != 0))  # its box holds a pixel centre
    count = count[drawn_faces]
    # Every pixel centre of every box, as one list.
    place = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    face = np.repeat(drawn_faces, count)
    columns = width[face]
    row = np.floor(place / columns)
    px, py = first_x[face] + place - row * columns, first_y[face] + row
    # Barycentric weights and nearness are affine on the screen: base + right * x + under * y.
    (x0, x1, x2), (y0, y1, y2) = x[drawn_faces].T, y[drawn_faces].T
    area = area[drawn_faces]
    right0, right1, under0, under1 = (y1 - y2) / area, (y2 - y0) / area, (x2 - x1) / area, (x0 - x2) / area
    index = np.repeat(np.arange(len(drawn_faces)), count)
    ox, oy = px - x2[index], py - y2[index]
    w0 = right0[index] * ox + under0[index] * oy
    w1 = right1[index] * ox + under1[index] * oy
    inside = np.flatnonzero((w0 >= 0) & (w1 >= 0) & (w0 + w1 <= 1))
    w0, w1, px, py, face = w0[inside], w1[inside], px[inside], py[inside], face[inside]
    z0, z1, z2 = z[face].T
    nearness = z2 + w0 * (z0 - z2) + w1 * (z1 - z2)
    pixel = (py * size + px).astype(np.int64)
    # Nearness, then shade, in one number: the largest at a pixel wins.
    key = (nearness * ((DISTANCE - 1) * 2**DEPTH_BITS)).astype(np.int64) << 8 | shade[face]
    buffer = np.zeros(size * size, np.int64)
    np.maximum.at(buffer, pixel, key)
    return (buffer & 255).reshape(size, size)
