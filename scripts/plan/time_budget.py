"""Missing runs, worked through in slices of time that end in time, the most valuable minute first."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cmixup.files import write_atomically
from scripts.driver.runs import is_done, load_reports
from scripts.plan.schedule import FAILED, PUT_OFF, STOPPED, TAKEN, Item, Problem, first_fitting, train_items

LOSS = 0.25  # minutes of training between two checkpoints: the most that a stop may lose
ASSUMED = 20.0  # times as fast as a core of a CPU is a GPU taken to be until a run has been measured on it
QUEUE, SUFFIX = "queue", ".failed"  # the folder below `out`; what ends the name of a file with the error of a run


@dataclass(frozen=True)
class Missing:
    """Runs that are missing and train together: seeds of one cell as a stack, or a single seed.

    Attributes:
        name: a file's name for it, which stays when some of its seeds are done.
        words: a command line of scripts.train without seeds, device and out.
        cell: the folder of the cell below `out/runs`, `experiment/dataset/model/method/preset`.
        seeds: which.
        published: how many other seeds of the cell are published, or stand before these.
        shown_in: tables and figures that show the cell.
        each: minutes of one seed on one core.
        epochs: of a run.
        wanting: why it cannot be trained here; empty where it can.
    """

    name: str
    words: tuple[str, ...]
    cell: str
    seeds: tuple[int, ...]
    published: int
    shown_in: tuple[str, ...]
    each: float
    epochs: int
    wanting: str = ""

    @property
    def dataset(self) -> str:
        """Its dataset's name."""
        return self.cell.split("/")[1]

    @property
    def value(self) -> float:
        """What it is worth: 1/n for the n-th seed of a cell, in each table and figure that shows it."""
        return len(self.shown_in) * sum(1 / (self.published + k) for k in range(1, len(self.seeds) + 1))

    @property
    def minutes(self) -> float:
        """Minutes of all seeds on one core."""
        return max(self.each * len(self.seeds), 1e-3)

    def item(self, out: Path, device: str, speed: float = 1.0) -> Item:
        """Return what trains it into `out` on a device that is `speed` times as fast as a core."""
        seeds, minutes = ",".join(map(str, self.seeds)), self.minutes / speed
        # Twenty checkpoints a run or more: where an estimate is far too low, a slice still comes forward.
        every = max(1, min(int(self.epochs * LOSS / minutes), self.epochs // 20))
        own = [f"seeds=[{seeds}]", f"device={device}", f"out={out}", "logger=none", f"checkpoint_every={every}"]
        return Item(
            f"{self.cell} seeds {seeds}", [[*self.words, *own]], self.epochs, minutes, lock=f"{QUEUE}/{self.name}"
        )


def items_left(items: Iterable[Missing], out: Path) -> list[Missing]:
    """Return the items with what is not done in `out`, the most valuable minute first.

    Left out is what cannot be trained here, and what has failed, until its file is removed.
    """
    found = []
    for item in items:
        seeds = tuple(s for s in item.seeds if not is_done(out / "runs" / item.cell / f"seed={s}"))
        if seeds and not item.wanting and not failure_file(item, out).exists():
            found.append(replace(item, seeds=seeds))
    return sorted(found, key=lambda item: (-item.value / item.minutes, item.cell, item.seeds))


def failure_file(item: Missing, out: Path) -> Path:
    """Return the file that says why an item failed, and keeps it from being tried again."""
    return out / QUEUE / f"{item.name}{SUFFIX}"


def forecast_items(items: Sequence[Missing], minutes: float) -> list[Missing]:
    """Return what one core would begin in this time, in order; the last may not end in it."""
    todo, found = list(items), list[Missing]()
    while todo and minutes > 0:
        found.append(todo.pop(first_fitting([item.minutes for item in todo], minutes)))
        minutes -= found[-1].minutes
    return found


def speed_of(device: str, out: Path, items: Sequence[Missing]) -> float:
    """Return how many times as fast as estimated this kind of device was in the runs in `out`, by the median.

    Args:
        device: "cpu" or "cuda".
        out: holds finished runs.
        items: with the estimates of these runs, in minutes on one core.
    """
    if device == "cpu":
        return 1.0
    minutes = {item.cell: item.each for item in items}
    reports = load_reports(out / "runs") if (out / "runs").is_dir() else []
    ratios = [
        60 * minutes[cell] / report["seconds"] for report in reports
        if (cell := str(report["run"]).rpartition("/")[0]) in minutes and str(report["device"]).startswith(device)
    ]  # fmt: skip
    return statistics.median(ratios) if ratios else ASSUMED


def work_through(
    items: Iterable[Missing],
    out: Path,
    minutes: float,
    device: str = "auto",
    *,
    speed: float = 1.0,
    workers: int = 1,
    say: Callable[[str], Any] = print,
) -> Mapping[str, int]:
    """Train what is missing until the time is up, the most valuable minute first.

    A run that is not done when the time is up stays in its checkpoint, and the next slice goes on from it, on this
    machine or on another one with the same `out`. An item that another process has taken is left to it. What fails by
    its own fault is remembered and not tried again (see `failure_file`).

    Args:
        items: what is missing.
        out: where runs go; everything that a later slice needs is there.
        minutes: how long it may take.
        device: as scripts.train takes it.
        speed: how many times as fast as their estimates they are here.
        workers: processes at a time.
        say: is told what happens.

    Returns:
        How many runs are `done`, `failed`, `put off` and `stopped`.
    """
    todo = {(item := one.item(out, device, speed)).name: (one, item) for one in items_left(items, out)}
    counts = {"done": 0, FAILED: 0, PUT_OFF: 0, STOPPED: 0}

    def on_finish(item: Item, problem: Problem | None) -> str:
        one, kind = todo[item.name][0], problem.kind if problem else "done"
        if kind != TAKEN:
            kind = kind if kind in counts else PUT_OFF
            counts[kind] += len(one.seeds)
            say(f"{kind}: {problem.text if problem else item.name}")
        if problem and kind == FAILED:
            write_atomically(failure_file(one, out), f"{problem.text}\n")
        return ""

    train_items([item for _, item in todo.values()], "queue", workers=workers, minutes=minutes, on_finish=on_finish)
    return counts
