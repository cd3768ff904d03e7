"""Progress of a command: a bar on a terminal, else occasional lines, with the time left."""

import sys
import threading
import time
from collections.abc import Mapping

from tqdm import tqdm  # type: ignore[import-untyped]

EVERY = 15  # seconds between lines where there is no terminal


class ProgressDisplay(tqdm):
    """One bar for all jobs, beside it the last job's scores; without a terminal a line every `EVERY` seconds.

    `total` is that of all jobs together, in epochs or in another `unit`.
    """

    monitor_interval = 0  # no thread of tqdm's
    _lock = threading.RLock()  # tqdm's own needs a process where Python forks none

    def __init__(self, total: int, title: str, unit: str = "epochs"):
        form = "{desc}: {n_fmt}/{total_fmt} |{bar:16}| {elapsed}{postfix}"
        off = not (sys.stderr and sys.stderr.isatty())
        super().__init__(
            total=total, desc=title, disable=off, leave=False, dynamic_ncols=True, miniters=0, bar_format=form
        )
        self._title, self._unit, self._done, self._earlier, self._first = title, unit, 0, 0, 0.0
        self._begun: set[str] = set()  # jobs that have ended an epoch
        self._last_line = time.monotonic()

    def show(self, job: str, done: int, total: int, row: Mapping[str, float]) -> None:
        """Show that `job` has ended epoch `done` of `total`, or a search in 0, with the row of its first seed."""
        if done:
            # The earlier epochs of a run that goes on say nothing of its pace.
            self._earlier += 0 if job in self._begun else done - 1
            self._begun.add(job)
            self._done += 1
            self._first = self._first or time.monotonic()
        if done == total:
            self._begun.remove(job)  # its next seed may follow
        scores = " ".join(f"{k} {v:.4g}" for k, v in row.items() if k.startswith(("val_", "search_")))
        now, ended, left = time.monotonic(), self._done + self._earlier, ""
        if self._done > 1:
            left = f", about {(now - self._first) / (self._done - 1) * (self.total - ended):.0f} s left"
        if self.disable and now - self._last_line > EVERY:
            self._last_line = now
            self.say(f"{self._title}: {ended}/{self.total} {self._unit}{left}; {job} {scores}")
        self.set_postfix_str(f"{scores} {job}{left}", refresh=False)
        self.update(ended - self.n)

    def say(self, line: str) -> None:
        """Print a line above the bar."""
        with self.external_write_mode(sys.stderr):
            print(line, file=sys.stderr)
