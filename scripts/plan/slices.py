"""A list of runs, worked through in slices of time that end in time, the most valuable minute first."""

from __future__ import annotations

import errno
import itertools
import statistics
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cmixup.errors import InputError
from cmixup.files import write_atomically
from datasets.common.fetch import FetchError
from scripts.driver.compose import compose_train
from scripts.driver.job import Diverged, execute
from scripts.driver.locks import LOCKS, holding
from scripts.driver.plan import plan
from scripts.driver.runs import is_done, load_reports

RESERVE = 5.0  # seconds to write a run in, before a slice ends
LOSS = 0.25  # minutes of training between two checkpoints: the most that a stop may lose
ASSUMED = 20.0  # times as fast as a core of a CPU is a GPU taken to be until a run has been measured on it
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)  # what every run would meet
QUEUE, FAILED = "queue", ".failed"  # the folder below `out`; what ends the name of a file with an item's error

Clock = Callable[[], float]  # seconds since 1970, as `time.time`
OnEpoch = Callable[[int, list[dict[str, float]]], None]
Train = Callable[["Item", int, OnEpoch], None]  # trains an item, saved every so many epochs


class OutOfTime(Exception):
    """The slice is over; what has been trained is in a checkpoint."""


@dataclass(frozen=True)
class Item:
    """Runs that train together: seeds of one cell as a stack, or a single seed.

    Attributes:
        name: a file's name for it, which stays when some of its seeds are done.
        words: a command line of scripts.train without seeds, device and out.
        cell: the folder of the cell below `out/runs`.
        seeds: which.
        published: how many other seeds of the cell are published, or stand before these.
        shown_in: tables and figures that show the cell.
        minutes: of one seed on one core.
        epochs: of a run.
        wanting: why it cannot be trained here; empty where it can.
    """

    name: str
    words: tuple[str, ...]
    cell: str
    seeds: tuple[int, ...]
    published: int
    shown_in: tuple[str, ...]
    minutes: float
    epochs: int
    wanting: str = ""

    @property
    def dataset(self) -> str:
        """Its dataset's name: a cell is `experiment/dataset/model/method/preset`."""
        return self.cell.partition("/")[2].partition("/")[0]

    @property
    def value(self) -> float:
        """What it is worth: 1/n for the n-th seed of a cell, in each table and figure that shows it."""
        return len(self.shown_in) * sum(1 / (self.published + k) for k in range(1, len(self.seeds) + 1))

    @property
    def cost(self) -> float:
        """Minutes of all seeds on one core."""
        return max(self.minutes * len(self.seeds), 1e-3)


def left(items: Iterable[Item], out: Path) -> list[Item]:
    """Return the items with what is not done in `out`, the most valuable minute first.

    Left out is what cannot be trained here, and what has failed, until its file is removed.
    """
    found = []
    for item in items:
        seeds = tuple(s for s in item.seeds if not is_done(out / "runs" / item.cell / f"seed={s}"))
        if seeds and not item.wanting and not failure(item, out).exists():
            found.append(replace(item, seeds=seeds))
    return sorted(found, key=lambda item: (-item.value / item.cost, item.cell, item.seeds))


def failure(item: Item, out: Path) -> Path:
    """Return the file that says why an item failed, and keeps it from being tried again."""
    return out / QUEUE / f"{item.name}{FAILED}"


def choose(items: Sequence[Item], minutes: float, speed: float) -> Item | None:
    """Return the item to begin with this much time left: the first that fits, else the first of all."""
    fitting = [item for item in items if item.cost / speed <= minutes]
    return next(iter([*fitting, *items]), None)


def speed_of(device: str, out: Path, items: Sequence[Item]) -> float:
    """Return how many times as fast as estimated this kind of device was in the runs in `out`, by the median.

    Args:
        device: "cpu" or "cuda".
        out: holds finished runs.
        items: with the estimates of these runs, in minutes on one core.
    """
    if device == "cpu":
        return 1.0
    minutes = {item.cell: item.minutes for item in items}
    reports = load_reports(out / "runs") if (out / "runs").is_dir() else []
    ratios = [
        60 * minutes[cell] / report["seconds"] for report in reports
        if (cell := str(report["run"]).rpartition("/")[0]) in minutes and str(report["device"]).startswith(device)
    ]  # fmt: skip
    return statistics.median(ratios) if ratios else ASSUMED


