"""Meshes, the renderer, and the datasets that are rendered here."""

import io
import os
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cmixup.errors import InputError
from datasets.common.pose import rendered
from datasets.common.pose.meshes import Mesh, parse_obj, read_mat, read_objs
from datasets.common.pose.rendered import azimuths
from datasets.common.pose.rendering import render
from datasets.pascal1d_rendered import Pascal1DRendered

# ---- meshes


def box(low: tuple[float, ...] = (-1, -1, -1), high: tuple[float, ...] = (1, 1, 1), name: str = "box") -> Mesh:
    corners = np.array(np.meshgrid(*zip(low, high, strict=True), indexing="ij")).reshape(3, -1).T
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    faces = np.array([t for a, b, c, d in quads for t in ((a, b, c), (a, c, d))])
    return Mesh(name, corners.astype(float), faces)


OBJ = "o thing\nv 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nvn 0 0 1\n# note\nf 1/1/1 2//1 3 4\nf -4 -3 -2\n"


def test_obj_files() -> None:
    mesh = parse_obj(OBJ, "a.obj")
    assert mesh.vertices.tolist() == [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]]
    assert mesh.faces.tolist() == [[0, 1, 2], [0, 2, 3], [0, 1, 2]]


def struct(meshes: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    array = np.empty((1, len(meshes)), dtype=[("vertices", object), ("faces", object)])
    for k, (vertices, faces) in enumerate(meshes):
        array[0, k] = (vertices, faces)
    return array


def test_mat_files(tmp_path: Path) -> None:
    from scipy.io import savemat

    one = box()
    path = tmp_path / "chair.mat"
    savemat(path, {"chair": struct([(one.vertices, (one.faces + 1).astype(np.uint8))] * 2)})
    found = read_mat(path)
    assert [m.name for m in found] == ["chair/00", "chair/01"]
    assert (found[1].faces == one.faces).all()
    assert (found[1].vertices == one.vertices).all()
    savemat(path, {"chair": struct([(one.vertices, np.zeros((0, 0)))])})
    with pytest.raises(InputError, match="mesh chair/00 has no faces"):
        read_mat(path)
    savemat(path, {"table": np.zeros(3)})
    with pytest.raises(InputError, match="must hold a struct array chair"):
        read_mat(path)
    path.write_bytes(b"nothing")
    with pytest.raises(InputError, match=r"chair.mat is not a .mat file"):
        read_mat(path)


def archive(path: Path, **runs: str) -> None:
    with tarfile.open(path, "w:xz") as tar:
        for name, text in runs.items():
            info = tarfile.TarInfo(f"{name}.obj")
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))


def test_objs_are_read_from_the_archive_member_by_member(tmp_path: Path) -> None:
    archive(tmp_path / "all.tar.xz", a=OBJ, b="broken", c=OBJ)
    assert [m.name for m in read_objs(tmp_path / "all.tar.xz", ["c.obj", "a.obj"])] == ["a.obj", "c.obj"]
    with pytest.raises(InputError, match=r"has no member d\.obj"):
        list(read_objs(tmp_path / "all.tar.xz", ["a.obj", "d.obj"]))


# ---- renderer


def turned(mesh: Mesh, turn: float) -> Mesh:
    c, s = np.cos(2 * np.pi * turn), np.sin(2 * np.pi * turn)
    return Mesh(mesh.name, mesh.vertices @ np.array([[c, s, 0], [-s, c, 0], [0, 0, 1]]), mesh.faces)


def odd() -> Mesh:
    """A box with a smaller one on a corner: no two azimuths look alike."""
    one, other = box((-1, -0.6, -0.5), (1, 0.6, 0.5)), box((0.4, 0.1, 0.5), (1, 0.6, 1.2))
    return Mesh("odd", np.vstack([one.vertices, other.vertices]), np.vstack([one.faces, other.faces + 8]))


def test_the_camera_going_round_is_the_object_turning_back() -> None:
    """Quarter turns, after which the bounding box is still one along the axes."""
    for quarter in (0.25, 0.5, 0.75):
        seen, still = render(odd(), np.array([0.1 + quarter, 0.1]), size=32).astype(int)
        other = render(turned(odd(), -quarter), np.array([0.1]), size=32)[0].astype(int)
        assert np.abs(seen - other).mean() < 0.5
        assert np.abs(still - other).mean() > 5


def test_the_nearer_face_hides_the_farther_one() -> None:
    """Two plates across the view; the order of the faces in the file does not matter."""

    def plate(x: float, half: float) -> np.ndarray:
        return np.array([[x, -half, -half], [x, half, -half], [x, half, half], [x, -half, half]])

    quad = np.array([[0, 1, 2], [0, 2, 3]])
    near, far = plate(0.5, 0.3), plate(-0.5, 0.3) + np.array([0, 0, 0.2])
    lean = np.array([[0.25 * v[2] + v[0], v[1], v[2]] for v in near])  # another shade
    images = []
    for first, second in ((lean, far), (far, lean)):
        mesh = Mesh("plates", np.vstack([first, second]), np.vstack([quad, quad + 4]))
        images.append(render(mesh, np.array([0.0]), size=64)[0])
    assert (images[0] == images[1]).all()
    alone = Mesh("near", np.vstack([lean, far]), quad)
    assert images[0][32, 32] not in (0, images[0][15, 32])
    assert render(alone, np.array([0.0]), size=64).max() == images[0][32, 32]


def test_azimuths_are_seeded_by_name_and_uniform() -> None:
    assert azimuths("a", 5).tolist() == azimuths("a", 5).tolist() != azimuths("b", 5).tolist()
    many = azimuths("a", 4000)
    assert many.min() >= 0
    assert many.max() < 1
    assert np.abs(np.histogram(many, 10, (0, 1))[0] - 400).max() < 100


class Boxes(Pascal1DRendered):
    n_views, n_test, made = 31, 2, 0

    def meshes(self) -> Any:
        type(self).made += 1
        yield from (box((-1, -1, -h), (1, 1, h), f"box {h}") for h in (0.2, 0.4, 0.6, 0.8))


def test_views_are_rendered_once_and_split_by_objects(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CMIXUP_DATA", str(tmp_path))
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0}, raising=False)
    monkeypatch.setattr(rendered.rendering, "render", lambda _, y: np.zeros((len(y), 16, 16), np.uint8))
    train, test = Boxes().views()
    assert (len(train.names), len(test.names)) == (2, 2)
    assert set(train.names) | set(test.names) == {f"box {h}" for h in (0.2, 0.4, 0.6, 0.8)}
    again = Boxes().views()
    assert again[0].names == train.names
    assert Boxes.made == 1
    assert any(Boxes(split_seed=s).views()[1].names != test.names for s in range(5))
    data = Boxes(3, 2, 4).load(0)
    assert data.checksums == {file.path: file.sha256 for (file,) in Boxes.files}
    assert any("not the paper's images" in note for note in data.notes)
    monkeypatch.setattr(rendered, "AZIMUTH_SEED", 5)
    with pytest.raises(InputError, match="was made from other files or settings"):
        Boxes().views()
