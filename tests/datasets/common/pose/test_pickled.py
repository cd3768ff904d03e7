"""The released pickles, read without unpickling, and the file of views they become."""

import io
import os
import pickle
from pathlib import Path

import numpy as np
import pytest

from cmixup.errors import InputError
from datasets.common.fetch import FetchError, sha256_of
from datasets.common.pose.pickled import converted, read_pickle
from datasets.common.pose.views import Views, read_views, write_views
from datasets.pascal1d import Pascal1D
from tests.datasets.common.pose.made import views


def released(n_objects: int = 2, n_views: int = 30) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    x = rng.integers(0, 256, (n_objects, n_views, 128, 128, 1), np.uint8)
    return x, rng.random((n_objects, n_views, 2))


@pytest.mark.parametrize("protocol", range(2, 6))
@pytest.mark.parametrize("pair", [tuple, list])
def test_pickles_of_arrays_are_read(protocol: int, pair: type) -> None:
    x, y = released(1, 2)
    found_x, found_y = read_pickle(io.BytesIO(pickle.dumps(pair([x, y]), protocol)), "data.pkl")
    assert found_x.dtype == np.uint8
    assert (found_x == x[..., 0]).all()
    assert found_y.tolist() == y[..., -1].astype(np.float32).tolist()


def test_other_layouts_of_the_same_arrays_are_read() -> None:
    x, y = released(1, 2)
    flat = pickle.dumps((list(x.reshape(1, 2, -1).astype(np.float64)), y[..., 1]))
    found_x, found_y = read_pickle(io.BytesIO(flat), "data.pkl")
    assert (found_x == x[..., 0]).all()
    assert found_y.tolist() == y[..., 1].astype(np.float32).tolist()


class Evil:
    def __reduce__(self) -> tuple:
        return os.system, ("touch /tmp/cmixup_was_here",)


class Quiet:
    """An instance without any call."""


@pytest.mark.parametrize(
    "content", [Evil(), (Evil(), 1), Quiet(), (np.zeros((1, 2, 128, 128)), Quiet()), np.zeros, (os.system, 1),
                (np.array([Quiet()], dtype=object), 1), np.random.default_rng(0), {1: Evil()}],
)  # fmt: skip
def test_a_pickle_that_holds_anything_but_arrays_is_refused(content: object) -> None:
    marker = Path("/tmp/cmixup_was_here")  # noqa: S108
    for protocol in (2, 5):
        with pytest.raises(InputError, match=r"data.pkl: the pickle names .*only arrays, tuples and lists are read"):
            read_pickle(io.BytesIO(pickle.dumps(content, protocol)), "data.pkl")
    assert not marker.exists()


def test_pickles_written_by_hand_are_refused_too() -> None:
    for code in (b"cbuiltins\neval\n(S'1'\ntR.", b"cnumpy\nload\n(S'x'\ntR.", b"c_codecs\ndecode\n(S'x'\ntR."):
        with pytest.raises(InputError, match="the pickle names"):
            read_pickle(io.BytesIO(code), "data.pkl")
    with pytest.raises(InputError, match="only latin1 is read"):
        read_pickle(io.BytesIO(b"c_codecs\nencode\n(Vx\nVrot13\ntR."), "data.pkl")
    with pytest.raises(InputError, match="is not a pickle of arrays"):
        read_pickle(io.BytesIO(b"nonsense"), "data.pkl")


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
        read_pickle(io.BytesIO(pickle.dumps(content)), "data.pkl")


def test_a_pickle_is_converted_once_and_again_when_it_changes(tmp_path: Path) -> None:
    x, y = released(1, 2)
    opened: list[int] = []

    def stream() -> io.BytesIO:
        opened.append(1)
        return io.BytesIO(pickle.dumps((x, y)))

    for sha, times in (("a", 1), ("a", 1), ("b", 2)):
        found = converted(tmp_path / "train.npz", {"train.pkl": sha}, stream)
        assert len(opened) == times
        assert (np.asarray(found.x) == x[..., 0]).all()
        assert found.about == {"sources": {"train.pkl": sha}}
    assert sorted(p.name for p in tmp_path.iterdir()) == ["train.npz"]


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


def test_views_are_read_back_and_checked(tmp_path: Path) -> None:
    pool = views()
    write_views(tmp_path / "v.npz", Views(pool.x, pool.y, pool.names, {"sources": {"a": "b"}}))
    found = read_views(tmp_path / "v.npz")
    assert (np.asarray(found.x) == pool.x).all()
    assert (found.y == pool.y).all()
    assert (found.names, found.about) == (pool.names, {"sources": {"a": "b"}})
    (tmp_path / "bad.npz").write_bytes(b"no archive")
    with pytest.raises(InputError, match=r"bad.npz is not a file of views"):
        read_views(tmp_path / "bad.npz")
    wrong = pool.y.copy()
    wrong[1, 2] = 1.5
    with pytest.raises(InputError, match=r"y must lie in \[0, 1\], got 1.5 for view 2 of object 1"):
        Views(pool.x, wrong, pool.names, {})
