"""The study's cells in a store of runs: seeds and trials are runs there, with the reader and writer of all others.

A cell is a line for each seed with the winner's options, and a line for each trial. Folders that the study trains into
and results/ are such stores, so that publishing copies from one to the other, and restoring goes the other way.
"""

from __future__ import annotations

import itertools
import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cmixup.errors import InputError
from scripts.driver.locks import LOCKS, PUBLISHING, holding_alone
from scripts.driver.predictions import Parts, Scored
from scripts.driver.provenance import check_committed
from scripts.driver.runs import UNROUNDED
from scripts.protocol.cell import PARTS, Asked, Ended
from scripts.protocol.protocols import WEIGHTS, Protocol2
from scripts.protocol.rules import BASE, Rules, Run
from scripts.records.experiment import RESULTS
from scripts.records.packed import read_cells, read_rows, rows_key
from scripts.records.published import (
    cell_name,
    keep_predictions,
    predictions_file,
    published_reports,
    stored_files,
    unrounded_scores,
    with_predictions,
    write_reports,
)
from scripts.records.rescored import settle_scores
from scripts.records.seal import check_seal, seal_files
from scripts.records.study_errors import NRMSE, row_key, score_of

FOLDER = RESULTS / "study"
OLD_NAMES = {"baselines": "sea_level"}  # of rules, as the experiments of their published records are called
OF_CELL = ("table", "condition", "method")
OF_RUN = ("experiment", "dataset", "model", "method", "preset", "options", "seed", "run", "words", "scores", "facts",
          "best_epoch", "split", UNROUNDED)  # fmt: skip

Record = dict[str, Any]
Key = tuple[str, str, str]


def experiment_of(rules: Rules) -> str:
    """Return the experiment that runs by these rules belong to."""
    return f"study_{OLD_NAMES.get(rules.name, rules.name)}"


def to_runs(
    record: Mapping[str, Any], predictions: Sequence[Parts], rules: Protocol2
) -> list[tuple[Record, Parts | None]]:
    """Return a cell's runs and trials as reports of runs, those of runs with their predictions.

    Args:
        record: of the cell.
        predictions: of each of its runs.
        rules: of the study.
    """
    table, condition, method = key_of_record(record)
    own = {"experiment": experiment_of(rules), "dataset": table, "model": rules.backbone, "method": method,
           "preset": "default"}  # fmt: skip
    run, shared = f"{own['experiment']}/{table}/{condition}/{method}", dict(record)
    for key in (*OF_CELL, "trials", "seeds"):
        shared.pop(key)
    finals = [
        {**own, "options": {"condition": condition}, "seed": row["seed"], "run": f"{run}/seed={row['seed']}",
         "words": row["options"], "scores": {part: _part_scores(row, part) for part in PARTS}, "facts": {},
         "best_epoch": row["best_epoch"], "split": row["split"], **_unrounded(row), **shared}
        for row in record["seeds"]
    ]  # fmt: skip
    trials, places = [], Counter[int]()
    for trial in record["trials"]:
        seed, k = trial["seed"], places[trial["seed"]]
        places[seed] += 1
        trials.append(
            {**own, "options": {"condition": condition, "trial": k}, "seed": seed,
             "run": f"{run}/trial={k:02}/seed={seed}", "words": trial["options"],
             "scores": {"val": {rules.selection: trial["val"]}}, "facts": {}}
        )  # fmt: skip
    return [*zip(finals, predictions, strict=True), *((trial, None) for trial in trials)]


def _part_scores(row: Mapping[str, Any], part: str) -> dict[str, float]:
    """Return the scores of a part by name: `test` of a row is its `nrmse`, `test_nll` its `nll`."""
    return {score_of(part, key): value for key, value in row.items() if key.partition("_")[0] == part}


