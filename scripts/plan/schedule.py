"""The one scheduler: items are trained by several processes, within some minutes where asked, with one display."""

from __future__ import annotations

import contextlib
import errno
import itertools
import math
import multiprocessing
import os
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import torch

from cmixup.errors import InputError
from datasets.common.fetch import FetchError
from scripts.driver.cli import label
from scripts.driver.compose import compose_train
from scripts.driver.devices import pick_device
from scripts.driver.job import Diverged, execute_together
from scripts.driver.locks import LOCKS, clean
from scripts.driver.plan import Job, plan, stack_key
from scripts.driver.progress import ProgressDisplay
from scripts.driver.workers import Died, work_off
from scripts.driver.workspace import finish_ending

Cell = tuple[Sequence[str], Job]  # a command line of scripts.train with the job that it plans
Tell = Callable[[Any], None]

#: Models in a stack of several jobs. Airfoil, CPU milliseconds a model and epoch with 10, 30, 60 and 120 models: 17,
#: 14, 12, 10 (a busy machine); 60 leave a sweep of 12 values and 10 seeds to two processes.
STACK_MODELS = 60
RESERVE = 5.0  # seconds to write a run in, before the time is up
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS)  # every item would end so
FAILED, PUT_OFF, NO_DATA, DISK_FULL, STOPPED = "failed", "put off", "no data", "disk full", "stopped"


class OutOfTime(Exception):
    """The time is up; what has been trained is in a checkpoint."""


class Problem(NamedTuple):
    """Why an item has not ended.

    Attributes:
        kind: FAILED by its own fault; PUT_OFF, NO_DATA and DISK_FULL by what the machine lacks for the moment; STOPPED
            in a checkpoint, as the time was up.
        text: what went wrong.
    """

    kind: str
    text: str


@dataclass(frozen=True)
class Item:
    """What one worker trains: one stack, or several one after another.

    Attributes:
        name: what progress and problems call it; no two share one.
        commands: command lines of scripts.train.
        epochs: that it trains in all, for the time left.
        minutes: about how long it takes on one core.
        jobs: what the commands plan, where it has been planned.
        then: called in the worker with the planned jobs when all are trained; what it returns is trained next, such as
            all seeds with the options of the best trial. A function at the top of a module.
    """

    name: str
    commands: Sequence[Sequence[str]]
    epochs: int = 0
    minutes: float = 0.0
    jobs: tuple[Job, ...] = ()
    then: Callable[[Sequence[Job]], Sequence[Sequence[str]]] | None = None

    def word(self, key: str, default: str = "") -> str:
        """Return the value of a key of its first command line."""
        found = [word.partition("=")[2] for word in self.commands[0] if word.startswith(f"{key}=")]
        return found[-1] if found else default


def stacks_of(cells: Sequence[Cell], models: int = STACK_MODELS) -> list[list[Cell]]:
    """Return the cells in groups that train as one stack each, of about `models` models; others are alone.

    Jobs that differ only in what their methods draw with are put together, see `scripts.driver.plan.stack_key`.
    Seeds that are done count, too: what is left after an interruption is in the same stack as before.
    """
    groups: dict[str, list[Cell]] = {}
    for cell in cells:
        groups.setdefault(stack_key(cell[1]), []).append(cell)
    stacks: list[list[Cell]] = []
    for group in groups.values():
        stack, size = list[Cell](), 0
        for cell in group:
            if stack and size + len(cell[1].seeds) > models:
                stacks.append(stack)
                stack, size = [], 0
            stack.append(cell)
            size += len(cell[1].seeds)
        stacks.append(stack)
    return stacks


