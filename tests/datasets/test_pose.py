"""Pose tasks: their rows, released pickles, views, meshes and the renderer."""

import io
import itertools
import os
import pickle
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cmixup.data import Tasks
from cmixup.errors import InputError
from datasets.common.fetch import FetchError, sha256_of
from datasets.common.pose import rendered
from datasets.common.pose.rendered import azimuths
from datasets.common.pose.rendering import Mesh, read_mat, read_objs, render
from datasets.common.pose.tasks import SHOTS, draw_tasks
from datasets.common.pose.views import Views, converted, read_pickle
from datasets.pascal1d import Pascal1D
from datasets.pascal1d_rendered import Pascal1DRendered
from tests.datasets.samples import parts, views

# ---- Tasks: their rows, the objects that are drawn, and that test objects stay apart


def test_a_task_is_views_of_one_object_with_their_labels() -> None:
    pool = views()
    tasks = draw_tasks(pool, 40, np.random.default_rng(0))
    x = tasks[torch.arange(40)]
    assert x.support.shape == x.query.shape == (40, SHOTS, 1, 4, 4)
    assert x.labels.shape == tasks.y.shape == (40, SHOTS)
    assert tasks.shape == (40, 1, 4, 4)
    for k in (0, 7, 39):
        images = torch.cat([x.support[k], x.query[k]])[:, 0]
        labels = torch.cat([x.labels[k], tasks.y[k]])
        theirs = torch.from_numpy(pool.x[tasks.objects[k]][tasks.views[k]]).float() / 255
        torch.testing.assert_close(images, theirs)
        torch.testing.assert_close(labels, torch.from_numpy(10 * pool.y[tasks.objects[k]][tasks.views[k]]))
    tasks = draw_tasks(views(n_views=30), 200, np.random.default_rng(0))
    assert (np.sort(tasks.views, axis=1) == np.arange(30)).all()  # support and query share none
    with pytest.raises(InputError, match="views must not name a view of a task twice"):
        Tasks(tasks.images, tasks.labels, tasks.objects[:1], np.zeros((1, 4), np.int64), 2)


def test_distances_are_between_images() -> None:
    tasks = draw_tasks(views(), 3, np.random.default_rng(0))
    x = tasks[torch.arange(3)]
    expected = torch.cdist(x.query.flatten(2).double(), x.support.flatten(2).double())
    np.testing.assert_allclose(tasks.distances(np.arange(3)), expected, rtol=1e-6)
    assert tasks.pair_distances().shape == (3 * 31 * 30 // 2,)


class Small(Pascal1D):
    """The same classes over views made here."""

    def views(self) -> tuple[Views, Views]:
        return views(4, seed=1), views(2, seed=2)


def test_the_test_tasks_are_the_same_for_every_run_seed() -> None:
    one, same, other = (Small(20, 5, 6000).load(seed) for seed in (0, 0, 1))
    assert all(torch.equal(a.y, b.y) for a, b in zip(parts(one), parts(same), strict=True))
    assert torch.equal(one.test.y, other.test.y)
    assert not torch.equal(one.train.y, other.train.y)
    assert len(one.test) == 6000
    assert not torch.equal(Small(20, 5, 6000, task_seed=1).load(0).test.y, one.test.y)


def test_no_two_splits_draw_from_one_stream() -> None:
    """NumPy pads seeds with zeros: `[0, 0]` and `[0]` are one stream, so run seed 0 once had the test tasks' views."""
    for seed in (0, 5):
        data = Small(30, 30, 30, task_seed=seed).load(seed)
        views = [split.x.views for split in parts(data)]
        assert not any(np.array_equal(a, b) for a, b in itertools.combinations(views, 2))


def test_labels_are_ten_times_the_azimuth_and_test_objects_are_apart() -> None:
    data = Small(50, 5, 50).load(0)
    pools = [set(data.train.x.labels.ravel().tolist()), set(data.test.x.labels.ravel().tolist())]
    assert not pools[0] & pools[1]
    assert all(0 <= split.y.min() <= split.y.max() < 10 for split in parts(data))
    assert (data.selection, data.metrics) == ("mse", ("mse", "mse_ci95"))
    assert data.train.domain.tolist() == data.train.x.objects.tolist()


def test_validation_objects_can_be_kept_from_training() -> None:
    shared, apart = Small(50, 20, 5).load(0), Small(50, 20, 5, val_objects=1).load(0)
    pools = [set(s.x.labels[np.unique(s.x.objects)].ravel().tolist()) for s in (shared.train, shared.val)]
    assert pools[0] & pools[1]
    pools = [set(s.x.labels.ravel().tolist()) for s in (apart.train, apart.val)]
    assert not pools[0] & pools[1]
    with pytest.raises(InputError, match="val_objects must leave training objects among 4, got 4"):
        Small(val_objects=4).load(0)


def test_views_shrink_to_means_over_squares() -> None:
    pool = views(2, seed=1)
    side = pool.x.shape[2] // 2
    smaller = pool.shrunk(side)
    assert (smaller.x.dtype, smaller.x.shape) == (np.uint8, (*pool.x.shape[:2], side, side))
    corners = [pool.x[..., a::2, b::2].astype(int) for a in (0, 1) for b in (0, 1)]
    assert (np.abs(smaller.x - sum(corners) / 4) <= 0.5).all()
    assert (smaller.y is pool.y, smaller.names) == (True, pool.names)
    assert pool.shrunk(side * 2) is pool.shrunk(side * 4) is pool


# ---- The released pickles, read without unpickling, and the file of views they become


def released(n_objects: int = 2, n_views: int = 30) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (n_objects, n_views, 128, 128, 1), np.uint8)
    return x, rng.random((n_objects, n_views, 2))


