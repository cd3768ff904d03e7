"""Train what a composed configuration asks for, and leave one folder a seed behind."""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import sys
import time
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
import yaml

from cmixup.data import RegressionData
from cmixup.distributed import distributed_place
from cmixup.errors import InputError
from cmixup.handle import SearchCallback
from cmixup.seeding import Streams, torch_seed
from cmixup.training.checkpoint import RESUME_FILE, Checkpoints
from cmixup.training.trainer import EpochCallback, Run, RunResult, train
from scripts.config.parts import GROUPS
from scripts.driver.devices import follow_first, send_seeds
from scripts.driver.job import Job, stack_key
from scripts.driver.locks import LOCKS, holding_locks
from scripts.driver.logger import Logger, make_logger
from scripts.driver.predictions import scored_predictions
from scripts.driver.provenance import run_environment
from scripts.driver.report import kept_texts, make_report, stack_report
from scripts.driver.runs import (
    CONFIG,
    begin_run,
    finish_marking,
    is_done,
    mark_stack_done,
    set_damage_aside,
    write_report,
    write_run,
)
from scripts.stats.scored import Parts


class Diverged(RuntimeError):
    """Training gave numbers that are not finite; the seeds' reports say so, and they are not done."""


def execute_job(job: Job, on_epoch: EpochCallback | None = None, on_search: SearchCallback | None = None) -> list[Path]:
    """Train the pending seeds of a job as one stack and write a folder for each; see `execute_together`."""
    return execute_together([job], on_epoch, on_search)


def execute_together(
    jobs: Sequence[Job], on_epoch: EpochCallback | None = None, on_search: SearchCallback | None = None
) -> list[Path]:
    """Train the pending seeds of all jobs as one stack and write a folder for each.

    Each seed has a lock. Those that another process trains are waited for, and trained here only if that process has
    ended without them; what the jobs have as pending afterwards is what was trained here. The callbacks are those of
    `cmixup.training.trainer.train`.

    Returns:
        The folders written.

    Raises:
        InputError: jobs that cannot share a stack, or a method or model that does not suit the data; no folder has been
            written then. Or a method's search that diverged: folders have been begun, and none is done. Or a checkpoint
            of other code or data.
        Diverged: after the other seeds are written, naming those that failed, and where.
    """
    for out in {job.out for job in jobs}:
        finish_marking(out)
    jobs = [job for job in jobs if job.pending]
    if len({stack_key(job) for job in jobs}) > 1:
        names = [str(job.folder) for job in jobs]
        raise InputError(f"jobs must share all but seeds, rates and what only draws, got {names}")
    written, failed = list[Path](), list[tuple[Job, str]]()
    with contextlib.closing(_claimed_seeds(jobs)) as claims:
        for claimed in claims:
            folders, failures = _train_claimed(claimed, on_epoch, on_search)
            written += folders
            failed += failures
    if failed:
        lines = {id(job): [line for one, line in failed if one.folder == job.folder] for job in jobs}
        raise Diverged("; ".join(_what_diverged(job, lines[id(job)]) for job in jobs if lines[id(job)]))
    return written


def _claimed_seeds(jobs: Sequence[Job]) -> Generator[list[Job]]:
    """Yield jobs with those of their seeds as pending that are to be trained now, while their locks are held.

    Seeds that another process trains are waited for, and are yielded if it has ended without them. In the end `pending`
    of the jobs lists what was trained here.
    """
    left = {job.run_folder(seed).relative_to(job.out).as_posix(): (job, seed) for job in jobs for seed in job.pending}
    rerun, waiting = bool(jobs) and jobs[0].config["rerun"], False
    for job in jobs:
        job.pending.clear()
    while left:
        with holding_locks(jobs[0].out / LOCKS, list(left), wait=waiting) as taken:
            finish_marking(jobs[0].out)
            mine = [left.pop(name) for name in taken]
            claimed = []
            for job in jobs:
                seeds = [seed for one, seed in mine if one is job and (_needs_training(job, seed) or rerun)]
                job.pending.extend(seeds)
                claimed += [replace(job, pending=seeds)] if seeds else []
            if claimed:
                yield claimed
        waiting, rerun = True, False  # what another process has trained meanwhile is new


def _needs_training(job: Job, seed: int) -> bool:
    """Return whether a seed, whose lock is held, is not done; what is damaged of it is set aside."""
    folder = job.run_folder(seed)
    set_damage_aside(folder)
    if is_done(folder) and not job.is_done(seed):
        print(f"the table has changed since {folder} was trained, which is trained again", file=sys.stderr)
    return not job.is_done(seed)


