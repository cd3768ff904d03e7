"""The cells that a folder lacks, trained a table and condition at a time in processes that share nothing but it."""

from __future__ import annotations

import itertools
import math
import time
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any

from cmixup.processes import core_count
from scripts.config.compose import compose_train
from scripts.driver.job import plan_job
from scripts.driver.locks import LOCKS, holding_alone
from scripts.plan.schedule import Item, train_items
from scripts.protocol.cell import check_packages, fit_cell, train_cell
from scripts.protocol.protocols import Protocol2, SeaLevel
from scripts.protocol.published import cells_done, check_rows, known_runs, to_runs, write_cells
from scripts.protocol.rules import BASE, StudyCell


def cell_cost(cell: StudyCell, rules: Protocol2) -> float:
    """Return about how long a cell takes, in arbitrary units: rows that are trained on, and what every cell costs."""
    rows = 0.6 * min(cell.table.rows, rules.max_rows)
    return 400 + min(rows, cell.condition.train_rows or rows)


def missing_cells(folder: Path, cells: Sequence[StudyCell], rules: Protocol2) -> list[list[StudyCell]]:
    """Return the cells to train, those of one table and condition together, the most costly first."""
    there = cells_done(folder, rules)
    groups = itertools.groupby((cell for cell in cells if cell.key not in there), key=lambda cell: cell.key[:2])
    return sorted(
        (list(group) for _, group in groups), key=lambda group: -sum(cell_cost(cell, rules) for cell in group)
    )


def train_missing(
    folder: Path, cells: Sequence[StudyCell], rules: Protocol2, jobs: int = 0, minutes: float = 0, *,
    stored: Path | None = None,
) -> list[str]:  # fmt: skip
    """Train what is missing, show how far it is, and return a line for every table that could not be trained.

    Args:
        folder: the store of the cells; one that is done is not trained again.
        cells: which.
        rules: of the study.
        jobs: processes at a time; 0 is one a core.
        minutes: begin no cell after so long; 0 is no limit.
        stored: the store with ERM's runs, where it is another than `folder`.
    """
    if isinstance(rules, SeaLevel):
        check_packages(cells, rules)
    groups = missing_cells(folder, cells, rules)
    todo = sum(map(len, groups))
    print(f"{len(cells) - todo} of {len(cells)} cells are done; training {todo}", flush=True)
    call = partial(train_group, folder, stored=stored or folder)
    items = [Item(" ".join(group[0].key[:2]), (), len(group), call=partial(call, group, rules)) for group in groups]
    workers = jobs or core_count()
    return train_items(items, "study", workers=workers, minutes=minutes or math.inf, unit="cells")


def tell_within(tell: Callable[[Any], None], text: str) -> None:
    """Tell the display how far a cell is, in words."""
    tell(("within", text))


def train_group(
    folder: Path, cells: Sequence[StudyCell], rules: Protocol2, until: float, tell: Callable[[Any], None], *,
    stored: Path,
) -> None:  # fmt: skip
    """Train cells of one table and condition in a worker, and tell each that is done.

    Args:
        folder: the store of the cells.
        cells: which; none is begun after `until`, in seconds since 1970.
        rules: of the study.
        until: see `cells`.
        tell: called with what the display shows of them.
        stored: the store with ERM's runs, which are not trained again, and with the test rows that all cells share.
    """
    dataset = plan_job(compose_train(rules.words(cells[0]))).dataset
    load = cache(dataset.load)
    for k, cell in enumerate(cells, 1):
        if time.time() > until:
            return
        with holding_alone(folder / LOCKS, " ".join(cell.key)):
            if cell.key not in cells_done(folder, rules):  # another command may have trained it
                std = dataset.table.y.std(axis=0)
                if isinstance(rules, SeaLevel):
                    made = fit_cell(cell, rules, load, std)
                else:
                    takes = cell.method != BASE and rules.takes_over
                    known = known_runs(stored, rules, *cell.key[:2]) if takes else {}
                    made = train_cell(cell, rules, load, std, known, sign=partial(tell_within, tell))
                runs = to_runs(*made, rules)
                check_rows(stored, [(report, parts) for report, parts in runs if parts])
                write_cells(folder, runs)
        tell(("epoch", k, len(cells), {}))
