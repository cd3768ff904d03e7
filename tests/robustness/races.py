"""Two commands are started at once on the same or overlapping seeds: no seed is trained twice, and nothing is lost."""

import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from tests.robustness.base import MOST, Trial, note_progress
from tests.robustness.commands import Command, content, differences, ended, import_all, tail, words
from tests.robustness.scenes import SCENES

WHAT = (
    "two commands that start at about the same time on the same or overlapping seeds both end well, train no seed "
    "twice, and leave what one after the other leaves"
)
LATER = 0.6  # seconds by which the second may start later
SAME = ("single", "stacked", "LSTNet", "reproduce", "tune")
OVERLAPPING = (("seeds=0..2", "seeds=1..3"), ("seeds=0..1", "seed=1"), ("seed=0", "seeds=0..2"))


def noting(folder: Path, command: Command) -> Command:
    """Return a command that writes down which runs it begins."""

    def hook() -> None:
        if command.before:
            command.before()
        job: Any = sys.modules["scripts.driver.execute"]
        begin: Callable[..., None] = job.begin_run

        def beginning(run: Path, config: str) -> None:
            with (folder / "begun").open("a") as stream:
                stream.write(f"{run}\n")
            begin(run, config)

        job.begin_run = beginning

    return Command(command.module, command.words, hook)


def pairs(folder: Path) -> list[tuple[str, Command, Command]]:
    """Return pairs of commands that work in `folder/out`, with a name."""
    out = folder / "out"
    same = [(name, SCENES[name](out), SCENES[name](out)) for name in SAME]
    given = ("dataset=no2", "method=cmixup", "train.epochs=6", "checkpoint_every=2")
    each = [[Command("scripts.train", words(*given, seeds, out=out)) for seeds in pair] for pair in OVERLAPPING]
    return [*same, *((" and ".join(p), one, other) for p, (one, other) in zip(OVERLAPPING, each, strict=True))]


def run(count: int, seed: int, folder: Path) -> Trial:
    """Start `count` pairs, in turns over kinds."""
    began, rng, failures = time.perf_counter(), np.random.default_rng(seed), list[str]()
    import_all()
    raced = folder / "raced"
    kinds = pairs(raced)[: max(1, count)]
    references: dict[str, list[dict[str, Any]]] = {}
    waited = 0
    for k in range(count):
        name, *both = kinds[k % len(kinds)]
        if name not in references:
            references[name] = [_in_turn(raced, order) for order in (both, both[::-1])[: 2 if " and " in name else 1]]
        shutil.rmtree(raced, ignore_errors=True)
        raced.mkdir(parents=True)
        logs = [raced / "first", raced / "second"]
        started = [noting(raced, both[0]).start(logs[0])]
        time.sleep(rng.uniform(0.0, LATER))
        started.append(noting(raced, both[1]).start(logs[1]))
        wrong = [f"ended with {code}: {tail(log)}" for p, log in zip(started, logs, strict=True) if (code := ended(p))]
        begun = Counter((raced / "begun").read_text().splitlines())
        wrong += [f"trained {times} times: {run}" for run, times in begun.items() if times > 1]
        waited += any("waiting for it" in log.read_text() for log in logs)
        found = content(raced / "out")
        each = [differences(found, reference) for reference in references[name]]
        if all(each):
            wrong.append(f"not as one after the other: {min(each, key=len)}")
        if wrong:
            failures.append(f"{name}, pair {k}: {'; '.join(wrong)}")
        note_progress(folder, k + 1, count)
    notes = f"in {waited} pairs one waited for the other; kinds: {', '.join(kind[0] for kind in kinds)}"
    return Trial("races", WHAT, count, count - len(failures), tuple(failures[:MOST]),
                 time.perf_counter() - began, notes)  # fmt: skip


def _in_turn(raced: Path, order: list[Command]) -> dict[str, Any]:
    shutil.rmtree(raced, ignore_errors=True)
    for command in order:
        if code := command.run(raced / "log"):
            raise RuntimeError(f"the undisturbed command ended with {code}: {tail(raced / 'log')}")
    return content(raced / "out")