@pytest.mark.parametrize("protocol", range(2, 6))
def test_pickles_of_arrays_are_read_in_several_layouts(protocol: int) -> None:
    x, y = released(1, 2)
    for content in ((x, y), [list(x.reshape(1, 2, -1).astype(np.float64)), y[..., 1]]):
        read_x, read_y = read_pickle(pickle.dumps(content, protocol), "data.pkl")
        assert read_x.dtype == np.uint8
        assert (read_x == x[..., 0]).all()
        assert read_y.tolist() == y[..., -1].astype(np.float32).tolist()


class Evil:
    def __reduce__(self) -> tuple:
        return os.system, ("touch /tmp/cmixup_was_here",)


class Quiet:
    """An instance without any call."""


PLANTED = (Evil(), (np.zeros((1, 2, 128, 128)), Quiet()), (os.system, 1), (np.array([Quiet()], dtype=object), 1))
BY_HAND = (b"cbuiltins\neval\n(S'1'\ntR.", b"cnumpy\nload\n(S'x'\ntR.", b"c_codecs\ndecode\n(S'x'\ntR.")


def test_a_pickle_that_holds_anything_but_arrays_is_refused() -> None:
    marker = Path("/tmp/cmixup_was_here")  # noqa: S108
    for code in [*(pickle.dumps(content, protocol) for content in PLANTED for protocol in (2, 5)), *BY_HAND]:
        with pytest.raises(
            InputError, match=r"data.pkl is not a pickle of arrays: it names .*only arrays, tuples and lists are read"
        ):
            read_pickle(code, "data.pkl")
    assert not marker.exists()
    for code, why in ((b"c_codecs\nencode\n(Vx\nVrot13\ntR.", ".*only latin1 is read"), (b"nonsense", "")):
        with pytest.raises(InputError, match=f"is not a pickle of arrays: {why}"):
            read_pickle(code, "data.pkl")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([1], r"must hold the pair \(x, y\)"),
        ((np.zeros((2, 3, 64, 64)), np.zeros((2, 3))), r"must hold x .*got shapes \(2, 3, 64, 64\) and \(2, 3\)"),
        ((np.zeros((2, 3, 128, 128)), np.zeros((2, 4))), r"must hold x"),
        ((np.full((1, 1, 128, 128), 0.5), np.zeros((1, 1))), r"x of data.pkl must be whole numbers in 0..255"),
        (([np.zeros((3, 16384)), np.zeros((2, 16384))], np.zeros((2, 3))), "every object with as many views"),
        ((np.zeros((1, 1, 128, 128)), [["a"]]), "y of data.pkl must be one array of numbers"),
    ],
)
def test_pickles_of_other_arrays_are_refused(content: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_pickle(pickle.dumps(content), "data.pkl")


def test_a_pickle_is_converted_once_and_again_when_it_changes(tmp_path: Path) -> None:
    x, y = released(1, 2)
    opened: list[int] = []

    def content() -> bytes:
        opened.append(1)
        return pickle.dumps((x, y))

    for sha, times in (("a", 1), ("a", 1), ("b", 2)):
        arrays = converted(tmp_path / "train.npz", {"train.pkl": sha}, content)
        assert len(opened) == times
        assert (arrays.x == x[..., 0]).all()
        assert (arrays.y == y[..., 1].astype(np.float32)).all()
        assert (arrays.names, arrays.about) == (("train 0",), {"sources": {"train.pkl": sha}})
    assert sorted(p.name for p in tmp_path.iterdir()) == ["train.npz"]
    (tmp_path / "train.npz").write_bytes(b"no archive")
    with pytest.raises(InputError, match=r"train.npz is not a file of views"):
        converted(tmp_path / "train.npz", {}, content)


def test_the_released_pascal1d_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CMIXUP_DATA", str(tmp_path))
    monkeypatch.setenv("CMIXUP_MIRROR", "")
    with pytest.raises(FetchError, match=r"could not get pascal1d/train_data_ins.pkl \(size not known\)"):
        Pascal1D().load(0)
    (tmp_path / "pascal1d").mkdir(exist_ok=True)
    for name, n in (("train_data_ins", 2), ("val_data_ins", 1)):
        (tmp_path / f"pascal1d/{name}.pkl").write_bytes(pickle.dumps(released(n)))
    data = Pascal1D(4, 2, 3).load(0)
    assert (len(data.train), len(data.val), len(data.test)) == (4, 2, 3)
    assert data.train.x.shape == (4, 1, 128, 128)
    assert data.checksums == {
        f"pascal1d/{name}.pkl": sha256_of(tmp_path / f"pascal1d/{name}.pkl")
        for name in ("train_data_ins", "val_data_ins")
    }


# ---- Meshes, the renderer, and the datasets that are rendered here


def box(low: tuple[float, ...] = (-1, -1, -1), high: tuple[float, ...] = (1, 1, 1), name: str = "box") -> Mesh:
    corners = np.array(np.meshgrid(*zip(low, high, strict=True), indexing="ij")).reshape(3, -1).T
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    faces = np.array([t for a, b, c, d in quads for t in ((a, b, c), (a, c, d))])
    return Mesh(name, corners.astype(float), faces)


OBJ = "o thing\nv 0 0 0\nv 1 0 0\nv 1 1 0\nv 0 1 0\nvn 0 0 1\n# note\nf 1/1/1 2//1 3 4\nf -4 -3 -2\n"


def test_mat_files(tmp_path: Path) -> None:
    from scipy.io import savemat

    one = box()
    path = tmp_path / "chair.mat"
    meshes = np.empty((1, 2), dtype=[("vertices", object), ("faces", object)])
    meshes[0, 0] = meshes[0, 1] = (one.vertices, (one.faces + 1).astype(np.uint8))
    savemat(path, {"chair": meshes})
    content = read_mat(path)
    assert [m.name for m in content] == ["chair/00", "chair/01"]
    assert (content[1].faces == one.faces).all()
    assert (content[1].vertices == one.vertices).all()


def test_objs_are_read_from_the_archive_member_by_member(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "all.tar.xz", "w:xz") as tar:
        for name, text in (("a.obj", OBJ), ("b.obj", "broken"), ("c.obj", OBJ)):
            info = tarfile.TarInfo(name)
            info.size = len(text)
            tar.addfile(info, io.BytesIO(text.encode()))
    first, second = read_objs(tmp_path / "all.tar.xz", ["c.obj", "a.obj"])
    assert (first.name, second.name) == ("a.obj", "c.obj")
    assert first.vertices.tolist() == [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]]
    assert first.faces.tolist() == [[0, 1, 2], [0, 2, 3], [0, 1, 2]]


# ---- renderer


def test_the_camera_going_round_is_the_object_turning_back() -> None:
    """Quarter turns, after which the bounding box is still one along the axes.

    The object is a box with a smaller one on a corner: no two azimuths look alike.
    """
    large, small = box((-1, -0.6, -0.5), (1, 0.6, 0.5)), box((0.4, 0.1, 0.5), (1, 0.6, 1.2))
    vertices, faces = np.vstack([large.vertices, small.vertices]), np.vstack([large.faces, small.faces + 8])
    for quarter in (0.25, 0.5, 0.75):
        c, s = np.cos(2 * np.pi * quarter), np.sin(2 * np.pi * quarter)
        turned = Mesh("odd", vertices @ np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]), faces)
        seen, still = render(Mesh("odd", vertices, faces), np.array([0.1 + quarter, 0.1]), size=32).astype(int)
        other = render(turned, np.array([0.1]), size=32)[0].astype(int)
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
