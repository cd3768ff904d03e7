"""Lines of a command on a terminal: progress with time left (occasional lines in a log), and pages of its width."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Mapping
from typing import NoReturn

import rich.console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Column

EVERY = 15  # seconds between lines where there is no terminal


class Console(rich.console.Console):
    """rich's console, but for an output that nobody reads any more, as in `| head -1`: that is no error of its own."""

    def on_broken_pipe(self) -> NoReturn:
        """Let `scripts.driver.cli.user_errors` end the command, with status 0; called while the error is handled."""
        raise  # noqa: PLE0704


class ProgressDisplay(Progress):
    """Bars for several jobs at once and one for all of them; without a terminal a line every `EVERY` seconds.

    `total` is that of all jobs together, in epochs or in another `unit`.
    """

    def __init__(self, total: int, title: str, unit: str = "epochs"):
        console = Console(file=sys.stderr)
        super().__init__(
            TextColumn(
                "{task.description}", markup=False, table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis")
            ),
            BarColumn(16), MofNCompleteColumn(), TimeElapsedColumn(), TimeRemainingColumn(),
            console=console, transient=True, expand=True, disable=not console.is_terminal,
            get_time=time.monotonic, speed_estimate_period=math.inf,
        )  # fmt: skip
        self._all = self.add_task(title, total=total)
        self._title, self._unit = title, unit
        self._bars: dict[str, TaskID] = {}
        self._epochs_begun: set[str] = set()  # jobs that have ended one
        self._last_line = time.monotonic()

    def show(self, job: str, done: int = 0, total: int | None = None, row: Mapping[str, float] | None = None) -> None:
        """Show that `job` has begun, or how far it is: in the search before its first epoch, or in its epochs.

        Args:
            job: its name. Until its first epoch it reads its data and, with some methods, searches.
            done: steps of the search, or epochs, of `total`, None where neither has begun.
            row: the history row of its first seed, of an epoch that has ended.
        """
        if job not in self._bars:
            self._bars[job] = self.add_task(f"{job}  reading data, searching", total=None)
        if total is None:
            return
        bar, whole = self._bars[job], self._tasks[self._all]
        if row is None:
            self.update(bar, completed=done, total=total, description=f"{job}  searching")
            timed, text, more = bar, f"{job} searches before its first epoch, {done}/{total} steps", ""
        else:
            scores = " ".join(f"{k} {v:.4g}" for k, v in row.items() if k.startswith("val_"))
            if job not in self._epochs_begun:
                self._epochs_begun.add(job)
                self.reset(bar, total=total)
                whole.completed += done - 1  # of a run that goes on: they say nothing of its pace
            self.advance(self._all)
            self.update(bar, completed=done, description=f"{scores}  {job}")
            if done == total:
                self._epochs_begun.remove(job)
                self.remove_task(self._bars.pop(job))
            timed, text, more = self._all, f"{whole.completed:.0f}/{whole.total:.0f} {self._unit}", f"; {job} {scores}"
        now, left = time.monotonic(), self._tasks[timed].time_remaining  # at the pace since its first step ended
        if not self.console.is_terminal and now - self._last_line > EVERY:
            self._last_line = now
            self.say(f"{self._title}: {text}{'' if left is None else f', about {left:.0f} s left'}{more}")

    def say(self, line: str) -> None:
        """Print a line above the bars."""
        self.console.print(line, highlight=False, markup=False, soft_wrap=True)


def print_page(text: str) -> None:
    """Print a page of Markdown, laid out where standard output is a terminal."""
    if sys.stdout and sys.stdout.isatty():
        from rich.markdown import Markdown  # slow to import

        Console().print(Markdown(text))
    else:
        print(text)
