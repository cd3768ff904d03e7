"""Train the cells that are missing, a table and condition at a time, in processes that share nothing but the folder."""

from __future__ import annotations

import itertools
import multiprocessing
import time
from collections.abc import Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from pathlib import Path

from cmixup.errors import InputError
from scripts.study.cell import Loader, train_cell
from scripts.study.rules import Cell, Rules, load_rules
from scripts.study.store import is_done, path_of, save

POLL_SECONDS = 5.0


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
    todo = [cell for group in groups for cell in group]
    print(
        f"{len(cells) - len(todo)} of {len(cells)} cells are done; training {len(todo)}, {jobs} at a time", flush=True
    )
    if not todo:
        return []
    started, problems = time.monotonic(), list[str]()
    deadline = None if minutes is None else time.time() + 60 * minutes
    total = sum(cost(cell, rules) for cell in todo)
    with ProcessPoolExecutor(min(jobs, len(groups)), multiprocessing.get_context("spawn")) as pool:
        futures: dict[Future[str], str] = {
            pool.submit(train_group, folder, [cell.key for cell in group], deadline): " ".join(group[0].key[:2])
            for group in groups
        }
        pending, shown = set(futures), -1
        while pending:
            done, pending = wait(pending, POLL_SECONDS, FIRST_COMPLETED)
            problems += [f"{futures[future]}: {problem}" for future in done if (problem := future.result())]
            finished = [cell for cell in todo if path_of(folder, cell).is_file()]
            if len(finished) != shown:
                shown, spent = len(finished), time.monotonic() - started
                share = sum(cost(cell, rules) for cell in finished) / total
                left = f", about {spent * (1 - share) / share / 60:.0f} minutes left" if share else ""
                print(f"{shown} of {len(todo)} cells trained in {spent / 60:.1f} minutes{left}", flush=True)
    return problems


def train_group(folder: Path, keys: Sequence[tuple[str, str, str]], deadline: float | None) -> str:
    """Train cells of one table and condition in a worker; return what went wrong, or nothing."""
    rules, load = load_rules(), Loader()
    for table, condition, method in keys:
        if deadline is not None and time.time() > deadline:
            return ""
        (cell,) = rules.cells([table], [condition], [method])
        try:
            save(folder, cell, train_cell(cell, rules, load))
        except InputError as error:
            return str(error)
    return ""
