"""Train many jobs, one process a core, with one progress display."""

from __future__ import annotations

import multiprocessing
import os
import re
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

from cmixup.errors import InputError
from scripts.driver.cli import label
from scripts.driver.compose import compose_train
from scripts.driver.job import Diverged, execute_together
from scripts.driver.locks import LOCKS, clean
from scripts.driver.plan import Job, plan, stack_key
from scripts.driver.progress import ProgressDisplay
from scripts.driver.workers import work_off
from scripts.driver.workspace import finish_ending

Cell = tuple[Sequence[str], Job]  # a command line of scripts.train with the job that it plans

#: Models in a stack of several jobs. Airfoil, CPU milliseconds a model and epoch with 10, 30, 60 and 120 models: 17,
#: 14, 12, 10 (a busy machine); 60 leave a sweep of 12 values and 10 seeds to two processes.
STACK_MODELS = 60


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


def train_stack(commands: Sequence[Sequence[str]], tell: Callable[[Any], None]) -> str | None:
    """Train one stack in a worker; returns what went wrong, such as seeds that diverged.

    Args:
        commands: the command lines of scripts.train that it consists of.
        tell: called with the name of what `ProgressDisplay` is to show, and what it shows of this stack.
    """
    tell(("begin",))
    worker = multiprocessing.current_process().name
    jobs = [plan(compose_train(own_device(command, worker))) for command in commands]
    try:
        execute_together(
            jobs,
            lambda epoch, history: tell(("epoch", epoch, jobs[0].settings.epochs, history[0])),
            lambda step, steps: tell(("search", step, steps)),
        )
    except (Diverged, InputError) as error:
        return str(error)
    return None


def train_all(
    cells: Sequence[Cell],
    title: str,
    workers: int = 0,
    on_finish: Callable[[Job, str | None], str] | None = None,
) -> list[str]:
    """Train the pending runs of all jobs, each job a stack of its own; see `train_stacks`."""
    return train_stacks([[cell] for cell in cells], title, workers, on_finish)


def train_stacks(
    stacks: Sequence[Sequence[Cell]],
    title: str,
    workers: int = 0,
    on_finish: Callable[[Job, str | None], str] | None = None,
) -> list[str]:
    """Train the pending runs of all stacks, showing progress.

    Args:
        stacks: command lines of scripts.train with the jobs that they plan, together where they train as one stack.
        title: what the progress display says.
        workers: processes at a time; 0 is one a core, or one a GPU.
        on_finish: called for each job when its stack has ended, with what went wrong or None; it returns a line to
            print, or nothing.

    Returns:
        A line for everything that went wrong.
    """
    for stack in stacks:
        for _, job in stack:
            finish_ending(job)  # of stacks that have no pending run, too
    pending = [mine for stack in stacks if (mine := [(command, job) for command, job in stack if job.pending])]
    done = sum(len(job.seeds) - len(job.pending) for stack in stacks for _, job in stack)
    cpu = all(job.device.type == "cpu" for stack in pending for _, job in stack)
    workers = min(len(pending), workers or workers_at_once(cpu=cpu))
    with ProgressDisplay(sum(stack[0][1].settings.epochs for stack in pending), title) as display:
        if done:
            display.say(f"{done} runs are done already and are not trained again (RERUN=1 does)")
        if not pending:
            for out in {str(job.config["out"]) for stack in stacks for _, job in stack}:
                clean(Path(out) / LOCKS)
            return []
        n_runs = sum(len(job.pending) for stack in pending for _, job in stack)
        display.say(f"training {n_runs} runs as {len(pending)} stacks, {workers} at a time; the processes are starting")
        jobs = [[job for _, job in stack] for stack in pending]
        named = dict(zip(_labels(jobs), zip(jobs, pending, strict=True), strict=True))
        tasks = {name: (own, [command for command, _ in stack]) for name, (own, stack) in named.items()}
        return _follow(tasks, workers, display, on_finish)


def _labels(stacks: Sequence[Sequence[Job]]) -> list[str]:
    """Return a label for every stack: its first job, and how many more; folder and seeds tell equal ones apart."""
    labels = [label(jobs[0]) + (f" and {len(jobs) - 1} more" if len(jobs) > 1 else "") for jobs in stacks]
    counts = Counter(labels)
    return [
        name if counts[name] == 1 else f"{name} -> {jobs[0].folder} seeds {jobs[0].pending}"
        for name, jobs in zip(labels, stacks, strict=True)
    ]


def _follow(
    tasks: dict[str, tuple[list[Job], Any]],
    count: int,
    display: ProgressDisplay,
    on_finish: Callable[[Job, str | None], str] | None,
) -> list[str]:
    """Give stacks to `count` workers and show their epochs until every stack has ended; return what went wrong."""
    problems = list[str]()

    def show(name: str, ended: bool, told: Any) -> None:
        stack = tasks[name][0]
        if ended:
            problem = f"{name}: {told}" if told else None
            problems.extend([problem] if problem else [])
            for line in filter(None, [on_finish(job, problem) for job in stack] if on_finish else []):
                display.say(line)
        else:
            shown, *values = told
            getattr(display, shown)(name, *values)

    work_off({name: commands for name, (_, commands) in tasks.items()}, train_stack, count, show)
    return problems