def _train_claimed(
    jobs: Sequence[Job], on_epoch: EpochCallback | None, on_search: SearchCallback | None
) -> tuple[list[Path], list[tuple[Job, str]]]:
    """Train seeds whose locks are held, and write their folders.

    Returns:
        The folders of runs that are done; and for each seed that failed its job and a line that says why.
    """
    first = jobs[0]
    torch.set_num_threads(first.config["threads"])
    seeds = [(job, seed) for job in jobs for seed in job.pending]
    # Before data are read: a logger refuses bad variables of the environment.
    loggers = [make_logger(job.config, job.options, seed, job.run_folder(seed)) for job, seed in seeds]
    members = [(job, make_run(job, seed), logger) for (job, seed), logger in zip(seeds, loggers, strict=True)]
    waiting = iter(members)
    # Before training: what is committed or edited meanwhile is not what runs.
    made_by = {"started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), **run_environment(first.device)}
    together = [(job.options, job.pending) for job in jobs]
    training, done, failed = list[tuple[Job, Run, Logger]](), list[Path](), list[tuple[Job, str]]()

    def start(numbers: list[int]) -> None:
        training[:] = itertools.islice(waiting, len(numbers))
        for _, _, logger in training:
            logger.start()
        for job, run, _ in training:
            begin_run(job.run_folder(run.streams.seed), config_text(job, run.streams.seed))

    def log_epoch(epoch: int, rows: list[dict[str, float]]) -> None:
        for (_, _, logger), row in zip(training, rows, strict=True):
            logger.epoch(epoch, row)
        if on_epoch:
            on_epoch(epoch, rows)

    def end(results: list[RunResult]) -> None:
        """Write what a stack gave before the next one trains."""
        written = list[tuple[Path, dict[str, Any], Parts | None]]()
        for (job, run, _), result in zip(training, results, strict=True):
            more = stack_report(together, job.pending, run.streams.seed, result.stack) | made_by
            written.append(_write_run(job, run, result, more))
            failed.extend([(job, f"seed {run.streams.seed}: {result.failure}")] if result.failure else [])
        whole = [folder for folder, _, predictions in written if predictions is not None]
        mark_stack_done(first.out, whole)
        done.extend(whole)
        for (_, _, logger), (folder, report, predictions) in zip(training, written, strict=True):
            (folder / RESUME_FILE).unlink(missing_ok=True)
            logger.finish(report, predictions)

    send_seeds([seed for _, seed in seeds])
    checkpoints = job_checkpoints(first, made_by)
    hooks: Any = {"on_start": start, "on_search": on_search, "on_epoch": log_epoch, "on_end": end}
    train([run for _, run, _ in members], first.settings, first.device, checkpoints=checkpoints, **hooks)
    return done, failed


def config_text(job: Job, seed: int) -> str:
    """Return what a run's `config.yaml` says."""
    return yaml.safe_dump({**job.config, "seed": seed, "seeds": None}, sort_keys=False)


def _write_run(
    job: Job, run: Run, result: RunResult, more: Mapping[str, Any]
) -> tuple[Path, dict[str, Any], Parts | None]:
    """Write what a run gave; return its folder, its report with `more` and, unless it failed, its predictions."""
    folder = job.run_folder(run.streams.seed)
    place = folder.relative_to(job.out / "runs").as_posix()
    report = {**make_report(job.config, job.options, place, run, result), **more}
    if result.failure:
        write_report(folder, report, result.history)
        return folder, report, None
    kept, weights = scored_predictions(run.data, result), result.state_dict if job.config["weights"] else None
    extras = kept_texts(job.config, run, result)
    if not (folder / CONFIG).is_file():  # somebody has removed the folder while it trained
        extras[CONFIG] = config_text(job, run.streams.seed)
    write_run(folder, report, result.history, weights, kept, extras=extras)
    return folder, report, kept


def train_along(job: Job) -> None:
    """Train what the first process of several trains, and write nothing."""
    torch.set_num_threads(job.config["threads"])
    follow_first(functools.partial(_train_seeds, job))


def _train_seeds(job: Job, seeds: Sequence[int]) -> None:
    train([make_run(job, seed) for seed in seeds], job.settings, job.device)


def _what_diverged(job: Job, failures: Sequence[str]) -> str:
    settings = f"train.lr={job.settings.lr:g}, train.optimizer={job.settings.optimizer}, preset {job.config['preset']}"
    return f"{'; '.join(failures)} ({settings}); options and report: {job.folder}"


def make_run(job: Job, seed: int, data: RegressionData | None = None) -> Run:
    """Load the data of one seed, unless they are given, and initialise its model."""
    loaded: Any = job.dataset.load(seed) if data is None else data
    streams = Streams(seed, distributed_place()[0])
    with torch_seed(streams.init):
        width = job.settings.fitted_by.outputs * loaded.train.y.shape[1]
        model = job.make_model(tuple(loaded.train.x.shape[1:]), width)
    return Run(loaded, job.make_method(), model, streams, job.settings.lr, job.settings.weight_decay)


def job_checkpoints(job: Job, made_by: Mapping[str, Any]) -> Checkpoints | None:
    """Return where a job's state is saved while it trains, or None if its configuration says never.

    With `rerun` whatever an earlier run saved is removed.

    Args:
        job: what trains.
        made_by: see `run_environment`; a run goes on by the code that began it.
    """
    if job.config["rerun"]:
        for seed in job.pending:
            (job.run_folder(seed) / RESUME_FILE).unlink(missing_ok=True)
    every = job.config["checkpoint_every"]
    key = json.dumps({group: job.config[group] for group in (*GROUPS, "train")}, sort_keys=True)
    commit = f"{made_by['commit']}{' with changes' if made_by['dirty'] else ''}"
    origin = {"commit": commit, "torch": str(torch.__version__)}
    return Checkpoints(job.run_folder, every, key, origin, job.config["resume"] == "any") if every else None
