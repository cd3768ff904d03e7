"""The way into the study for a method that it does not have: try it beside what is stored, and check what others tried.

A submission is a store of its own below the out folder: the method's file, its cells and their predictions. Whoever is
to believe it trains some of its tables again (`check`); `publish` takes it into results/, its file into
examples/entries.
"""

from __future__ import annotations

import random
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np
import torch

from cmixup.errors import InputError
from cmixup.processes import core_count
from cmixup.training.trainer import RunResult
from datasets.common.damaged import naming
from datasets.common.fetch import sha256_of
from scripts.config.arguments import near_hint
from scripts.config.compose import compose_train
from scripts.driver.job import plan_job
from scripts.effects.verdicts import method_verdict
from scripts.machine.kernels import asking_kernels, kernels_of, what_is_here, word_for
from scripts.plan.schedule import workers_at_once
from scripts.protocol.cell import train_runs
from scripts.protocol.protocols import Protocol2
from scripts.protocol.published import (
    cells_done,
    copy_cells,
    experiment_of,
    key_of,
    key_of_record,
    numbers_of,
    read_store,
)
from scripts.protocol.rules import BASE, Run, StudyCell
from scripts.protocol.work import train_missing
from scripts.records.experiment import RESULTS
from scripts.records.published import published_reports
from scripts.records.rescored import verify_scores
from scripts.study.submission import SUBMISSIONS, with_submission

Record = Mapping[str, Any]
LITE, ALL, RANDOM = "lite", "all", "random"
PROBE_ROWS, PROBE_EPOCHS = 1000, 20  # of a table on which steps are timed
# Wall time over CPU time of one process, from which on other work has the cores, and seconds that tell nothing of it.
BUSY, SHORTEST = 1.2, 0.2


def try_method(
    method: str, tables: str, conditions: Sequence[str], rules: Protocol2, *, out: Path, jobs: int = 0,
    within: float = 0, results: Path = RESULTS,
) -> list[str]:  # fmt: skip
    """Train a method where no cell of it is stored, print what comes of it, and return a line for what went wrong.

    Args:
        method: a name of configs/method, or the path of a file; see `scripts.study.submission`.
        tables: lite, all, or names between commas.
        conditions: settings of the rules.
        rules: of protocol 2.
        out: where all that is written goes, below `entries/`.
        jobs: processes at a time; 0 is one a core.
        within: begin no cell after so many minutes; 0 is no limit.
        results: the store of the opponents.

    Raises:
        InputError: a wrong name, a method that cannot be trained or does not repeat, or a table without ERM.
    """
    entry, name = with_submission(rules, method)
    file = Path(entry.methods[name].get("file", ""))
    digest = sha256_of(file) if file.name else None
    folder = out / "entries" / (f"{name}-{digest[:8]}" if digest else name)
    if not (cells := entry.cells(tables_of(rules, tables), conditions, [name])):
        raise InputError(f"conditions must fit the tables, got {','.join(conditions)} of {tables}")
    places = {cell.key[:2] for cell in cells}
    stored = [r for r in read_store(entry, results, entries=True) if key_of_record(r)[:2] in places]
    stored = [r for r in stored if r["method"] != name or r.get("entry", {}).get("sha256") == digest]
    lacking = places - {key_of_record(r)[:2] for r in stored if r["method"] == BASE}
    if some := ", ".join(sorted("/".join(place) for place in lacking)):
        raise InputError(f"tables must have published cells of ERM, and these have none: {some}")
    steps, slowed = with_slowdown(partial(probe_speed, cells, entry), jobs)
    if digest:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / file.name).write_bytes(file.read_bytes())
        entry, _ = with_submission(rules, str(folder / file.name))  # a copy, which nobody edits meanwhile
    published = {key_of_record(r) for r in stored}
    todo = [cell for cell in cells if cell.key not in published | cells_done(folder, entry)]
    wait = max(1, minutes_needed(todo, stored, entry, jobs) * steps * slowed) if todo else 0
    busy = f" while other work makes them {slowed:.1f} times as long" if slowed > 1 and todo else ""
    print(f"{name}: {len(todo)} of {len(cells)} cells to train, about {wait:.0f} min{busy}; all is written to {folder}")
    if problems := train_missing(folder, todo, entry, jobs, within, stored=results) if todo else []:
        return problems
    if left := {cell.key for cell in todo} - cells_done(folder, entry):
        print(f"{len(left)} cells are left: the same command goes on with them, and says in the end what came of all")
        return []
    own = {cell.key for cell in cells} - published
    every = [*stored, *(r for r in read_store(entry, folder) if key_of_record(r) in own)]
    for condition in conditions:
        print(method_verdict(every, condition, name, entry.level, entry.equal))
    best = ([row["best_epoch"] for r in every if r["method"] == each for row in r["seeds"]] for each in (name, BASE))
    ours, erm = (np.minimum(np.array(each) + entry.patience, entry.epochs).mean() for each in best)
    print(f"Cost: {steps * ours / erm:.2f} times ERM's, {steps:.2f} an epoch and {ours / erm:.2f} the epochs.")
    return []