def items_of(stacks: Iterable[Sequence[Cell]]) -> list[Item]:
    """Return an item for each stack, named by its first job; folder and seeds tell equal names apart."""
    found = []
    stacks = list(stacks)
    names = [label(s[0][1]) + (f" and {len(s) - 1} more" if len(s) > 1 else "") for s in stacks]
    counts = Counter(names)
    for name, stack in zip(names, stacks, strict=True):
        commands, jobs = zip(*stack, strict=True)
        more = "" if counts[name] == 1 else f" -> {jobs[0].folder} seeds {jobs[0].seeds}"
        found.append(Item(name + more, commands, jobs[0].settings.epochs, jobs=jobs))
    return found


def own_device(command: Sequence[str], worker: str) -> list[str]:
    """Return a command line with the GPU of this worker where it asks for any: the workers take them in turns.

    Args:
        command: of scripts.train.
        worker: the name of a process, which ends in its number.
    """
    asked = [word.partition("=")[2] for word in command if word.startswith("device=")] or ["auto"]
    count = torch.cuda.device_count()
    number = re.search(r"\d+$", worker)
    if asked[-1] not in ("auto", "cuda") or count < 2 or number is None:
        return list(command)
    return [*(word for word in command if not word.startswith("device=")), f"device=cuda:{int(number[0]) % count}"]


def workers_at_once(*, cpu: bool) -> int:
    """Return how many processes train at a time: one a core, or CMIXUP_WORKERS_PER_GPU (1) on every GPU."""
    if cpu:
        return len(os.sched_getaffinity(0))
    each = os.environ.get("CMIXUP_WORKERS_PER_GPU") or "1"
    if not each.isdecimal() or not int(each):
        raise InputError(f"CMIXUP_WORKERS_PER_GPU must be a whole number, 1 or more, got {each!r}")
    return max(1, torch.cuda.device_count()) * int(each)


def train_item(task: tuple[Item, float], tell: Tell) -> Problem | None:
    """Train an item in a worker; returns what went wrong, such as seeds that diverged.

    Args:
        task: the item, and when to stop, in seconds since 1970: a run that saves checkpoints stops in one then.
        tell: called with the name of what `ProgressDisplay` is to show, and what it shows of this item.
    """
    (item, until), worker = task, multiprocessing.current_process().name
    commands = item.commands
    tell(("begin",))
    try:
        while commands:
            cells = [(command, plan(compose_train(own_device(command, worker)))) for command in commands]
            for stack in stacks_of(cells, sys.maxsize):
                _train_stack([job for _, job in stack], until, tell)
            commands = item.then([job for _, job in cells]) if item.then else ()
    except OutOfTime:
        return Problem(STOPPED, "the time is up")
    except FetchError as error:
        return Problem(NO_DATA, str(error))
    except OSError as error:
        return Problem(DISK_FULL if error.errno in NO_ROOM else PUT_OFF, str(error))
    except (Diverged, InputError) as error:
        return Problem(FAILED, str(error))
    return None


def _train_stack(jobs: Sequence[Job], until: float, tell: Tell) -> None:
    epochs, saves = jobs[0].settings.epochs, jobs[0].config["checkpoint_every"]
    times = [time.time()]

    def on_epoch(epoch: int, history: list[dict[str, float]]) -> None:
        tell(("epoch", epoch, epochs, history[0]))
        times.append(time.time())
        longest = max(later - earlier for earlier, later in itertools.pairwise(times))
        if saves and epoch < epochs and times[-1] + 1.5 * longest + RESERVE > until:
            raise OutOfTime

    execute_together(jobs, on_epoch, lambda step, steps: tell(("search", step, steps)))


def fitting(minutes: Sequence[float], left: float) -> int:
    """Return which of the items that take so long to begin with: the first that fits the time left, else the first."""
    return next((k for k, each in enumerate(minutes) if each <= left), 0)


