"""The one scheduler: items are trained by several processes, with one display."""

import multiprocessing
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch

from cmixup.data import core_count
from scripts.driver.execute import execute_together
from scripts.driver.job import Job, pick_device, stack_key
from scripts.driver.progress import ProgressDisplay
from scripts.driver.workers import run_tasks

Report = Callable[[Any], None]

#: Models in a stack of several jobs. Airfoil, CPU milliseconds a model and epoch with 10, 30, 60 and 120 models: 17,
#: 14, 12, 10 (a busy machine); 60 leave a sweep of 12 values and 10 seeds to two processes.
STACK_MODELS = 60


@dataclass(frozen=True)
class Item:
    """What one worker trains, as a rule a stack."""

    name: str  # what progress and problems call it; no two share one
    jobs: tuple[Job, ...] = ()  # what it trains
    epochs: int = 0  # that it trains in all, for the time left
    # trains in the worker in place of the jobs, as `call(report)`; see `train_item`. A partial of a function at the top
    # of a module
    call: Callable[[Report], None] | None = None


def stacks_of(jobs: Sequence[Job], models: int = STACK_MODELS) -> list[list[int]]:
    """Return the places of the jobs that train as one stack each, of about `models` models; others are alone.

    Jobs that differ only in options of their methods' draws are put together, see `scripts.driver.job.stack_key`.
    Seeds that are done count, too: what is left after an interruption is in the same stack as before.
    """
    groups: dict[str, list[int]] = {}
    for place, job in enumerate(jobs):
        groups.setdefault(stack_key(job), []).append(place)
    stacks: list[list[int]] = []
    for group in groups.values():
        stack, size = list[int](), 0
        for place in group:
            if stack and size + len(jobs[place].seeds) > models:
                stacks.append(stack)
                stack, size = [], 0
            stack.append(place)
            size += len(jobs[place].seeds)
        stacks.append(stack)
    return stacks


def items_of(jobs: Sequence[Job], *, separate: bool = False) -> list[Item]:
    """Return an item for each stack of jobs, or for each job, `separate`; folder and seeds tell equal names apart."""
    stacks = [(job,) for job in jobs] if separate else [tuple(jobs[k] for k in places) for places in stacks_of(jobs)]
    names = [stack[0].label + (f" and {len(stack) - 1} more" if len(stack) > 1 else "") for stack in stacks]
    counts, items = Counter(names), []
    for name, stack in zip(names, stacks, strict=True):
        more = "" if counts[name] == 1 else f" -> {stack[0].folder} seeds {stack[0].seeds}"
        items.append(Item(name + more, stack, max(job.epochs for job in stack)))
    return items


def worker_device(device: torch.device, worker: str) -> torch.device:
    """Return the GPU of a worker, whose name ends in a number: they take them in turns, unless one is named."""
    count, number = torch.cuda.device_count(), re.search(r"\d+$", worker)
    if device.type != "cuda" or device.index is not None or count < 2 or number is None:
        return device
    return torch.device("cuda", int(number[0]) % count)


def train_item(item: Item, report: Report) -> None:
    """Train an item in a worker; `report` is called with what `ProgressDisplay.show` shows of it."""
    if item.call:
        item.call(report)
        return
    worker = multiprocessing.current_process().name
    jobs = [replace(job, device=worker_device(job.device, worker)) for job in item.jobs]
    epochs = jobs[0].settings.epochs
    execute_together(jobs, lambda epoch, history: report((epoch, epochs, history[0])))


def train_items(
    items: Sequence[Item], title: str, *, workers: int = 0, unit: str = "epochs",
    on_finish: Callable[[Item, str | None], str] = lambda *_: "",
) -> list[str]:  # fmt: skip
    """Train what is not done of all items, showing progress.

    `workers` are processes at a time, 0 is one a core or GPU; `unit` is what `epochs` of items count. `on_finish` is
    called for each item that has ended, with what went wrong or None, and returns a line to print, or nothing. Returns
    a line for everything that went wrong.
    """
    jobs = [job for item in items for job in item.jobs]
    pending = {item.name: item for item in items if not item.jobs or any(job.pending for job in item.jobs)}
    problems = list[str]()

    def handle(name: str, exited: bool, message: Any) -> None:
        if not exited:
            display.show(name, *message)
            return
        problems.extend([f"{name}: {message}"] if message else [])
        if line := on_finish(pending[name], message):
            display.say(line)

    with ProgressDisplay(sum(item.epochs for item in pending.values()), title, unit) as display:
        if done := sum(len(job.seeds) - len(job.pending) for job in jobs):
            display.say(f"{done} runs are done already and are not trained again (RERUN=1 does)")
        if not pending:
            return []
        devices = [job.device for job in jobs] or [pick_device("auto")]
        cpu = all(device.type == "cpu" for device in devices)
        workers = min(len(pending), workers or (core_count() if cpu else max(1, torch.cuda.device_count())))
        runs = f"{n} runs as " if (n := sum(len(job.pending) for job in jobs)) else ""
        display.say(f"training {runs}{len(pending)} stacks, {workers} at a time; the processes are starting")
        run_tasks(pending, train_item, workers, handle)
    return problems