def to_record(reports: Iterable[Mapping[str, Any]]) -> Record:
    """Return a cell's record of the reports of its runs, the reverse of `to_runs`."""
    order = sorted(reports, key=lambda report: (report["seed"], report["options"].get("trial", -1)))
    finals, trials = [r for r in order if "trial" not in r["options"]], [r for r in order if "trial" in r["options"]]
    first = finals[0]
    return {
        **dict(zip(OF_CELL, key_of(first), strict=True)),
        "trials": [{"seed": r["seed"], "options": r["words"], "val": _trial_score(r)} for r in trials],
        "seeds": [_record_row(r) for r in finals],
        **{key: value for key, value in first.items() if key not in OF_RUN},
    }


def _record_row(report: Mapping[str, Any]) -> Record:
    """Return what a cell's record says of one run."""
    each = ((part, name, value) for part, own in report["scores"].items() for name, value in own.items())
    return {
        "seed": report["seed"], "split": report.get("split", report["seed"]), "options": report["words"],
        "best_epoch": report["best_epoch"],
        **{row_key(part, name): value for part, name, value in each}, **_unrounded(report),
    }  # fmt: skip


def _unrounded(about: Mapping[str, Any]) -> Record:
    return {UNROUNDED: about[UNROUNDED]} if UNROUNDED in about else {}


def _trial_score(trial: Mapping[str, Any]) -> float:
    """Return the score of a trial on validation."""
    (value,) = trial["scores"]["val"].values()
    return float(value)


def key_of(report: Mapping[str, Any]) -> Key:
    """Return table, condition and method of the cell that a report belongs to."""
    return report["dataset"], report["options"]["condition"], report["method"]


def key_of_record(record: Mapping[str, Any]) -> Key:
    """Return table, condition and method of a cell's record."""
    return record["table"], record["condition"], record["method"]


def read_store(rules: Rules, store: Path = RESULTS, *, entries: bool = False) -> list[Record]:
    """Return the records of all cells in a store, in the order of the rules.

    Args:
        rules: of the study.
        store: the folder.
        entries: whether those of methods that the rules do not have come, too, in the order of their keys.

    Raises:
        InputError: cells that were made by other rules.
    """
    cells: dict[Key, list[Mapping[str, Any]]] = {}
    for report in published_reports(store, [experiment_of(rules)]):
        cells.setdefault(key_of(report), []).append(report)
    keys = [cell.key for cell in rules.cells() if cell.key in cells]
    keys += sorted(cells.keys() - set(keys)) if entries else []
    found = [to_record(cells[key]) for key in keys]
    if other := [record for record in found if record["rules"] != rules.checksum]:
        raise InputError(f"{store} has {len(other)} cells that were made by other rules; move them away")
    return found


def cells_done(store: Path, rules: Rules) -> set[Key]:
    """Return the keys of the cells by these rules that a store has."""
    return {key_of_record(record) for record in read_store(rules, store)}


def write_cells(store: Path, runs: Iterable[tuple[Record, Parts | None]]) -> None:
    """Write reports of runs, a table's together, with the predictions of those that have some, into a store.

    What is written is sealed where the store has a seal.

    Raises:
        InputError: other test rows than the cells there have, or files that are not what was sealed; nothing has been
            written of their table then.
    """
    for table, every in itertools.groupby(runs, key=lambda run: run[0]["dataset"]):
        own = list(every)
        kept = [(report, parts) for report, parts in own if parts]
        with holding_alone(store / LOCKS, f"study {table}"):
            check_rows(store, kept)
            check_seal(store)
            keep_predictions(store, kept)
            write_reports(store, settle_scores(store, [report for report, _ in own]))
            stored = {path for report, _ in own for path in stored_files(store, report)}
            seal_files(store, {path.relative_to(store).as_posix() for path in stored})


def check_rows(store: Path, kept: Sequence[tuple[Record, Parts]]) -> None:
    """Raise `InputError` if runs of a table have other test rows than the cells of a store."""
    there: dict[tuple[str, bool, int], str] = {}
    for (name, seed, part), key in read_rows(predictions_file(store, kept[0][0])).items() if kept else ():
        there |= {(*_rows_of(name), seed): key} if part == "test" else {}
    for report, parts in kept:
        own = rows_key(parts["test"])
        if there.setdefault((*_rows_of(cell_name(report)), report["seed"]), own) != own:
            raise InputError(f"{report['run']} has other test rows of {report['dataset']} than {store}")