def train(
    items: Sequence[Item],
    title: str,
    *,
    workers: int = 0,
    minutes: float = math.inf,
    take: Callable[[Item], contextlib.AbstractContextManager[bool]] = lambda _: contextlib.nullcontext(True),
    on_finish: Callable[[Item, Problem | None], str] = lambda *_: "",
) -> list[str]:
    """Train what is not done of all items, showing progress.

    Where data cannot be fetched all of the dataset is put off, and a full disk ends it: the others would end alike.

    Args:
        items: in the order in which they are begun; with `minutes` one that fits goes before one that does not.
        title: what the progress display says.
        workers: processes at a time; 0 is one a core, or one a GPU.
        minutes: how long it may take: nothing is begun afterwards, and runs that save checkpoints stop in one.
        take: entered before an item is begun and left when it has ended; what it does not take is passed over.
        on_finish: called for each item when it has ended, with what went wrong or None; it returns a line to print, or
            nothing.

    Returns:
        A line for everything that went wrong.
    """
    jobs = [job for item in items for job in item.jobs]
    for job in jobs:
        finish_ending(job)  # of stacks that have no pending run, too
    pending = {item.name: item for item in items if not item.jobs or any(job.pending for job in item.jobs)}
    with ProgressDisplay(sum(item.epochs for item in pending.values()), title) as display:
        if done := sum(len(job.seeds) - len(job.pending) for job in jobs):
            display.say(f"{done} runs are done already and are not trained again (RERUN=1 does)")
        if not pending:
            for out in {str(job.config["out"]) for job in jobs}:
                clean(Path(out) / LOCKS)
            return []
        cpu = all(pick_device(item.word("device", "auto")).type == "cpu" for item in pending.values())
        workers = min(len(pending), workers or workers_at_once(cpu=cpu))
        runs = f"{n} runs as " if (n := sum(len(job.pending) for job in jobs)) else ""
        display.say(f"training {runs}{len(pending)} stacks, {workers} at a time; the processes are starting")
        course = _Course(pending, time.time() + 60 * minutes, display, take, on_finish)
        tasks = {name: (Item(name, item.commands, then=item.then), course.until) for name, item in pending.items()}
        try:
            work_off(tasks, train_item, workers, course.tell, course.choose)
        finally:
            course.held.close()
        begun = [] if math.isfinite(minutes) or not course.left else [f"{len(course.left)} stacks were not begun"]
        return [*course.problems, *begun]


class _Course:
    """The items of one call of `train`: which comes next, and what the workers tell of them."""

    def __init__(self, items: dict[str, Item], until: float, display: ProgressDisplay, take: Any, on_finish: Any):
        self.items, self.until, self.display, self.take, self.on_finish = items, until, display, take, on_finish
        self.problems, self.ended_early, self.unreachable = list[str](), False, set[str]()
        self.left = list[str]()  # names of what has not been begun
        self.held, self.own = contextlib.ExitStack(), dict[str, contextlib.ExitStack]()

    def choose(self, waiting: list[str]) -> str | None:
        """Remove the item to begin next from `waiting` and return it, or None where there is no more."""
        self.left = waiting
        while not self.ended_early and (rest := (self.until - time.time() - RESERVE) / 60) > 0:
            left = [item for name in waiting if (item := self.items[name]).word("dataset") not in self.unreachable]
            if not left:
                break
            item = left[fitting([one.minutes for one in left], rest)]
            waiting.remove(item.name)
            own = self.own[item.name] = self.held.enter_context(contextlib.ExitStack())
            if own.enter_context(self.take(item)):
                return item.name
            own.close()
        return None

    def tell(self, name: str, ended: bool, told: Any) -> None:
        """Show what a worker tells of an item, or say why the item has ended."""
        if not ended:
            shown, *values = told
            getattr(self.display, shown)(name, *values)
            return
        problem = told
        if told is not None and not isinstance(told, Problem):
            problem = Problem(PUT_OFF if isinstance(told, Died) else FAILED, str(told))
        if problem:
            self.ended_early |= problem.kind == DISK_FULL
            self.unreachable |= {self.items[name].word("dataset")} if problem.kind == NO_DATA else set()
            self.problems += [f"{name}: {problem.text}"] if problem.kind != STOPPED else []
        if line := self.on_finish(self.items[name], problem):
            self.display.say(line)
        self.own[name].close()
