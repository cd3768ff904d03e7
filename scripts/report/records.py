"""Reports of runs as tidy rows, and rows as CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from cmixup.errors import InputError

RECORD_COLUMNS = (
    "experiment", "dataset", "model", "method", "preset", "layer", "bandwidth", "alpha", "options", "seed", "split",
    "metric", "value", "run",
)  # fmt: skip
RECORD_KEY = tuple(c for c in RECORD_COLUMNS if c not in ("value", "run"))


def rows(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a report as tidy rows with `RECORD_COLUMNS`: one a split and metric, and its facts under split "train".

    Options stay a mapping from key to value; `records_csv` prints them as text.
    """
    base = {name: report[name] for name in RECORD_COLUMNS if name in report}
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
    return {name: value for name, value in report["facts"].items() if name not in RECORD_COLUMNS}


def options_text(options: Mapping[str, Any]) -> str:
    """Return options as they are printed, in the order of their keys."""
    return " ".join(f"{key}={value}" for key, value in sorted(options.items()))


def records_csv(records: Iterable[Mapping[str, Any]]) -> str:
    """Return tidy rows as the text of results/records.csv."""
    return to_csv([{**r, "options": options_text(r["options"])} for r in records], RECORD_COLUMNS)


def check_unique(records: Iterable[Mapping[str, Any]]) -> None:
    """Raise `InputError` if two records share everything but value and run."""
    seen: dict[tuple, Any] = {}
    for record in records:
        key = tuple(options_text(record[name]) if name == "options" else str(record[name]) for name in RECORD_KEY)
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
