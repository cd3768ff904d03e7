"""Files of runs are emptied, cut or overwritten: the next start names them, sets them aside and trains again."""

from __future__ import annotations

import functools
import os
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from cmixup.done import DONE
from scripts.driver.runs import CONFIG, HISTORY, REPORT
from tests.robustness.base import MOST, Trial, note_progress
from tests.robustness.commands import CRASH, Command, content, differences, import_all, tail, words

WHAT = "a damaged file of a run is named in one line, set aside, and the run is made again as it was"
WAYS = ("empty", "cut", "noise")
RESUME = "resume.pt"


def damaged(content: bytes, way: str, rng: np.random.Generator) -> bytes:
    """Return a file's bytes without any, without its end, or with others in their place."""
    if way == "empty":
        return b""
    if way == "cut":
        return content[: int(rng.integers(1, max(2, len(content))))]
    return rng.bytes(max(1, len(content) // 2))


def _stopping(execute: Callable[..., Any], jobs: Any, *_: Any) -> Any:
    """End the process after the second epoch."""
    return execute(jobs, lambda epoch, _: os._exit(CRASH) if epoch == 2 else None)


def _command(out: Path, *, stop: bool = False) -> Command:
    """Return the command of a single run, which ends after its second epoch with `stop`."""

    def hook() -> None:
        job: Any = sys.modules["scripts.driver.execute"]
        job.execute_together = functools.partial(_stopping, job.execute_together)

    given = words("dataset=no2", "method=cmixup", "train.epochs=4", "checkpoint_every=1", out=out)
    return Command("scripts.train", given, hook if stop else None)


def run(count: int, seed: int, folder: Path) -> Trial:
    """Damage `count` files, in turns over kinds of files and of damage."""
    began, rng, failures = time.perf_counter(), np.random.default_rng(seed), list[str]()
    import_all()
    for name, stop in (("whole", False), ("stopped", True)):
        code = _command(folder / name / "out", stop=stop).run(folder / name / "log")
        if code != (CRASH if stop else 0):
            raise RuntimeError(f"the undisturbed command ended with {code}: {tail(folder / name / 'log')}")
    reference = content(folder / "whole" / "out")
    targets = [(name, way) for name in (RESUME, REPORT, HISTORY, DONE, CONFIG) for way in WAYS]
    for k in range(count):
        name, way = targets[k % len(targets)]
        out, log = folder / "damaged" / "out", folder / "damaged" / "log"
        shutil.rmtree(folder / "damaged", ignore_errors=True)
        shutil.copytree(folder / ("stopped" if name == RESUME else "whole") / "out", out)
        (path,) = out.rglob(name)
        path.write_bytes(damaged(path.read_bytes(), way, rng))
        code, text, wrong = _command(out).run(log), log.read_text(), list[str]()
        said = [line for line in text.splitlines() if str(path) in line and "set aside" in line]
        if code or len(said) != 1 or "Traceback" in text:
            wrong.append(f"ended with {code} and {len(said)} lines: {tail(log)}")
        aside = path.with_name(path.name + ".damaged")
        if not aside.is_file():
            wrong.append("it was not set aside")
        aside.unlink(missing_ok=True)
        wrong += [f"not as it was: {one}" for one in differences(content(out), reference)]
        if wrong:
            failures.append(f"{name}, {way}: {'; '.join(wrong)}")
        note_progress(folder, k + 1, count)
    return Trial("damage", WHAT, count, count - len(failures), tuple(failures[:MOST]),
                 time.perf_counter() - began, f"{len(targets)} kinds in turns")  # fmt: skip
