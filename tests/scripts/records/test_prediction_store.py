"""Stored predictions: what is read is what was packed, to a step; damage is one line that names the file."""

from pathlib import Path

import numpy as np
import pytest

from cmixup.errors import InputError
from scripts.records.prediction_store import Cells, in_steps, read_cells, step_sizes, write_cells
from scripts.stats.scored import Scored

PLACE = "predictions/table1/airfoil.xz"


def cells(rng: np.random.Generator) -> Cells:
    """Two cells of three seeds, with rows of their own, two targets, and another predictor on test."""
    stored: Cells = {}
    for seed in range(3):
        for part, n, names in (("val", 30, [""]), ("test", 40 + seed, ["", "20_steps"])):
            target = rng.normal([5.0, -300.0], [1.0, 40.0], size=(n, 2)).astype(np.float32)
            domain = rng.integers(-2, 300, size=n)
            for cell in ("fcn3 paper", "fcn3 paper a=1"):
                near = {name: (target + rng.normal(size=(n, 2)) * [0.3, 9.0]).astype(np.float32) for name in names}
                stored.setdefault(cell, {}).setdefault(seed, {})[part] = Scored(near, target, domain)
    return stored


def test_predictions_come_back_to_a_step_and_labels_as_they_were(tmp_path: Path) -> None:
    given = cells(np.random.default_rng(0))
    write_cells(tmp_path / PLACE, given)
    back = read_cells(tmp_path / PLACE)
    assert back.keys() == given.keys()
    for cell, seed, part in ((c, s, p) for c in given for s in given[c] for p in given[c][s]):
        one, restored = given[cell][seed][part], back[cell][seed][part]
        np.testing.assert_array_equal(restored.target, one.target)
        np.testing.assert_array_equal(restored.domain, one.domain)
        assert list(restored.prediction) == list(one.prediction)
        for name, values in one.prediction.items():
            steps = step_sizes(one.target)
            assert (np.log2(steps) % 1 == 0).all()
            assert (steps <= 2e-3 * one.target.std(axis=0)).all()
            assert (np.abs(restored.prediction[name] - values) <= steps / 2).all()
            np.testing.assert_array_equal(restored.prediction[name] / steps, in_steps(values, steps))
            assert restored.prediction[name].dtype == restored.target.dtype == np.float32
    assert read_cells(tmp_path / "predictions/table1/none.xz") == {}


def test_packing_again_what_was_read_gives_the_same_bytes(tmp_path: Path) -> None:
    write_cells(tmp_path / PLACE, cells(np.random.default_rng(1)))
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.xz")}
    write_cells(tmp_path / PLACE, read_cells(tmp_path / PLACE))
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.xz")} == before
    assert sorted(path.parent.name for path in before) == ["table1", "targets"]


@pytest.mark.parametrize("bad", [np.nan, np.inf, 3e38, -1e30])
def test_what_steps_would_lose_is_kept_whole(bad: float, tmp_path: Path) -> None:
    target = np.arange(8, dtype=np.float32)[:, None]
    wild = Scored({"": np.where(target == 3, np.float32(bad), np.float32(1 / 3))}, target, np.zeros(8, int))
    still = Scored({"": np.full((4, 1), 1 / 3, np.float32)}, np.ones((4, 1), np.float32), np.zeros(4, int))
    empty = Scored({"": np.zeros((0, 1), np.float32)}, np.zeros((0, 1), np.float32), np.zeros(0, int))
    write_cells(tmp_path / PLACE, {"a": {0: {"val": wild, "test": still}, 1: {"val": empty, "test": still}}})
    back = read_cells(tmp_path / PLACE)["a"]
    np.testing.assert_array_equal(back[0]["val"].prediction[""], wild.prediction[""])
    np.testing.assert_array_equal(back[1]["test"].prediction[""], still.prediction[""])
    assert back[1]["val"].prediction[""].shape == (0, 1)


def test_every_flip_and_every_cut_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    target = np.arange(4, dtype=np.float32)[:, None]
    write_cells(tmp_path / PLACE, {"a": {0: {"val": Scored({"": target + 1}, target, np.zeros(4, int))}}})
    rng, labels = np.random.default_rng(0), tmp_path / "predictions/targets/airfoil.xz"
    for path, word in ((tmp_path / PLACE, "a file of predictions"), (labels, "a file of labels")):
        whole = path.read_bytes()
        for bit in rng.choice(8 * len(whole), size=min(150, 8 * len(whole)), replace=False):
            flipped = bytearray(whole)
            flipped[bit // 8] ^= 1 << bit % 8
            path.write_bytes(flipped)
            with pytest.raises(InputError, match=rf"{path.name} is not {word}: "):
                read_cells(tmp_path / PLACE)
        for content in (whole[:-1], whole[: len(whole) // 2], b"", whole + b"x", whole + whole):
            path.write_bytes(content)
            with pytest.raises(InputError, match=rf"{path.name} is not {word}: "):
                read_cells(tmp_path / PLACE)
        path.write_bytes(whole)
    labels.unlink()
    with pytest.raises(InputError, match=r"airfoil.xz needs labels that .*airfoil.xz does not have"):
        read_cells(tmp_path / PLACE)
