"""Curves of runs over their epochs: histories of run folders, and in results/curves a table for each method."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cmixup.done import checked
from cmixup.files import write_atomically
from scripts.driver.runs import HISTORY
from scripts.records.experiment import RESULTS
from scripts.records.published import curves_file, published_reports
from scripts.records.reads import remember_reads
from scripts.records.records import options_text, read_csv, to_csv

RUN = ("preset", "options", "seed")  # columns that tell the runs of a table apart
Rows = list[dict[str, str]]


@dataclass(frozen=True)
class Curve:
    """One run's history.

    Attributes:
        columns: by name (`epoch`, `train_loss`, `val_rmse`, `test_rmse`, ...) a value an epoch.
        best_epoch: the selected one, counted from 1.
    """

    experiment: str
    dataset: str
    method: str
    preset: str
    seed: int
    best_epoch: int
    columns: Mapping[str, list[float]]


def read_curves(reports: Sequence[Mapping[str, Any]], root: Path) -> list[Curve]:
    """Return the curves of these reports' runs, from `root/<run>/history.csv`."""
    return [_make_curve(report, read_csv(checked(root / report["run"] / HISTORY))) for report in reports]


@remember_reads
def published_curves(results: Path = RESULTS) -> list[Curve]:
    """Return the curves of all published runs that tracked a split."""
    tracked = [r for r in published_reports(results) if r["config"]["train"].get("track")]
    tables = {path: _read_table(path) for path in {curves_file(results, report) for report in tracked}}
    return [_make_curve(report, tables[curves_file(results, report)][_curve_key(report)]) for report in tracked]


def keep_curves(results: Path, histories: Iterable[tuple[Mapping[str, Any], Rows]]) -> None:
    """Write the histories of runs into the tables of their methods, beside other runs that are there."""
    tables: dict[Path, dict[tuple[str, ...], Rows]] = {}
    for report, rows in histories:
        path = curves_file(results, report)
        tables.setdefault(path, _read_table(path))[_curve_key(report)] = rows
    for path, runs in tables.items():
        lines = [{**dict(zip(RUN, key, strict=True)), **row} for key in sorted(runs) for row in runs[key]]
        write_atomically(path, to_csv(lines, list(dict.fromkeys(name for row in lines for name in row))))


def _curve_key(report: Mapping[str, Any]) -> tuple[str, ...]:
    return report["preset"], options_text(report["options"]), str(report["seed"])


def _read_table(path: Path) -> dict[tuple[str, ...], Rows]:
    found: dict[tuple[str, ...], Rows] = {}
    for row in read_csv(path) if path.is_file() else ():
        own = {name: value for name, value in row.items() if name not in RUN}
        found.setdefault(tuple(row[name] for name in RUN), []).append(own)
    return found


def _make_curve(report: Mapping[str, Any], rows: Rows) -> Curve:
    told = {name: report[name] for name in ("experiment", "dataset", "method", "preset", "seed", "best_epoch")}
    return Curve(**told, columns={name: [float(row[name]) for row in rows] for name in rows[0]})
