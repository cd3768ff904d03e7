"""Stored predictions: what h5py reads is what was given, to a step; labels are stored once; damage is one line."""

from pathlib import Path

import h5py
import numpy as np
import pytest

from cmixup.errors import InputError
from scripts.records.prediction_store import Cells, in_steps, read_cells, rounded, step_sizes, write_cells
from scripts.stats.scored import Scored

PLACE = "predictions/table1/airfoil.h5"


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


def test_h5py_alone_reads_what_was_given_and_labels_of_equal_rows_are_stored_once(tmp_path: Path) -> None:
    given = cells(np.random.default_rng(0))
    write_cells(tmp_path / PLACE, given)
    stored = list[str]()
    with h5py.File(tmp_path / PLACE) as file:
        for cell, seed, part in ((c, s, p) for c in given for s in given[c] for p in given[c][s]):
            group, one = file[f"{cell}/{seed}/{part}"], given[cell][seed][part]
            arrays = {"target": one.target, "domain": one.domain, "prediction": one.prediction[""]}
            arrays |= {f"prediction_{name}": values for name, values in one.prediction.items() if name}
            assert {name: values[:].tolist() for name, values in group.items()} == {
                name: values.tolist() for name, values in arrays.items()
            }
            assert group["target"].dtype == group["prediction"].dtype == np.float32
        file.visit(stored.append)  # links are not visited
    assert sum(name.endswith(("/target", "/domain")) for name in stored) == 2 * 3 * 2
    before = (tmp_path / PLACE).read_bytes()
    write_cells(tmp_path / PLACE, read_cells(tmp_path / PLACE))
    assert (tmp_path / PLACE).read_bytes() == before
    assert read_cells(tmp_path / "none.h5") == {}


def test_predictions_are_rounded_to_whole_steps_and_again_to_the_same() -> None:
    given = cells(np.random.default_rng(1))["fcn3 paper"][0]
    once = rounded(given)
    twice = rounded(once)
    for part, one in given.items():
        steps = step_sizes(one.target)
        assert (np.log2(steps) % 1 == 0).all()
        assert (steps <= 2e-3 * one.target.std(axis=0)).all()
        for name, values in one.prediction.items():
            restored = once[part].prediction[name]
            assert np.abs(restored - values).max() > 0
            assert (np.abs(restored - values) <= steps / 2).all()
            assert not (restored / steps % 1).any()
            np.testing.assert_array_equal(twice[part].prediction[name], restored)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 3e38, -1e30])
def test_what_steps_would_lose_is_kept_whole(bad: float) -> None:
    target = np.arange(8, dtype=np.float32)[:, None]
    wild = np.where(target == 3, np.float32(bad), np.float32(1 / 3))
    np.testing.assert_array_equal(in_steps(wild, step_sizes(target)), wild)
    still = np.full((8, 1), 1 / 3, np.float32)  # all alike
    np.testing.assert_array_equal(in_steps(still, step_sizes(target)), still)
    assert not step_sizes(np.ones((4, 1), np.float32)).any()
    far = (target + 1 / 3).astype(np.float32)
    assert (in_steps(far, step_sizes(target)) != far).any()
    normal = {"test": Scored({"": far, "std": far}, target, np.zeros(8, int))}
    np.testing.assert_array_equal(rounded(normal)["test"].prediction[""], far)


def test_damage_is_an_error_that_names_the_file(tmp_path: Path) -> None:
    write_cells(tmp_path / PLACE, cells(np.random.default_rng(2)))
    whole = (tmp_path / PLACE).read_bytes()
    with h5py.File(tmp_path / PLACE) as file:
        start = file["fcn3 paper/0/test/prediction"].id.get_chunk_info(0).byte_offset
    flipped = bytearray(whole)
    flipped[start + 9] ^= 4
    for content in (bytes(flipped), whole[: len(whole) // 2], b""):
        (tmp_path / PLACE).write_bytes(content)
        with pytest.raises(InputError, match=r"airfoil.h5 is not a file of predictions: "):
            read_cells(tmp_path / PLACE)
