"""What a trial of the project's promises gives, and how it says how far it is."""

import importlib
import os
import time
import traceback
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from scripts.driver.workers import end_with

PROGRESS = "progress"  # a file in a trial's folder: how much is done, and of how much


@dataclass(frozen=True)
class Trial:
    """What one trial found; `tests/robustness/NAME.py` has a function `run(count, seed, folder)` that returns it.

    Attributes:
        name: of its file.
        what: what was tried and what must hold, in a sentence.
        tried: how often.
        held: how often it held.
        failures: a line for every time that it did not, with what is needed to see it again; at most `MOST` of them.
        seconds: how long it took.
        notes: what else a reader must know, such as why nothing could be tried here.
    """

    name: str
    what: str
    tried: int
    held: int
    failures: tuple[str, ...]
    seconds: float
    notes: str = ""


MOST = 50  # failures that are listed


def note_progress(folder: Path, done: int, total: int) -> None:
    """Say how far a trial is, for the command that runs it; `folder` is the one that the trial was given."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / PROGRESS).write_text(f"{done}/{total}")


def one(name: str, count: int, seed: int, folder: Path, answer: Connection) -> None:
    """Run a trial in a process of its own and send what it found; its errors are one failure.

    It ends with the command.
    """
    os.setpgid(0, 0)
    end_with(os.getppid())
    started = time.perf_counter()
    try:
        found: Trial = importlib.import_module(f"tests.robustness.{name}").run(count, seed, folder)
    except Exception as error:
        traceback.print_exc()
        line = f"the trial itself ended with {type(error).__name__}: {error}"
        found = Trial(name, "the trial runs to its end", 1, 0, (line,), time.perf_counter() - started)
    answer.send(found)