def tables_of(rules: Protocol2, tables: str) -> list[str]:
    """Return names of tables: the small ones, all, or those given."""
    every = [table.name for table in rules.tables]
    known = {LITE: rules.lite_tables(), ALL: every}
    found = known.get(tables) or tables.split(",")
    for name in found:
        if name not in every:
            raise InputError(f"tables must be {LITE}, {ALL} or names among {', '.join(every)}, got {name!r}"
                             f"{near_hint(name, [*known, *every])}")  # fmt: skip
    return found


def probe_speed(cells: Sequence[StudyCell], rules: Protocol2) -> float:
    """Return how many times ERM's an epoch of a method takes, on one of its tables.

    Raises:
        InputError: the method cannot be trained there, or gives other predictions when it is trained once more.
    """
    cell = min(cells, key=lambda c: (c.table.rows > PROBE_ROWS, abs(c.table.rows - PROBE_ROWS)))
    load = cache(plan_job(compose_train(rules.words(cell))).dataset.load)
    short = [f"train.epochs={PROBE_EPOCHS}", "train.patience=null"]

    def timed(method: str) -> tuple[float, list[RunResult]]:
        trials = [rules.final_words(method, each) for each in rules.trials(method, 0, cell.table.name)[rules.shared :]]
        own = [(plan_job(compose_train(rules.command(cell, [*words, *short]))), Run(0, 0)) for words in trials]
        started = time.perf_counter()
        results = train_runs(own, load)
        return time.perf_counter() - started, results

    load(0)
    torch.set_num_threads(1)
    first, again = timed(cell.method), timed(cell.method)
    for one, other in zip(first[1], again[1], strict=True):
        if not np.array_equal(one.predictions["val"][""], other.predictions["val"][""], equal_nan=True):
            raise InputError(f"method {cell.method} gives other predictions when it is trained again with the same "
                             "seed: all that is random must come from the generator that it is given")  # fmt: skip
    return min(first[0], again[0]) / min(timed(BASE)[0] for _ in range(2))


def with_slowdown(probe: Callable[[], float], jobs: int) -> tuple[float, float]:
    """Return what a probe returns, and how many times as long as alone `jobs` processes take now, 1 on a free machine.

    The probe waited for a core while other work had it: wall time over CPU time. On C cores beside L busy processes
    that is (L + 1) / C of one process, and (L + jobs) / C of several.
    """
    wall, cpu = time.perf_counter(), time.process_time()
    found = probe()
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    if wall < SHORTEST or wall < BUSY * cpu:
        return found, 1.0
    return found, wall / cpu + ((jobs or workers_at_once(cpu=True)) - 1) / core_count()


def minutes_needed(cells: Sequence[StudyCell], stored: Sequence[Record], rules: Protocol2, jobs: int) -> float:
    """Return how long cells would take if a network took what it did with the fastest stored method of its table.

    The slower ones of `stored` may have waited for other work. `jobs` processes share the cells, 0 is one a core.
    """
    costs = [0.0]
    for cell in cells:
        own = [r for r in stored if key_of_record(r)[:2] == cell.key[:2]]
        each = min(r["seconds"] / (len(r["trials"]) + len(r["seeds"])) for r in own)
        costs.append(each * sum(len(tuning.trials) + len(tuning.finals) for tuning in rules.tunings(cell)))
    return max(sum(costs) / (jobs or workers_at_once(cpu=True)), *costs) / 60


class Submission:
    """What a folder holds of one method: its `name`, its `file` or None, the `rules` with it, and its `records`.

    Args:
        folder: a submission, or results/.
        method: its name, where the folder has several.
        rules: of protocol 2.

    Raises:
        InputError: no submission, several methods and no name, or another file than the cells were made with.
    """

    def __init__(self, folder: Path, method: str, rules: Protocol2):
        with naming(folder, "a submission"):
            every = read_store(rules, folder, entries=True)
        names = sorted({record["method"] for record in every})
        self.folder, self.name = folder, method or (names[0] if len(names) == 1 else "")
        if self.name not in names:
            listed = ", ".join(names) or "no method"
            raise InputError(f"submission {folder} has cells of {listed}: say which with method=")
        self.records = [record for record in every if record["method"] == self.name]
        self.file, (told, *more) = None, {tuple(record.get("entry", {}).values()) for record in self.records}
        if told:
            places = [parent / told[0] for parent in (folder, SUBMISSIONS)]
            self.file = next((path for path in places if path.is_file()), places[0])
            if more or not self.file.is_file() or sha256_of(self.file) != told[1]:
                raise InputError(f"submission {folder} was made with another {told[0]} than {self.file}")
        self.rules = rules if self.name in rules.methods else with_submission(rules, str(self.file or self.name))[0]


