"""Train many jobs, one process a core, with one progress display."""

from __future__ import annotations

import multiprocessing
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from queue import Queue
from typing import Any

from cmixup.errors import InputError
from scripts.driver.cli import label
from scripts.driver.compose import compose_train
from scripts.driver.job import Diverged, Job, execute, plan
from scripts.driver.progress import ProgressDisplay


def train_one(command: Sequence[str], name: str, queue: Queue[tuple[str, int, dict[str, float]]]) -> str | None:
    """Train one job in a worker process; returns what went wrong once it had begun, such as seeds that diverged."""
    job = plan(compose_train(command))
    try:
        execute(job, lambda epoch, history: queue.put((name, epoch, history[0])))
    except (Diverged, InputError) as error:
        return f"{name}: {error}"
    return None


def train_all(
    cells: Sequence[tuple[Sequence[str], Job]],
    title: str,
    workers: int = 0,
    on_finish: Callable[[Job, str | None], str] | None = None,
) -> list[str]:
    """Train the pending runs of all jobs, showing progress.

    Args:
        cells: command lines of scripts.train with the jobs that they plan.
        title: what the progress display says.
        workers: processes at a time; 0 is one a core, or one for a GPU.
        on_finish: called when a job has ended, with what went wrong or None; it returns a line to print.

    Returns:
        A line for everything that went wrong.
    """
    pending = [(command, job) for command, job in cells if job.pending]
    done = sum(len(job.seeds) - len(job.pending) for _, job in cells)
    cpu = all(job.device.type == "cpu" for _, job in pending)
    workers = min(len(pending), workers or (len(os.sched_getaffinity(0)) if cpu else 1))
    with ProgressDisplay(sum(job.settings.epochs for _, job in pending), title) as display:
        if done:
            display.say(f"{done} runs are done already and are not trained again (RERUN=1 does)")
        if not pending:
            return []
        n_runs = sum(len(job.pending) for _, job in pending)
        display.say(f"training {n_runs} runs as {len(pending)} stacks of seeds, {workers} at a time")
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the workers end, too
        context = multiprocessing.get_context("spawn")
        jobs = dict(zip(_labels([job for _, job in pending]), [job for _, job in pending], strict=True))
        with context.Manager() as manager, ProcessPoolExecutor(workers, context) as pool:
            queue: Any = manager.Queue()
            futures = {
                name: pool.submit(train_one, command, name, queue)
                for name, (command, _) in zip(jobs, pending, strict=True)
            }
            try:
                return _follow(queue, futures, jobs, display, on_finish)
            except BaseException:
                # Leaving the pool would wait for every cell; what has no DONE is trained again next time.
                pool.shutdown(wait=False, cancel_futures=True)
                for child in multiprocessing.active_children():
                    child.terminate()
                raise


def _labels(jobs: Sequence[Job]) -> list[str]:
    """Return a label for every job; equal ones are told apart by folder and seeds."""
    labels = [label(job) for job in jobs]
    counts = Counter(labels)
    return [
        name if counts[name] == 1 else f"{name} -> {job.folder} seeds {job.pending}"
        for name, job in zip(labels, jobs, strict=True)
    ]


def _follow(
    queue: Any,
    futures: dict[str, Future],
    jobs: dict[str, Job],
    display: ProgressDisplay,
    on_finish: Callable[[Job, str | None], str] | None,
) -> list[str]:
    """Show the epochs that the workers report until every job has ended; return what went wrong."""
    running, problems = dict(futures), []
    while running or not queue.empty():
        for name in [name for name, future in running.items() if future.done()]:
            problem = running.pop(name).result()
            problems += [problem] if problem else []
            if on_finish:
                display.say(on_finish(jobs[name], problem))
        try:
            name, epoch, row = queue.get(timeout=0.2)
        except Exception:  # noqa: S112 - the proxy of an empty queue raises its own class
            continue
        display.epoch(name, epoch, jobs[name].settings.epochs, row)
    return problems
