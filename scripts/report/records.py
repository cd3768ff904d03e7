"""Runs as folders, and their reports as tidy rows.

A run's folder holds `config.yaml`, `report.json`, `history.csv`, `checkpoint.pt` and, written last, `DONE`. A folder
without `DONE` is not a result.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cmixup.errors import InputError

COLUMNS = (
    "experiment", "dataset", "model", "method", "preset", "layer", "bandwidth", "alpha", "options", "seed", "split",
    "metric", "value", "run",
)  # fmt: skip
KEY = tuple(c for c in COLUMNS if c not in ("value", "run"))


def rows(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a report as tidy rows with `COLUMNS`: one a split and metric, and its facts under split "train"."""
    options = " ".join(f"{k}={v}" for k, v in sorted(report["options"].items()))
    base = {name: report[name] for name in COLUMNS if name in report} | {"options": options}
    values = {
        **report["scores"],
        "train": {**_facts(report), "seconds": report["seconds"], "best_epoch": report["best_epoch"]},
    }
    return [
        {**base, "split": split, "metric": metric, "value": value}
        for split, scores in values.items()
        for metric, value in scores.items()
    ]


def _facts(report: Mapping[str, Any]) -> dict[str, float]:
    return {name: value for name, value in report["facts"].items() if name not in COLUMNS}


def check_unique(records: Iterable[Mapping[str, Any]]) -> None:
    """Raise `InputError` if two records share everything but value and run."""
    seen: dict[tuple, Any] = {}
    for record in records:
        key = tuple(str(record[name]) for name in KEY)
        if key in seen:
            raise InputError(f"runs {seen[key]} and {record['run']} are the same but for their value: {key}")
        seen[key] = record["run"]


def to_csv(records: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """Return records as CSV text; None becomes an empty field."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return stream.getvalue()


def read_csv(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file, every value as text."""
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))