def check_submission(
    entry: Submission, count: int = 3, seed: int | None = None, jobs: int = 0, results: Path = RESULTS
) -> list[str]:
    """Train a submission again on some of its tables, drawn, and return a line for whatever is not as it says.

    Scores must follow from predictions, options from the rules, the trials that all methods share from ERM's.

    Args:
        entry: what is to be believed.
        count: of tables.
        seed: of the drawing; None draws one.
        jobs: processes at a time; 0 is one a core.
        results: the store with ERM.
    """
    rules, wrong = entry.rules, [] if entry.folder.samefile(results) else verify_scores(entry.folder).wrong
    erm = {key_of_record(r)[:2]: r for r in read_store(rules, results) if r["method"] == BASE}
    cells = {cell.key: cell for cell in rules.cells(methods=[entry.name])}
    for record in entry.records:
        key = key_of_record(record)
        wrong += [f"{'/'.join(key)}: {line}" for line in find_breaches(record, cells[key], erm[key[:2]], rules)]
    tables = sorted({record["table"] for record in entry.records})
    seed = random.randrange(10**6) if seed is None else seed  # noqa: S311 - no secret
    drawn = random.Random(seed).sample(tables, min(count, len(tables)))  # noqa: S311
    by_kernels: dict[str, list[StudyCell]] = {}
    for record in (r for r in entry.records if r["table"] in drawn and not wrong):
        by_kernels.setdefault(kernels_of(record), []).append(cells[key_of_record(record)])
    print(f"{len(entry.records)} cells of {entry.name}; training again {', '.join(drawn)} (seed={seed})", flush=True)
    for made_with, own in by_kernels.items():
        if (word := word_for(made_with)) is None:
            wrong.append(f"{len(own)} cells cannot be trained again here: made with {made_with}; {what_is_here()}")
            continue
        with asking_kernels(word), tempfile.TemporaryDirectory(prefix="cmixup-check-") as again:
            wrong += train_missing(Path(again), own, rules, jobs, stored=results)
            wrong += [line for cell in own for line in compare_runs(entry.folder, Path(again), cell, rules)]
    return wrong


def find_breaches(record: Record, cell: StudyCell, erm: Record, rules: Protocol2) -> Iterator[str]:
    """Yield what of a cell's record is not as the rules and the record of ERM say; nothing is trained."""
    known = {(trial["seed"], *trial["options"]): trial["val"] for trial in erm["trials"]}
    for tuning in rules.tunings(cell):
        own = [trial for trial in record["trials"] if trial["seed"] == tuning.at.seed]
        rows = [(row["seed"], row["options"]) for row in record["seeds"] if row["split"] == tuning.at.split]
        if [trial["options"] for trial in own] != tuning.trials:
            yield f"the trials of split {tuning.at.split} are not those that the rules draw"
            continue
        if any(trial["val"] != known.get((trial["seed"], *trial["options"]), trial["val"]) for trial in own):
            yield f"trials of split {tuning.at.split} have other scores than those published of ERM"
        best = rules.final_words(cell.method, own[int(np.argmin([trial["val"] for trial in own]))]["options"])
        if rows != [(run.seed, best) for run in tuning.finals]:
            yield f"the runs of split {tuning.at.split} are not of its best trial"


def compare_runs(folder: Path, again: Path, cell: StudyCell, rules: Protocol2) -> Iterator[str]:
    """Yield a line if a cell that was trained again has other numbers, and print one if it has not."""
    reports = (published_reports(store, [experiment_of(rules)], [cell.table.name]) for store in (folder, again))
    old, new = ({r["run"]: numbers_of(r) for r in each if key_of(r) == cell.key} for each in reports)
    if other := [run for run in old if new.get(run) != old[run]]:
        yield f"{len(other)} of {len(old)} runs differ, first {other[0]}: {old[other[0]]}, here {new.get(other[0])}"
    else:
        print(f"{'/'.join(cell.key)}: {len(old)} runs equal to the last bit")


def publish_submission(entry: Submission, why: str = "", results: Path = RESULTS, entries: Path = SUBMISSIONS) -> int:
    """Take a submission into a store, and its file into the folder of those; return how many cells it has.

    Args:
        entry: which.
        why: what was wrong with the cells or the file of its name whose place it takes; see `published.copy`.
        results: the store.
        entries: the folder.

    Raises:
        InputError: another file of the name is there, and no `why`, or more cells of it than of this one.
    """
    target = entries / entry.file.name if entry.file else None
    if entry.file and target and target.is_file() and sha256_of(target) != sha256_of(entry.file):
        there = {key for key in cells_done(results, entry.rules) if key[2] == entry.name}
        if lacking := there - {key_of_record(record) for record in entry.records}:
            raise InputError(
                f"submission {entry.folder} lacks {len(lacking)} cells that another {target.name} has published"
            )
        if not why:
            raise InputError(f"{target} is another file: corrects='what was wrong' replaces it")
    n = copy_cells(entry.folder, results, entry.rules, why=why)
    if entry.file and target:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(entry.file.read_bytes())
    return n