def _rows_of(cell: str) -> tuple[str, bool]:
    """Return what the test rows of a cell of the predictions depend on beside its seed."""
    return cell.partition(" ")[0], "condition=grouped" in cell


def known_runs(store: Path, rules: Protocol2, table: str, condition: str) -> dict[Asked, Ended]:
    """Return how the runs and trials of ERM on a table under a condition ended, which other cells need not train."""
    found: dict[Asked, Ended] = {}
    reports = published_reports(store, [experiment_of(rules)], [table])
    own = [report for report in reports if key_of(report) == (table, condition, BASE)]
    kept: dict[int, dict[str, Scored]] = {}
    for report in own:
        if "trial" in report["options"]:
            found[Run(report["seed"] // WEIGHTS, report["seed"]), tuple(report["words"])] = Ended(
                {row_key("val", rules.selection): _trial_score(report)}, {}
            )
            continue
        kept = kept or read_cells(predictions_file(store, report))[cell_name(report)]
        row = _record_row(report)
        run = Run(row.pop("split"), row.pop("seed"))
        found[run, tuple(row.pop("options"))] = Ended(row, kept[report["seed"]])
    return found


def copy_cells(source: Path, target: Path, rules: Rules, *, replace: bool = True, why: str = "") -> int:
    """Copy the cells of one store into another and return how many.

    Args:
        source, target: the stores.
        rules: of the study.
        replace: whether a cell takes the place of the one of its key; otherwise what the target has stays.
        why: other numbers than the target's are right; recorded beside the numbers that go.

    Raises:
        InputError: cells by other rules, by edited or unknown code, or with other test rows than the target's; with
            fewer runs than the target's; or with other numbers, and there is no `why`; or the target has files that
            are not what was sealed.
    """
    there, keys = cells_done(target, rules), cells_done(source, rules)
    keys -= set() if replace else there
    reports = [r for r in published_reports(source, [experiment_of(rules)]) if key_of(r) in keys]
    check_committed({"/".join(key_of(report)): report for report in reports if "commit" in report})
    reports = corrected_reports(reports, published_reports(target, [experiment_of(rules)]), why)
    with holding_alone(target / LOCKS, PUBLISHING):
        write_cells(target, with_predictions(source, reports))
    return len(keys)


def numbers_of(report: Mapping[str, Any]) -> str:
    """Return as text what must be equal where a run is the same."""
    about = {"words": report["words"], "scores": unrounded_scores(report), "best_epoch": report.get("best_epoch")}
    return json.dumps(about, sort_keys=True)


def corrected_reports(new: Sequence[Record], old: Iterable[Record], why: str) -> list[Record]:
    """Return reports that take the place of others; those of a cell whose numbers change say why, and what they were.

    Raises:
        InputError: a cell has fewer runs than the one whose place it takes, or other numbers without a reason.
    """
    ours, theirs = _by_cell(new), _by_cell(old)
    was: dict[Key, Record] = {}
    for key in ours.keys() & theirs.keys():
        if more := theirs[key].keys() - ours[key].keys():
            raise InputError(f"{'/'.join(key)} is published with more runs, such as {min(more)}")
        if any(numbers_of(report) != numbers_of(ours[key][run]) for run, report in theirs[key].items()):
            finals = [report for report in theirs[key].values() if "trial" not in report["options"]]
            mean = float(np.mean([report["scores"]["test"][NRMSE] for report in finals]))
            was[key] = {"why": why, "commit": finals[0].get("commit", ""), "test": mean}
    if was and not why:
        some = ", ".join(sorted("/".join(key) for key in was)[:3])
        raise InputError(
            f"{len(was)} cells are published with other numbers ({some}): corrects='what was wrong' replaces them"
        )
    return [{**r, "corrects": was[key_of(r)]} if key_of(r) in was and "trial" not in r["options"] else r for r in new]


def _by_cell(reports: Iterable[Record]) -> dict[Key, dict[str, Record]]:
    found: dict[Key, dict[str, Record]] = {}
    for report in reports:
        found.setdefault(key_of(report), {})[report["run"]] = report
    return found
