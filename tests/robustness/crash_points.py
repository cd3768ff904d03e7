"""A stack of three seeds ends at every one of its writing steps in turn and is started again: does it end the same?"""

import os
import shutil
import sys
import time
from pathlib import Path
from typing import Any

from tests.robustness.base import MOST, Trial, note_progress
from tests.robustness.commands import CRASH, Command, content, half_files, import_all, start_again, tail, words
from tests.robustness.scenes import STACK

WHAT = (
    "a stack of three seeds that ends at one of its writing steps leaves no half file, and ends as if nothing had been "
    "once it is started again"
)
COUNT = "steps"  # a file: how many writing steps there were
#: Of Python's own events, those that change files.
EVENTS = ("open", "os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.chmod", "os.link", "os.truncate")
FOR_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT


class Ending:
    """Makes a process end before its writing step `at` below a folder, and, for 0, counts the steps.

    A step is a call that makes, opens for writing, renames or removes a file or folder, and each `fsync`, before which
    a file is also cut to its half.
    """

    def __init__(self, folder: Path, at: int):
        self._folder, self._at, self._steps, self._sync = folder, at, 0, os.fsync

    def __call__(self) -> None:
        """Begin to listen, in this process alone."""
        patched: Any = os
        patched.fsync = self._fsync
        sys.addaudithook(self._hear)

    def _step(self) -> bool:
        self._steps += 1
        if not self._at:
            (self._folder.parent / COUNT).write_text(str(self._steps))
        return self._steps == self._at

    def _hear(self, event: str, given: tuple[Any, ...]) -> None:
        if event not in EVENTS or not str(given[0]).startswith(f"{self._folder}/"):
            return
        if (event != "open" or given[2] & FOR_WRITING) and self._step():
            os._exit(CRASH)

    def _fsync(self, handle: int) -> None:
        path = Path(f"/proc/self/fd/{handle}").readlink()
        if path.is_file() and self._step():
            os.truncate(path, path.stat().st_size // 2)
            os._exit(CRASH)
        if self._step():
            os._exit(CRASH)
        self._sync(handle)


def command(out: Path, at: int | None = None) -> Command:
    """Return the stack's command, ending at step `at`."""
    given = words(*STACK, "train.epochs=4", "checkpoint_every=2", out=out)
    return Command("scripts.train", given, None if at is None else Ending(out, at))


def run(count: int, seed: int, folder: Path) -> Trial:
    """Try `count` steps, spread over all there are, or all of them."""
    began, failures = time.perf_counter(), list[str]()
    import_all()
    whole = folder / "undisturbed" / "out"
    if code := command(whole, 0).run(folder / "undisturbed" / "log"):
        raise RuntimeError(f"the undisturbed command ended with {code}: {tail(folder / 'undisturbed' / 'log')}")
    reference, steps = content(whole), int((whole.parent / COUNT).read_text())
    tried = min(count, steps)
    chosen = [1 + (k * steps // tried + seed) % steps for k in range(tried)]
    for k, at in enumerate(chosen):
        shutil.rmtree(folder / "crashed", ignore_errors=True)
        out, log = folder / "crashed" / "out", folder / "crashed" / "log"
        wrong = []
        if (code := command(out, at).run(log)) != CRASH:
            wrong.append(f"ended with {code}, not at the step: {tail(log)}")
        wrong += [f"half a file: {path}" for path in half_files(out)]
        wrong += start_again(command(out), out, log, reference)
        if wrong:
            failures.append(f"step {at} of {steps}: {'; '.join(wrong)}")
        note_progress(folder, k + 1, len(chosen))
    notes = f"{steps} writing steps in all; stale temporary files count as a difference"
    return Trial("crash_points", WHAT, tried, tried - len(failures), tuple(failures[:MOST]),
                 time.perf_counter() - began, notes)  # fmt: skip