def forecast(items: Sequence[Item], minutes: float, speed: float) -> list[tuple[Item, float]]:
    """Return what a slice would do, in order, each with its minutes on this device; the last may not end in it."""
    todo, found = list(items), []
    while todo and minutes > 0:
        item = choose(todo, minutes, speed)
        assert item is not None
        todo.remove(item)
        found.append((item, item.cost / speed))
        minutes -= item.cost / speed
    return found


def trainer(out: Path, device: str) -> Train:
    """Return what trains an item into `out`."""

    def run(item: Item, every: int, on_epoch: OnEpoch) -> None:
        seeds = f"seeds=[{','.join(map(str, item.seeds))}]"
        own = [seeds, f"device={device}", f"out={out}", "logger=none", f"checkpoint_every={every}"]
        execute(plan(compose_train([*item.words, *own])), on_epoch)

    return run


def work(
    items: Sequence[Item],
    out: Path,
    minutes: float,
    clock: Clock,
    train: Train,
    *,
    speed: float = 1.0,
    say: Callable[[str], Any] = print,
) -> Mapping[str, int]:
    """Train items until the time is up, the most valuable minute first.

    A run that is not done when the time is up stays in its checkpoint, and the next slice goes on from it, on this
    machine or on another one with the same `out`. An item that another process has taken is left to it.

    What fails by its own fault is remembered and not tried again (see `failure`). What the machine lacks for the moment
    is put off to the next slice: an item whose files cannot be read or written, and all of a dataset that cannot be
    fetched. A full disk ends the slice.

    Args:
        items: what is missing.
        out: where runs go; everything that a later slice needs is there.
        minutes: how long it may take.
        clock: tells the time in seconds since 1970.
        train: trains one item.
        speed: how many times as fast as their estimates they are here.
        say: is told what happens.

    Returns:
        How many runs are `done`, `failed`, `put off` and `stopped`.
    """
    until = clock() + 60 * minutes
    counts, passed = {"done": 0, "failed": 0, "put off": 0, "stopped": 0}, set[str]()
    while (rest := (until - clock() - RESERVE) / 60) > 0:
        item = choose([i for i in left(items, out) if i.name not in passed], rest, speed)
        if item is None:
            break
        passed.add(item.name)
        with holding(out / LOCKS, [f"{QUEUE}/{item.name}"]) as mine:
            if not mine or item not in left(items, out):  # another queue trains it, or has tried it since
                continue
            seeds = ",".join(map(str, item.seeds))
            say(f"{item.cell} seeds {seeds}: about {item.cost / speed:.1f} of {rest:.1f} minutes")
            # Twenty checkpoints a run or more: where an estimate is far too low, a slice still comes forward.
            every = max(1, min(int(item.epochs * LOSS * speed / item.cost), item.epochs // 20))
            try:
                train(item, every, _stop_at(until, item.epochs, clock))
            except OutOfTime:
                counts["stopped"] += len(item.seeds)
                break
            except (FetchError, OSError) as error:
                say(f"put off: {error}")
                counts["put off"] += len(item.seeds)
                if isinstance(error, OSError) and error.errno in NO_ROOM:  # the next would end alike
                    break
                if isinstance(error, FetchError):
                    passed |= {one.name for one in items if one.dataset == item.dataset}
            except (InputError, Diverged) as error:
                say(f"failed: {error}")
                write_atomically(failure(item, out), f"{error}\n")
                counts["failed"] += len(item.seeds)
            else:
                counts["done"] += len(item.seeds)
    return counts


def _stop_at(until: float, epochs: int, clock: Clock) -> OnEpoch:
    """Return what stops training after an epoch that might be the last to end in time."""
    times = [clock()]

    def look(epoch: int, _: list[dict[str, float]]) -> None:
        times.append(clock())
        longest = max(later - earlier for earlier, later in itertools.pairwise(times))
        if epoch < epochs and times[-1] + 1.5 * longest + RESERVE > until:
            raise OutOfTime

    return look
