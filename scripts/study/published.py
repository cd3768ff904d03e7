"""The study's cells in a store of runs: seeds and trials are runs there, with the reader and writer of all others.

A cell is a line for each seed with the winner's options, and a line for each trial. Folders that the study trains into
and results/ are such stores, so that publishing copies from one to the other, and restoring goes the other way.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cmixup.errors import InputError
from scripts.driver.locks import LOCKS, alone
from scripts.driver.predictions import Parts, Scored, read_cells
from scripts.driver.provenance import check_committed
from scripts.records.experiment import RESULTS
from scripts.records.published import (
    cell_name,
    keep_predictions,
    predictions_file,
    published_reports,
    write_reports,
)
from scripts.study.rules import RULES, Rules

FOLDER = RESULTS / "study"
NRMSE = "nrmse"
OF_CELL = ("table", "condition", "method")
OF_RUN = ("experiment", "dataset", "model", "method", "preset", "options", "seed", "run", "words", "scores", "facts",
          "best_epoch")  # fmt: skip

Record = dict[str, Any]
Key = tuple[str, str, str]


def experiment_of(rules: Rules) -> str:
    """Return the experiment that runs by these rules belong to."""
    return "study" if rules.name == RULES.stem else f"study_{rules.name}"


def to_runs(
    record: Mapping[str, Any], predictions: Sequence[np.ndarray], targets: Sequence[np.ndarray], rules: Rules
) -> list[tuple[Record, Parts | None]]:
    """Return a cell's seeds and trials as reports of runs, those of seeds with their predictions.

    Args:
        record: of the cell.
        predictions, targets: of the test rows of each seed, `(n, d_y)`.
        rules: of the study.
    """
    table, condition, method = key_of_record(record)
    own = {"experiment": experiment_of(rules), "dataset": table, "model": "fcn3", "method": method, "preset": "default"}
    run, shared = f"{own['experiment']}/{table}/{condition}/{method}", dict(record)
    for key in (*OF_CELL, "options", "trials", "seeds"):
        shared.pop(key)
    finals = [
        {**own, "options": {"condition": condition}, "seed": row["seed"], "run": f"{run}/seed={row['seed']}",
         "words": record["options"], "scores": {part: {NRMSE: row[part]} for part in ("val", "test")}, "facts": {},
         "best_epoch": row["best_epoch"], **shared}
        for row in record["seeds"]
    ]  # fmt: skip
    trials = [
        {**own, "options": {"condition": condition, "trial": k}, "seed": rules.tune_seed,
         "run": f"{run}/trial={k:02}/seed={rules.tune_seed}", "words": trial["options"],
         "scores": {"val": {NRMSE: trial["val"]}}, "facts": {}}
        for k, trial in enumerate(record["trials"])
    ]  # fmt: skip
    parts: list[Parts | None] = [
        {"test": Scored({"": f}, y, np.zeros(len(y), np.uint8))} for f, y in zip(predictions, targets, strict=True)
    ]
    return [*zip(finals, parts, strict=True), *((trial, None) for trial in trials)]


def to_record(reports: Iterable[Mapping[str, Any]]) -> Record:
    """Return a cell's record of the reports of its runs, the reverse of `to_runs`."""
    order = sorted(reports, key=lambda report: (report["options"].get("trial", -1), report["seed"]))
    finals, trials = [r for r in order if "trial" not in r["options"]], [r for r in order if "trial" in r["options"]]
    first = finals[0]
    return {
        **dict(zip(OF_CELL, key_of(first), strict=True)),
        "options": first["words"],
        "trials": [{"options": r["words"], "val": r["scores"]["val"][NRMSE]} for r in trials],
        "seeds": [
            {"seed": r["seed"], **{p: r["scores"][p][NRMSE] for p in r["scores"]}, "best_epoch": r["best_epoch"]}
            for r in finals
        ],
        **{key: value for key, value in first.items() if key not in OF_RUN},
    }


def key_of(report: Mapping[str, Any]) -> Key:
    """Return table, condition and method of the cell that a report belongs to."""
    return report["dataset"], report["options"]["condition"], report["method"]


def key_of_record(record: Mapping[str, Any]) -> Key:
    """Return table, condition and method of a cell's record."""
    return record["table"], record["condition"], record["method"]


def read(rules: Rules, store: Path = RESULTS) -> list[Record]:
    """Return the records of all cells in a store, in the order of the rules.

    Raises:
        InputError: cells that were made by other rules.
    """
    cells: dict[Key, list[Mapping[str, Any]]] = {}
    for report in published_reports(store, [experiment_of(rules)]):
        cells.setdefault(key_of(report), []).append(report)
    found = [to_record(cells[cell.key]) for cell in rules.cells() if cell.key in cells]
    if other := [record for record in found if record["rules"] != rules.checksum]:
        raise InputError(f"{store} has {len(other)} cells that were made by other rules; move them away")
    return found


def done(store: Path, rules: Rules) -> set[Key]:
    """Return the keys of the cells by these rules that a store has."""
    return {key_of_record(record) for record in read(rules, store)}


def write(store: Path, runs: Iterable[tuple[Record, Parts | None]]) -> None:
    """Write reports of runs, a table's together, with the predictions of those that have some, into a store.

    Raises:
        InputError: other test rows than the cells there have; nothing has been written of their table then.
    """
    for table, every in itertools.groupby(runs, key=lambda run: run[0]["dataset"]):
        own = list(every)
        kept = [(report, parts) for report, parts in own if parts]
        with alone(store / LOCKS, f"study {table}"):
            _check_rows(store, kept)
            keep_predictions(store, kept)
            write_reports(store, [report for report, _ in own])


def _check_rows(store: Path, kept: Sequence[tuple[Record, Parts]]) -> None:
    there: dict[int, np.ndarray] = {}
    for seeds in read_cells(predictions_file(store, kept[0][0])).values() if kept else ():
        there |= {seed: parts["test"].target for seed, parts in seeds.items()}
    for report, parts in kept:
        if not np.array_equal(there.setdefault(report["seed"], parts["test"].target), parts["test"].target):
            raise InputError(f"{report['run']} has other test rows of {report['dataset']} than {store}")


def copy(source: Path, target: Path, rules: Rules, *, replace: bool = True) -> int:
    """Copy the cells of one store into another and return how many.

    Args:
        source, target: the stores.
        rules: of the study.
        replace: whether a cell takes the place of the one of its key; otherwise what the target has stays.

    Raises:
        InputError: cells by other rules, by edited or unknown code, or with other test rows than the target's.
    """
    there, keys = done(target, rules), done(source, rules)
    keys -= set() if replace else there
    reports = [r for r in published_reports(source, [experiment_of(rules)]) if key_of(r) in keys]
    check_committed({"/".join(key_of(report)): report for report in reports if "commit" in report})
    cells = functools.lru_cache(maxsize=1)(read_cells)
    kept = (cells(predictions_file(source, r)).get(cell_name(r), {}).get(r["seed"]) for r in reports)
    write(target, zip(reports, kept, strict=True))
    return len(keys)
