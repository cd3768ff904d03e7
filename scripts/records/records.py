"""Reports of runs as tidy rows, the better layer of each method chosen, and rows as CSV."""

from __future__ import annotations

import contextlib
import csv
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from cmixup.errors import InputError
from cmixup.metrics import metric_of

RECORD_COLUMNS = (
    "experiment", "dataset", "model", "method", "preset", "layer", "bandwidth", "alpha", "options", "seed", "split",
    "metric", "value", "run",
)  # fmt: skip
Report = Mapping[str, Any]
LAYER = "method.layer"
VARIANTS = "_variants"  # ends the experiment of runs at the layer that was not chosen


def report_rows(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a report as tidy rows with `RECORD_COLUMNS`: one a split and metric, and its facts under split "train".

    Options stay a mapping from key to value; `records_csv` prints them as text.
    """
    facts = {name: value for name, value in report["facts"].items() if name not in RECORD_COLUMNS}
    base = {name: report[name] for name in RECORD_COLUMNS if name in report}
    values = {**report["scores"], "train": {**facts, "seconds": report["seconds"], "best_epoch": report["best_epoch"]}}
    return [
        {**base, "split": split, "metric": metric, "value": value}
        for split, scores in values.items()
        for metric, value in scores.items()
    ]


def options_text(options: Mapping[str, Any]) -> str:
    """Return options as they are printed, in the order of their keys."""
    return " ".join(f"{key}={value}" for key, value in sorted(options.items()))


def records_frame(reports: Iterable[Mapping[str, Any]]) -> pd.DataFrame:
    """Return the tidy rows of reports as one table; options are mappings there, and numbers stay as they are."""
    return pd.DataFrame([row for r in reports for row in report_rows(r)], columns=list(RECORD_COLUMNS), dtype=object)


def select_records(records: pd.DataFrame, **where: Any) -> pd.DataFrame:
    """Return the records whose columns equal `where`."""
    for column, value in where.items():
        same = records[column].map(value.__eq__) if isinstance(value, dict) else records[column] == value
        records = records[same.astype(bool)]
    return records


def by_seed(records: pd.DataFrame, **where: Any) -> dict[int, float]:
    """Return test values by seed of the records whose columns equal `where`; nothing where there are none."""
    return values_by_seed(select_records(records, split="test", **where), where)


def values_by_seed(records: pd.DataFrame, where: Mapping[str, Any]) -> dict[int, float]:
    """Return the values of records by their seed; of two for one seed the error names `where`."""
    seeds = records["seed"]
    for seed in seeds[seeds.duplicated()]:
        raise InputError(f"records hold seed {seed} twice for {where}, and other columns differ")
    return {int(seed): float(value) for seed, value in zip(seeds, records["value"], strict=True)}


def records_csv(records: pd.DataFrame) -> str:
    """Return tidy rows as the text of results/records.csv."""
    texts = records.assign(options=records["options"].map(options_text), value=records["value"].map(repr))
    return texts.to_csv(index=False, lineterminator="\n")


def to_csv(records: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """Return rows as CSV text; None and NaN become an empty field."""
    return pd.DataFrame(list(records), columns=list(columns), dtype=object).to_csv(index=False, lineterminator="\n")


def plain_cell(value: Any) -> Any:
    """Return a value as a spreadsheet shows it: a text that it would compute gets an apostrophe; numbers stay."""
    if not isinstance(value, str) or not value.startswith(("=", "+", "-", "@", "\t", "\r")):
        return value
    with contextlib.suppress(ValueError):
        float(value)
        return value
    return f"'{value}"


def read_csv(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file, every value as text."""
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def choose_variants(reports: Sequence[Report]) -> list[dict[str, Any]]:
    """Keep, of runs that differ in their layer alone, the layer with the best mean validation score on shared seeds.

    The others are recorded as `<experiment>_variants`. The layer has a column of its own, so it is no longer listed
    among the options that differ. Where no seed has all variants, all seeds count.
    """
    rows = [(repr(_cell_key(r)), r["layer"], r["seed"], _validation_loss(r)) for r in reports]
    runs = pd.DataFrame(rows, columns=["cell", "layer", "seed", "loss"])
    layers = runs.groupby("cell")["layer"].transform("nunique")
    shared = runs.groupby(["cell", "seed"])["layer"].transform("nunique") == layers
    counted = runs[shared | ~shared.groupby(runs["cell"]).transform("any")]
    means = counted.groupby(["cell", "layer"], sort=False)["loss"].mean().fillna(math.inf)
    best, chosen = set(means.groupby(level="cell").idxmin()), []
    for report, cell in zip(reports, runs["cell"], strict=True):
        suffix = "" if (cell, report["layer"]) in best else VARIANTS
        options = {key: value for key, value in report["options"].items() if key != LAYER}
        chosen.append({**report, "experiment": report["experiment"] + suffix, "options": options})
    return sorted(chosen, key=lambda report: str(report["run"]))


def _cell_key(report: Report) -> tuple:
    options = tuple(sorted((k, str(v)) for k, v in report["options"].items() if k != LAYER))
    return (report["experiment"], report["dataset"], report["model"], report["method"], report["preset"], options)


def validation_score(report: Report) -> float:
    """Return the validation score that a run's checkpoint was selected by."""
    return float(report["scores"]["val"][report["selection"]])


def _validation_loss(report: Report) -> float:
    score = validation_score(report)
    return score if metric_of(report["selection"]).lower_is_better else -score
