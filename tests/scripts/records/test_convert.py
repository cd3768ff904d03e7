"""Runs published in a file a cell come out of files of methods as they were."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from cmixup.errors import InputError
from scripts.driver.compose import read_part
from scripts.driver.predictions import Scored, read_cells, write_predictions
from scripts.records import trials
from scripts.records.convert import convert, convert_tuned
from scripts.records.published import cell_name, predictions_file, published_reports
from tests.scripts.reports import report

ERM = "table1/airfoil/fcn3/erm/paper"


def test_every_line_and_array_is_in_the_file_of_its_method(tmp_path: Path) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    reports = [
        report(
            seed=seed, options={"method.layer": layer}, run=f"table1/airfoil/fcn3/erm/paper,layer={layer}/seed={seed}"
        )
        for layer in ("input", "hidden")
        for seed in (0, 1)
    ]
    for k, layer in enumerate(("input", "hidden")):
        path = f"{ERM},layer={layer}"
        (old / "runs" / path).parent.mkdir(parents=True, exist_ok=True)
        lines = [json.dumps(r) for r in reports if r["options"]["method.layer"] == layer]
        (old / "runs" / f"{path}.jsonl").write_text("\n".join(lines) + "\n")
        rows = {
            seed: {"test": Scored({"": np.full((3, 1), 2 * k + seed, np.float32)}, np.zeros((3, 1)), np.zeros(3, int))}
            for seed in (0, 1)
        }
        write_predictions(old / "predictions" / f"{path}.h5", rows)
    assert convert(old, new) == (4, 12)
    assert published_reports(new) == sorted(reports, key=lambda r: r["run"])
    cells = read_cells(predictions_file(new, reports[0]))
    assert [cells[cell_name(r)][r["seed"]]["test"].prediction[""][0, 0] for r in reports] == [0, 1, 2, 3]


LOG = """# python -m scripts.tune dataset=no2 method=cmixup
# Commit c0ffee; model fcn3, seed 1000, 3 trials of 16: the grid has no more.
# Best validation rmse: 1.5 (trial 2); preset paper: 2.25. All trials:
#  0  2.25      preset paper
#  1  diverged  method.bandwidth=['std', 1.0] train.weight_decay=1e-05
#  2  1.5       method.second=independent method.nonneg=True
method.second: independent
method.nonneg: true
"""


def test_logs_in_comments_become_records_and_their_values_a_file_a_dataset(tmp_path: Path) -> None:
    path = tmp_path / "configs/tuned/no2/cmixup.yaml"
    path.parent.mkdir(parents=True)
    path.write_text(LOG)
    assert convert_tuned(tmp_path / "configs", tmp_path) == 1
    (record,) = trials.read(tmp_path / trials.FILE)
    assert (record["dataset"], record["method"], record["preset"], record["best"]) == ("no2", "cmixup", "tuned", 2)
    assert record["trials"] == [
        {"options": {}, "val": 2.25},
        {"options": {"method.bandwidth": ["std", 1.0], "train.weight_decay": 1e-05}, "val": None},
        {"options": {"method.second": "independent", "method.nonneg": True}, "val": 1.5},
    ]
    assert read_part(tmp_path / "tuned/no2.yaml") == {"cmixup": record["trials"][2]["options"]}
    path.write_text(LOG.replace("true", "false"))
    with pytest.raises(InputError, match="other values than its best trial"):
        convert_tuned(tmp_path / "configs", tmp_path)
