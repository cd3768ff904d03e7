"""Published runs: below results/runs a file of JSON lines for each cell, a line a seed, with its report as it was made.

The predictions of a cell lie in results/predictions under the same name. Every line and every prediction of a seed is
replaced when that seed is published again.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from cmixup.files import write_atomically
from scripts.driver.predictions import PREDICTIONS, read_predictions, write_predictions
from scripts.driver.runs import parse_report, strict
from scripts.records.experiment import RESULTS
from scripts.records.layer_choice import choose_variants
from scripts.records.records import check_unique, records_frame

Report = Mapping[str, Any]


def cell_of(report: Report) -> str:
    """Return the name of a report's cell: its run without the seed."""
    return str(report["run"]).rpartition("/")[0]


def report_files(results: Path) -> list[Path]:
    """Return the files of all published cells, in order of their names."""
    return sorted((results / "runs").rglob("*.jsonl"))


def predictions_file(results: Path, cell: str) -> Path:
    """Return where the predictions of a cell are kept."""
    return results / "predictions" / f"{cell}.h5"


def published_reports(results: Path = RESULTS, experiments: Collection[str] = ()) -> list[dict[str, Any]]:
    """Return the reports of all published runs, or of some experiments', in order of cells and seeds."""
    runs = results / "runs"
    wanted = [f for f in report_files(results) if not experiments or f.relative_to(runs).parts[0] in experiments]
    return [parse_report(line) for path in wanted for line in path.read_text().splitlines()]


def published_records(results: Path = RESULTS) -> pd.DataFrame:
    """Return the tidy records of all published runs, each method at the layer that is better on validation.

    Raises:
        InputError: two runs that differ in nothing but their values.
    """
    records = records_frame(choose_variants(published_reports(results)))
    check_unique(records)
    return records


def write_reports(results: Path, reports: Iterable[Report]) -> list[Path]:
    """Write reports into the files of their cells, beside other seeds that are there; return the files."""
    written = []
    for cell, new in _by_cell(reports).items():
        path = results / "runs" / f"{cell}.jsonl"
        old = [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []
        by_seed = {report["seed"]: report for report in (*old, *new)}
        lines = [json.dumps(strict(by_seed[seed]), allow_nan=False) for seed in sorted(by_seed)]
        write_atomically(path, "\n".join(lines) + "\n")
        written.append(path)
    return written


def keep_predictions(results: Path, out: Path, reports: Sequence[Report]) -> None:
    """Copy the predictions of finished runs in `out/runs` into the files of their cells."""
    for cell, new in _by_cell(reports).items():
        path = predictions_file(results, cell)
        kept = dict(read_predictions(path)) if path.is_file() else {}
        for report in new:
            kept |= read_predictions(out / "runs" / str(report["run"]) / PREDICTIONS)
        write_predictions(path, kept)


def _by_cell(reports: Iterable[Report]) -> dict[str, list[Report]]:
    cells: dict[str, list[Report]] = defaultdict(list)
    for report in reports:
        cells[cell_of(report)].append(report)
    return cells
