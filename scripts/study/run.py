"""Train the cells that are missing, a table and condition at a time, in processes that share nothing but the folder."""

from __future__ import annotations

import itertools
import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from cmixup.files import write_atomically
from scripts.driver.compose import compose_train
from scripts.driver.locks import LOCKS, alone
from scripts.driver.plan import plan
from scripts.driver.workers import work_off
from scripts.study.cell import Loader, train_cell
from scripts.study.rules import Cell, Rules
from scripts.study.store import is_done, save, traits_path
from scripts.study.traits import describe


def cost(cell: Cell, rules: Rules) -> float:
    """Return about how long a cell takes, in arbitrary units: rows that are trained on, and what every cell costs."""
    rows = 0.6 * min(cell.table.rows, rules.max_rows)
    return 400 + min(rows, cell.condition.train_rows or rows)


def missing(folder: Path, cells: Sequence[Cell], rules: Rules) -> list[list[Cell]]:
    """Return the cells to train, those of one table and condition together, the most costly first."""
    left = [cell for cell in cells if not is_done(folder, cell, rules)]
    groups = [list(group) for _, group in itertools.groupby(left, key=lambda cell: cell.key[:2])]
    return sorted(groups, key=lambda group: -sum(cost(cell, rules) for cell in group))


def train_missing(
    folder: Path, cells: Sequence[Cell], rules: Rules, jobs: int = 1, minutes: float | None = None
) -> list[str]:
    """Train what is missing, print how far it is, and return a line for every table that could not be trained.

    Args:
        folder: of the cells; one that is done is not trained again.
        cells: which.
        rules: of the study.
        jobs: processes at a time.
        minutes: begin no cell after so long; None is no limit.
    """
    groups = missing(folder, cells, rules)
    todo = {cell.key: cost(cell, rules) for group in groups for cell in group}
    print(
        f"{len(cells) - len(todo)} of {len(cells)} cells are done; training {len(todo)}, {jobs} at a time", flush=True
    )
    started, total, spent, problems = time.monotonic(), sum(todo.values()), list[float](), list[str]()
    deadline = None if minutes is None else time.time() + 60 * minutes
    tasks = {" ".join(group[0].key[:2]): (folder, group, rules, deadline) for group in groups}

    def show(name: str, ended: bool, told: Any) -> None:
        if ended:
            problems.extend([f"{name}: {told}"] if told else [])
            return
        spent.append(todo[told])
        passed, share = (time.monotonic() - started) / 60, sum(spent) / total
        print(
            f"{' '.join(told)}: {len(spent)} of {len(todo)} cells trained in {passed:.1f} minutes, about "
            f"{passed * (1 - share) / share:.0f} left",
            flush=True,
        )

    work_off(tasks, train_group, jobs, show)
    return problems


def train_group(task: tuple[Path, Sequence[Cell], Rules, float | None], tell: Callable[[Any], None]) -> None:
    """Train cells of one table and condition in a worker, and tell each that is done.

    Args:
        task: the folder, the cells, the rules, and when to begin no more.
        tell: called with the key of a cell.
    """
    folder, cells, rules, deadline = task
    load = Loader()
    for cell in cells:
        if deadline is not None and time.time() > deadline:
            return
        with alone(folder / LOCKS, " ".join(cell.key)):
            if not is_done(folder, cell, rules):  # another command may have trained it
                save(folder, cell, train_cell(cell, rules, load))
        tell(cell.key)


def describe_missing(folder: Path, cells: Sequence[Cell], rules: Rules) -> int:
    """Note the traits of every table and condition that has none, of the tuning seed's rows; return how many."""
    count = 0
    for key, group in itertools.groupby(cells, key=lambda cell: cell.key[:2]):
        path = traits_path(folder, *key)
        if not path.is_file():
            train = plan(compose_train(rules.words(next(group)))).dataset.load(rules.tune_seed).train
            found = describe(train.x.numpy(), train.y.numpy())
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, json.dumps({"table": key[0], "condition": key[1], "traits": found}) + "\n")
            count += 1
    return count
