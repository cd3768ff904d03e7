"""Attempts by number in forked children, so that one that crashes or hangs costs itself alone."""

import os
import random
import resource
import select
import signal
import struct
import sys
import time
import traceback
from collections.abc import Callable
from pathlib import Path

import numpy as np

from cmixup.errors import InputError
from tests.robustness.base import MOST, Trial, note_progress

HANGS = 30.0  # seconds after which an attempt counts as one that hangs
MEMORY = 4 << 30  # bytes that an attempt may ask for beyond what its process has
LONGEST = 400  # characters of a message that is one line
HEAD = struct.Struct("<II")  # of what a child says: the attempt's number and the length of the line that follows

#: Does attempt k and returns what did not hold, or an empty text.
Attempt = Callable[[int], str]


def run_attempts(
    name: str, what: str, attempt: Attempt, count: int, folder: Path, *, hangs: float = HANGS, notes: str = ""
) -> Trial:
    """Do attempts 0 to `count` - 1 in children, one child at a time, and say how many held.

    Args:
        name, what, notes: see `Trial`.
        attempt: must draw everything from its number, so that a failure can be seen again.
        count: how many.
        folder: of the trial.
        hangs: seconds after which an attempt is killed.
    """
    started, failures, tried = time.perf_counter(), list[str](), 0
    while tried < count:
        tried = _one_child(attempt, tried, count, folder, hangs=hangs, failures=failures)
    note_progress(folder, count, count)
    kept = tuple(failures[:MOST])
    return Trial(name, what, count, count - len(failures), kept, time.perf_counter() - started, notes)


def _one_child(attempt: Attempt, first: int, count: int, folder: Path, *, hangs: float, failures: list[str]) -> int:
    """Let one child do attempts from `first` on; return the number of the next one."""
    reading, writing = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    child = os.fork()
    if child == 0:
        os.close(reading)
        _work(attempt, first, count, writing)
    os.close(writing)
    done, ended = first, ""
    try:
        while True:
            if not select.select([reading], [], [], hangs)[0]:
                ended = f"takes more than {hangs:g} s"
                break
            head = os.read(reading, HEAD.size)
            if len(head) < HEAD.size:
                break
            number, length = HEAD.unpack(head)
            line = _read_all(reading, length)
            done = number + 1
            if line:
                failures.append(line)
            if done % 100 == 0:
                note_progress(folder, done, count)
    finally:
        os.close(reading)
        if ended:
            os.kill(child, signal.SIGKILL)
        _, status = os.waitpid(child, 0)
    if ended or status:
        code = os.waitstatus_to_exitcode(status)
        failures.append(f"attempt {done} {ended or f'ends its process with exit code {code}'}")
        return done + 1
    return done


def _read_all(descriptor: int, length: int) -> str:
    found = b""
    while len(found) < length:
        found += os.read(descriptor, length - len(found))
    return found.decode()


def _work(attempt: Attempt, first: int, count: int, writing: int) -> None:
    """Do attempts in this child, and end it."""
    try:
        pages = int(Path("/proc/self/statm").read_text().split()[0])
        resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + MEMORY, resource.RLIM_INFINITY))
        for number in range(first, count):
            line = attempt(number).encode(errors="replace")[:60_000]
            os.write(writing, HEAD.pack(number, len(line)) + line)
    except BaseException:  # of the trial itself
        traceback.print_exc()
        os._exit(3)
    os._exit(0)


def seeded(seed: int, number: int) -> tuple[np.random.Generator, random.Random]:
    """Return the generators of one attempt."""
    return np.random.default_rng([seed, number]), random.Random(f"{seed} {number}")  # noqa: S311, no secret


def judged(error: BaseException) -> str:
    """Return what is wrong with an error that a caller gets: nothing if it is a line of `InputError`."""
    if not isinstance(error, InputError):
        *_, last = traceback.extract_tb(error.__traceback__)
        where = f"{Path(last.filename).name}:{last.lineno}"
        return f"{type(error).__name__} ({' '.join(str(error).split())[:150]}) at {where}"
    text = str(error)
    if len(text) > LONGEST or not text.strip():
        return f"a message of {len(text)} characters: {text[:100]!r}"
    return f"a message of several lines: {text!r}" if "\n" in text else ""
