"""The study's cells in a store of runs, with the reader and writer of all runs (`scripts.records`)."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from scripts.driver.locks import LOCKS, holding_alone
from scripts.records.experiment import RESULTS
from scripts.records.published import keep_predictions, published_reports, write_reports
from scripts.records.rescored import settle_scores
from scripts.records.run_tables import UNROUNDED
from scripts.records.study_errors import row_key
from scripts.stats.scored import Parts
from scripts.study.rules import Rules

#: What a run's report has for itself; the rest is of its cell.
OF_RUN = ("experiment", "dataset", "model", "method", "preset", "options", "seed", "run", "words", "scores", "facts",
          "best_epoch", "split", UNROUNDED)  # fmt: skip

Report = dict[str, Any]
Record = dict[str, Any]  # of a cell, see `to_record`
Key = tuple[str, str, str]  # table, condition and method


def key_of(report: Mapping[str, Any]) -> Key:
    """Return table, condition and method of the cell that a report belongs to."""
    return report["dataset"], report["options"]["condition"], report["method"]


def to_record(reports: Iterable[Mapping[str, Any]]) -> Record:
    """Return a cell's record: what its runs share, and a row for each seed and trial, with scores such as `test`."""
    order = sorted(reports, key=lambda report: (report["seed"], report["options"].get("trial", -1)))
    trials, finals = ([r for r in order if ("trial" in r["options"]) == tried] for tried in (True, False))
    table, condition, method = key_of(finals[0])
    return {
        "table": table, "condition": condition, "method": method,
        "trials": [
            {"seed": r["seed"], "options": r["words"], "val": float(*r["scores"]["val"].values())} for r in trials
        ],
        "seeds": [
            {"seed": r["seed"], "split": r.get("split", r["seed"]), "options": r["words"],
             "best_epoch": r["best_epoch"],
             **{row_key(part, name): v for part, scores in r["scores"].items() for name, v in scores.items()}}
            for r in finals
        ],
        **{key: value for key, value in finals[0].items() if key not in OF_RUN},
    }  # fmt: skip


def read_store(rules: Rules, store: Path = RESULTS, *, entries: bool = False) -> list[Record]:
    """Return the records of all cells in a store, in the order of the rules.

    Args:
        rules: of the study.
        store: the folder.
        entries: whether those of methods that the rules do not have come, too, in the order of their keys.
    """
    cells: dict[Key, list[Report]] = {}
    for report in published_reports(store, [rules.experiment]):
        cells.setdefault(key_of(report), []).append(report)
    keys = [cell.key for cell in rules.cells() if cell.key in cells]
    keys += sorted(cells.keys() - set(keys)) if entries else []
    return [to_record(cells[key]) for key in keys]


def cells_done(store: Path, rules: Rules) -> set[Key]:
    """Return the keys of the cells by these rules that a store has."""
    return {key_of(report) for report in published_reports(store, [rules.experiment])}


def write_cells(store: Path, runs: Iterable[tuple[Report, Parts | None]]) -> None:
    """Write reports of runs, a table's together, with the predictions of those that have some, into a store."""
    for table, group in itertools.groupby(runs, key=lambda run: run[0]["dataset"]):
        every = list(group)
        with holding_alone(store / LOCKS, f"study {table}"):
            keep_predictions(store, [(report, parts) for report, parts in every if parts])
            write_reports(store, settle_scores(store, [report for report, _ in every]))
