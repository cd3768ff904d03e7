"""Published cells: a row a seed, kept beside the others; the layer is chosen where reports become records."""

import errno
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cmixup.errors import InputError
from cmixup.files import write_atomically
from scripts.records import run_tables
from scripts.records.prediction_store import read_cells
from scripts.records.published import cell_name, keep_predictions, predictions_file, published_runs, write_reports
from scripts.records.run_tables import frame_of, row_of
from scripts.stats.scored import Scored
from tests.scripts.reports import report

CELL = "table1/airfoil/fcn3/k_mixup/paper"


def one(seed: int, layer: str = "input", value: float = 2.0) -> dict:
    return report(
        seed=seed, experiment="table1", method="k_mixup", layer=layer, options={"method.layer": layer},
        run=f"{CELL},layer={layer}/seed={seed}", selection="rmse",
        scores={"val": {"rmse": value}, "test": {"rmse": value + seed}},
    )  # fmt: skip


def test_a_seed_that_is_published_again_replaces_its_row_alone(tmp_path: Path) -> None:
    (path,) = write_reports(tmp_path, [one(10), one(2)])
    assert path == tmp_path / "runs" / "table1/airfoil.csv"
    write_reports(tmp_path, [one(2, value=7.0), one(0)])
    assert pd.read_csv(path).set_index("seed").val_rmse.to_dict() == {0: 2.0, 2: 7.0, 10: 2.0}
    check_same(published_runs(tmp_path)[2:], frame_of([one(10)]))  # as it was made


def test_a_seed_of_a_cell_replaces_the_one_of_another_name(tmp_path: Path) -> None:
    """As a run of other tuned values has, which options do not hold."""
    (path,) = write_reports(tmp_path, [one(2)])
    write_reports(tmp_path, [{**one(2, value=7.0), "run": f"{CELL},train.lr=0.1/seed=2"}])
    assert pd.read_csv(path).set_index("seed").val_rmse.to_dict() == {2: 7.0}


def test_a_full_disk_leaves_a_table_that_is_read_and_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (path,) = write_reports(tmp_path, [one(0)])
    other = {**one(0, value=7.0), "commit": "later"}

    def full(path: Path, content: Any) -> None:
        if path.suffix == ".csv":
            raise OSError(errno.ENOSPC, "No space left on device")
        write_atomically(path, content)

    with monkeypatch.context() as context:
        context.setattr(run_tables, "write_atomically", full)
        with pytest.raises(OSError, match="No space left"):
            write_reports(tmp_path, [other])
    assert published_runs(tmp_path)["val_rmse"].tolist() == [2.0]
    write_reports(tmp_path, [other])
    assert len(json.loads(path.with_suffix(".json").read_text())["cells"]) == 1
    assert published_runs(tmp_path)["val_rmse"].tolist() == [7.0]


def check_same(read: pd.DataFrame, made: pd.DataFrame) -> None:
    """Check that runs that were read have all that was written, to the last bit, and options of the same types."""
    for mine, other in zip(*(runs.sort_values("run").to_dict("records") for runs in (read, made)), strict=True):
        assert json.dumps(mine.pop("shared"), sort_keys=True) == json.dumps(other.pop("shared"), sort_keys=True)
        known = {key: value for key, value in other.items() if not pd.isna(value)}
        assert {key: mine[key] for key in known} == known


def test_a_table_holds_every_bit_and_what_differs_inside_a_cell(tmp_path: Path) -> None:
    """Options keep their types, runs of one cell may differ in notes, trials have their own rows."""
    options = {"method.bandwidth": ["std", 0.03], "train.epochs": 3, "train.label_scaling": "standard"}
    given = [
        report(seed=-1, scores={"val": {"rmse": 0.1 + 0.2}, "test": {"rmse": float("nan"), "worst_rmse": 1e-300}},
               options=options, notes=["one"],
               run="table1/airfoil/c/seed=-1"),
        report(seed=0, options=options, facts={"kept": 5e-324, "bandwidth": 1.75}, run="table1/airfoil/c/seed=0"),
        {"experiment": "table1", "dataset": "airfoil", "model": "", "method": "erm", "preset": "paper",
         "options": {"condition": "random", "trial": 7}, "seed": 3, "run": "table1/airfoil/d/trial=07/seed=3",
         "scores": {"val": {"rmse": 2.0}}, "facts": {},
         "words": ['method.layer="input"', 'method.bandwidth=["std", 1]']},
    ]  # fmt: skip
    write_reports(tmp_path, given)
    check_same(published_runs(tmp_path), frame_of(given))


@pytest.mark.parametrize("damage", [b"", b"{}", b'{"shared": {}, "cells": {}}', b"\xff"])
def test_a_damaged_table_is_one_line_that_names_it(damage: bytes, tmp_path: Path) -> None:
    (path,) = write_reports(tmp_path, [one(0)])
    path.with_suffix(".json").write_bytes(damage)
    with pytest.raises(InputError, match=r"airfoil\.csv is not a table of runs"):
        published_runs(tmp_path)


def parts(value: float) -> dict[str, Scored]:
    target = np.arange(4, dtype=np.float32)[:, None]
    return {"test": Scored({"": np.full((4, 1), value, np.float32)}, target, np.zeros(4, int))}


def test_predictions_of_a_cell_are_kept_beside_those_of_other_seeds_and_cells(tmp_path: Path) -> None:
    for seed, layer, value in ((0, "input", 1.0), (1, "input", 2.0), (0, "hidden", 4.0), (0, "input", 3.0)):
        keep_predictions(tmp_path, [(one(seed, layer), parts(value))])
    path = predictions_file(tmp_path, "table1", "airfoil")
    (inputs, hidden) = (read_cells(path)[cell_name(row_of(one(0, layer)))] for layer in ("input", "hidden"))
    assert {seed: kept["test"].prediction[""][0, 0] for seed, kept in inputs.items()} == {0: 3.0, 1: 2.0}
    assert list(hidden) == [0]
    before = path.read_bytes()
    keep_predictions(tmp_path, [(one(1), parts(2.0))])
    assert path.read_bytes() == before
