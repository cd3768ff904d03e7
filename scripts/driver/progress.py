"""What a command prints on a terminal: progress with time left (occasional lines in a log), and tables of its width."""

from __future__ import annotations

import sys
import time
from collections.abc import Mapping, Sequence
from typing import NoReturn

import rich.console
from rich import box
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column, Table
from rich.text import Text

EVERY = 15  # seconds between lines where there is no terminal


class Console(rich.console.Console):
    """rich's console, but for an output that nobody reads any more, as in `| head -1`: that is no error of its own."""

    def on_broken_pipe(self) -> NoReturn:
        """Let `scripts.driver.cli.user_errors` end the command, with status 0.

        Raises:
            BrokenPipeError: always; this is called while it is handled.
        """
        raise  # noqa: PLE0704


class ProgressDisplay:
    """Bars for several jobs at once and one for all of them.

    Args:
        total: epochs of all jobs together.
        title: what the bar for all of them says.
        unit: of `total`, where it is not epochs.
    """

    def __init__(self, total: int, title: str, unit: str = "epochs"):
        self._console = Console(file=sys.stderr)
        self._progress = Progress(
            TextColumn("{task.description}", table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis")),
            BarColumn(16), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn(),
            console=self._console, transient=True, expand=True, disable=not self._console.is_terminal,
        )  # fmt: skip
        self._all = self._progress.add_task(title, total=total)
        self._title, self._unit, self._total, self._done = title, unit, total, 0
        self._before = 0  # epochs of interrupted runs that go on
        self._tasks: dict[str, TaskID] = {}
        self._starting: set[str] = set()  # those that have not ended an epoch
        self._searching: dict[str, float] = {}  # when the first step of their search ended
        self._said = time.monotonic()
        self._first = 0.0  # when the first epoch ended: what comes before it (imports, data, a search) is no pace

    def __enter__(self) -> ProgressDisplay:
        self._progress.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.stop()

    def begin(self, job: str) -> None:
        """Say that `job` has begun: until its first epoch it reads its data and, with some methods, searches."""
        self._tasks[job] = self._progress.add_task(f"{job}  reading data, searching", total=None)
        self._starting.add(job)

    def search(self, job: str, step: int, steps: int) -> None:
        """Say that `job`, which has begun, has done `step` of the steps of the search before its first epoch."""
        self._progress.update(self._tasks[job], completed=step, total=steps, description=f"{job}  searching")
        now = time.monotonic()
        first = self._searching.setdefault(job, now)
        if self._silent(now):
            return
        time_left = f", about {(now - first) / (step - 1) * (steps - step):.0f} s left" if step > 1 else ""
        self.say(f"{self._title}: {job} searches before its first epoch, {step}/{steps} steps{time_left}")

    def epoch(self, job: str, epoch: int, epochs: int, row: Mapping[str, float]) -> None:
        """Say that `job` finished an epoch; `row` is the history row of its first seed."""
        scores = " ".join(f"{k} {v:.4g}" for k, v in row.items() if k.startswith("val_"))
        if job not in self._tasks or job in self._starting:
            self._starting.discard(job)
            if job not in self._tasks:
                self._tasks[job] = self._progress.add_task(job)
            self._progress.reset(self._tasks[job], total=epochs)
            self._before += epoch - 1
            self._progress.update(self._all, advance=epoch - 1)
        self._progress.update(self._tasks[job], completed=epoch, description=f"{scores}  {job}")
        if epoch == epochs:
            self._progress.remove_task(self._tasks.pop(job))
        self._done += 1
        self._progress.update(self._all, advance=1)
        now = time.monotonic()
        self._first = self._first or now
        if self._silent(now):
            return
        done = self._before + self._done
        left = (now - self._first) / max(self._done - 1, 1) * (self._total - done)
        time_left = f", about {left:.0f} s left" if self._done > 1 else ""
        self.say(f"{self._title}: {done}/{self._total} {self._unit}{time_left}; {job} {scores}")

    def within(self, job: str, text: str) -> None:
        """Say in words how far `job`, which has begun, is within a unit that takes long."""
        self._progress.update(self._tasks[job], description=f"{job}  {text}")
        if not self._silent(time.monotonic()):
            self.say(f"{self._title}: {job}: {text}")

    def _silent(self, now: float) -> bool:
        """Return whether no line is due: there are bars, or the last line is not `EVERY` seconds ago."""
        if self._console.is_terminal or now - self._said <= EVERY:
            return True
        self._said = now
        return False

    def say(self, line: str) -> None:
        """Print a line above the bars."""
        self._console.print(line, highlight=False, markup=False, soft_wrap=True)


WIDE = 1000  # columns of what is no terminal: a file or a pipe takes lines of any length
GAP = 2  # columns between two of a table's


def width_here() -> int:
    """Return the columns of the terminal, or `WIDE` where standard output is none."""
    return Console().width if sys.stdout and sys.stdout.isatty() else WIDE


def parts_that_fit(widths: Sequence[int], width: int) -> list[list[int]]:
    """Return which columns stand together: the first in every part, the others in order, as many as fit.

    Args:
        widths: of every column.
        width: of the terminal; a column that does not fit beside the first is alone with it.
    """
    parts: list[list[int]] = []
    used = width + 1
    for k, size in enumerate(widths[1:], 1):
        if used + GAP + size > width:
            parts.append([0])
            used = widths[0]
        parts[-1].append(k)
        used += GAP + size
    return parts or [[0]]


def print_table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    title: str = "",
    *,
    left: int = 1,
    styles: Sequence[str | None] = (),
    width: int = 0,
) -> None:
    """Print a table in as many parts, one below the other, as the terminal's width asks for.

    Args:
        head: names of the columns.
        rows: cells, with rich's markup.
        title: printed once, above.
        left: how many columns, from the first, are aligned to the left; the others hold numbers.
        styles: of the rows.
        width: of the terminal; 0 asks for it.
    """
    width = width or width_here()
    columns = list(zip(head, *rows, strict=True))
    widths = [max(Text.from_markup(cell).cell_len for cell in column) for column in columns]
    for n, part in enumerate(parts_that_fit(widths, width)):
        name = title if n == 0 else f"{title} (continued)"
        grid = Table(title=name, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
        for k in part:
            grid.add_column(head[k], justify="left" if k < left else "right", overflow="fold")
        for row, style in zip(rows, styles or [None] * len(rows), strict=True):
            grid.add_row(*(row[k] for k in part), style=style)
        Console(width=width, highlight=False).print(grid)
