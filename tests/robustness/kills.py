"""Commands are killed at random moments and started again until they end: is anything lost, half or different?"""

import contextlib
import os
import shutil
import signal
import time
from collections import Counter
from pathlib import Path

import numpy as np

from tests.robustness.base import MOST, Trial, note_progress
from tests.robustness.commands import (
    Command,
    content,
    differences,
    ended,
    finished,
    half_files,
    import_all,
    left_of,
    tail,
)
from tests.robustness.scenes import SCENES, Scene, publishing, to_publish

WHAT = (
    "a command killed by SIGKILL at a random moment loses no finished seed, leaves no half file and no process, and "
    "ends as if nothing had been once it is started again"
)
ROUNDS = 4  # kills before a command is left to end


class Reference:
    """A command that was not disturbed: what it leaves, and how long it takes."""

    def __init__(self, scene: Scene, folder: Path):
        started = time.perf_counter()
        code = scene(folder / "out").run(folder / "log")
        self.seconds = time.perf_counter() - started
        self.content = content(folder / "out")
        if code or not self.content:
            raise RuntimeError(f"the undisturbed command ended with {code}: {tail(folder / 'log')}")


def run(count: int, seed: int, folder: Path) -> Trial:
    """Kill `count` times, in turns over all scenes."""
    began, rng = time.perf_counter(), np.random.default_rng(seed)
    import_all()
    if code := to_publish(folder / "publish").run(folder / "publish.log"):
        raise RuntimeError(f"what is published did not train ({code}): {tail(folder / 'publish.log')}")
    scenes = {**SCENES, "publish": publishing(folder / "publish")}
    names = list(scenes)[: max(1, count)]
    references = {name: Reference(scenes[name], folder / "undisturbed" / name) for name in names}
    kills, tried, failures = Counter[str](), 0, list[str]()
    while sum(kills.values()) < count:
        name = names[tried % len(names)]
        hit, wrong = series(scenes[name], references[name], folder / "killed", rng, min(ROUNDS, count - kills.total()))
        kills[name] += hit
        failures += [f"{name}, series {tried}: {line}" for line in wrong]
        tried += 1
        note_progress(folder, kills.total(), count)
        if tried > 5 * count + 20:  # commands end before they can be killed
            break
    notes = ", ".join(f"{name} {kills[name]}" for name in names)
    notes += f"; {tried} commands, each compared with one that was not disturbed"
    total = kills.total()
    return Trial("kills", WHAT, total, max(0, total - len(failures)), tuple(failures[:MOST]),
                 time.perf_counter() - began, notes)  # fmt: skip


def series(
    scene: Scene, reference: Reference, folder: Path, rng: np.random.Generator, most: int
) -> tuple[int, list[str]]:
    """Start, kill and start again, at most `most` times, then let it end; return the kills and what was wrong."""
    shutil.rmtree(folder, ignore_errors=True)
    out, log, wrong, hit = folder / "out", folder / "log", list[str](), 0
    done: dict[str, tuple[int, int]] = {}
    for _ in range(most):
        code = killed(scene(out), log, rng.uniform(0.1, 1.05) * reference.seconds, alone=bool(rng.random() < 0.3))
        if code != -signal.SIGKILL:
            break
        hit += 1
        wrong += [f"half a file: {path}" for path in half_files(out)]
        now = finished(out)
        wrong += [f"lost or trained again: {run}" for run, state in done.items() if now.get(run) != state]
        done = now
    else:
        code = scene(out).run(log)
    if code:
        wrong.append(f"the last start ended with {code}: {tail(log)}")
    now, found = finished(out), content(out)
    wrong += [f"lost or trained again: {run}" for run, state in done.items() if now.get(run) != state]
    wrong += [f"not as undisturbed: {name}" for name in differences(found, reference.content)]
    return hit, wrong


def killed(command: Command, log: Path, seconds: float, *, alone: bool) -> int:
    """Start a command, kill it after so many seconds, and return how it ended.

    Args:
        command: what is killed.
        log: where it prints to.
        seconds: when.
        alone: only the first of its processes, whose others must end by themselves; otherwise all of them.
    """
    process = command.start(log)
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        found, status = os.waitpid(process, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.002)
    with contextlib.suppress(ProcessLookupError):
        (os.kill if alone else os.killpg)(process, signal.SIGKILL)
    code = ended(process)
    if code == -signal.SIGKILL and (left := left_of(process)):
        raise RuntimeError(f"processes {left} outlive the command that started them")
    return code
