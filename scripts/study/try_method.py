"""Try a method that the study does not have beside what is stored: only this method is trained.

An entry is a store of its own below the out folder: the method's file, its cells and their predictions.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import numpy as np
import torch

from cmixup.errors import InputError
from cmixup.training.trainer import RunResult
from datasets.common.fetch import sha256_of
from scripts.config.arguments import near_hint
from scripts.config.compose import compose_train
from scripts.driver.job import plan_job
from scripts.records.experiment import RESULTS
from scripts.stats.effects import BASE
from scripts.study.cells import train_missing, train_runs
from scripts.study.entry import with_entry
from scripts.study.rules import Rules, Run, StudyCell
from scripts.study.store import cells_done, read_store
from scripts.study.verdict import method_verdict

LITE, ALL = "lite", "all"
PROBE_ROWS, PROBE_EPOCHS = 1000, 20  # of a table on which steps are timed


def try_method(
    method: str, tables: str, conditions: Sequence[str], rules: Rules, *, out: Path, jobs: int = 0,
    results: Path = RESULTS,
) -> list[str]:  # fmt: skip
    """Train a method where no cell of it is stored, print the verdict, and return a line for what went wrong.

    Args:
        method: a name of configs/method, or the path of a file; see `scripts.study.entry`.
        tables: lite, all, or names between commas.
        conditions: settings of the rules.
        rules: of the study.
        out: where all that is written goes, below `entries/`.
        jobs: processes at a time; 0 is one a core.
        results: the store of the opponents.

    Raises:
        InputError: a wrong name, a method that cannot be trained or does not repeat, or a table without ERM.
    """
    entry, name = with_entry(rules, method)
    file = Path(entry.methods[name].get("file", ""))
    digest = sha256_of(file) if file.name else None
    store = out / "entries" / (f"{name}-{digest[:8]}" if digest else name)
    if not (cells := entry.cells(table_names(rules, tables), conditions, [name])):
        raise InputError(f"conditions must fit the tables, got {','.join(conditions)} of {tables}")
    places = {cell.key[:2] for cell in cells}
    stored = [r for r in read_store(entry, results, entries=True) if (r["table"], r["condition"]) in places]
    stored = [r for r in stored if r["method"] != name or r.get("entry", {}).get("sha256") == digest]
    lacking = places - {(r["table"], r["condition"]) for r in stored if r["method"] == BASE}
    if some := ", ".join(sorted("/".join(place) for place in lacking)):
        raise InputError(f"tables must have published cells of ERM, and these have none: {some}")
    seconds = probe_seconds(cells, entry)
    if digest:
        store.mkdir(parents=True, exist_ok=True)
        (store / file.name).write_bytes(file.read_bytes())
        entry, _ = with_entry(rules, str(store / file.name))  # a copy, which nobody edits meanwhile
    published = {(r["table"], r["condition"], r["method"]) for r in stored}
    todo = [cell for cell in cells if cell.key not in published | cells_done(store, entry)]
    print(f"{name}: {len(todo)} of {len(cells)} cells to train; all is written to {store}")
    if problems := train_missing(store, todo, entry, jobs, stored=results) if todo else []:
        return problems
    missing = {cell.key for cell in cells} - published
    every = [*stored, *(r for r in read_store(entry, store) if (r["table"], r["condition"], r["method"]) in missing)]
    for condition in conditions:
        print(method_verdict(every, condition, name, entry.level, entry.equal))
    print(f"Cost of an epoch: {seconds:.2f} times ERM's.")
    return []


def table_names(rules: Rules, tables: str) -> list[str]:
    """Return names of tables: the small ones, all, or those given."""
    every = [table.name for table in rules.tables]
    groups = {LITE: rules.lite_tables(), ALL: every}
    names = groups.get(tables) or tables.split(",")
    for name in names:
        if name not in every:
            raise InputError(f"tables must be {LITE}, {ALL} or names among {', '.join(every)}, got {name!r}"
                             f"{near_hint(name, [*groups, *every])}")  # fmt: skip
    return names


def probe_seconds(cells: Sequence[StudyCell], rules: Rules) -> float:
    """Return how many times ERM's an epoch of a method takes, on one of its tables.

    Raises:
        InputError: the method cannot be trained there, or gives other predictions when it is trained once more.
    """
    cell = min(cells, key=lambda c: (c.table.rows > PROBE_ROWS, abs(c.table.rows - PROBE_ROWS)))
    load = cache(plan_job(compose_train(rules.words(cell))).dataset.load)
    short = [f"train.epochs={PROBE_EPOCHS}", "train.patience=null"]

    def timed(method: str) -> tuple[float, list[RunResult]]:
        trials = rules.trials(method, 0, cell.table.name)[rules.shared :]
        commands = [rules.command(cell, [*rules.final_words(method, words), *short]) for words in trials]
        runs = [(plan_job(compose_train(words)), Run(0, 0)) for words in commands]
        started = time.perf_counter()
        results = train_runs(runs, load)
        return time.perf_counter() - started, results

    load(0)
    torch.set_num_threads(1)
    first, again = timed(cell.method), timed(cell.method)
    for one, other in zip(first[1], again[1], strict=True):
        if not np.array_equal(one.predictions["val"][""], other.predictions["val"][""], equal_nan=True):
            raise InputError(f"method {cell.method} gives other predictions when it is trained again with the same "
                             "seed: all that is random must come from the generator that it is given")  # fmt: skip
    return min(first[0], again[0]) / min(timed(BASE)[0] for _ in range(2))
