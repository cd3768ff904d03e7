"""Runs published in a file a cell come out of files of methods as they were."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

from scripts.driver.predictions import Scored, read_cells, write_predictions
from scripts.records.convert import convert
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
