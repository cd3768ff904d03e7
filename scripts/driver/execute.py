"""Train what a composed configuration asks for, and leave one folder a seed behind."""

from __future__ import annotations

import contextlib
import itertools
import json
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
import yaml

from cmixup.data import RegressionData
from cmixup.distributed import distributed_place
from cmixup.handle import SearchCallback
from cmixup.seeding import Streams, torch_seed
from cmixup.training.checkpoint import RESUME_FILE, Checkpoints
from cmixup.training.trainer import EpochCallback, Run, RunResult, train
from scripts.config.parts import GROUPS
from scripts.driver.job import Job
from scripts.driver.logger import Logger, make_logger
from scripts.driver.predictions import Parts, scored_predictions
from scripts.driver.runs import CONFIG, kept_texts, make_report, stack_report
from scripts.driver.workspace import Workspace, begin_run, write_report, write_run
from scripts.machine.devices import tell_ranks, told_seeds
from scripts.machine.kernels import running_kernels
from scripts.machine.provenance import code_digest, run_environment


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
    workspace, failed = Workspace(jobs), list[tuple[Job, str]]()
    with contextlib.closing(workspace.shares()) as shares:
        for share in shares:
            failed += _train_locked(share, workspace, on_epoch, on_search)
    if failed:
        each = [(job, [line for one, line in failed if one.folder == job.folder]) for job in jobs]
        raise Diverged("; ".join(_what_diverged(job, lines) for job, lines in each if lines))
    return workspace.done


def _train_locked(
    jobs: Sequence[Job], workspace: Workspace, on_epoch: EpochCallback | None, on_search: SearchCallback | None
) -> list[tuple[Job, str]]:
    """Train seeds whose locks are held, and write their folders; return of seeds that failed the job and why."""
    first = jobs[0]
    torch.set_num_threads(first.config["threads"])
    asked = [(job, seed) for job in jobs for seed in job.pending]
    loggers = [
        make_logger(job.config, job.options, seed, job.run_folder(seed)) for job, seed in asked
    ]  # refuse before data are read
    members = [(job, make_run(job, seed), logger) for (job, seed), logger in zip(asked, loggers, strict=True)]
    waiting = iter(members)
    # Before training: what is committed or edited meanwhile is not what runs.
    shared = {"started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), **run_environment(first.device)}
    together = [(job.options, job.pending) for job in jobs]
    training, failed = list[tuple[Job, Run, Logger]](), list[tuple[Job, str]]()

    def start(seeds: list[int]) -> None:
        training[:] = itertools.islice(waiting, len(seeds))
        for _, _, logger in training:
            logger.start()
        for seed, (job, _, _) in zip(seeds, training, strict=True):
            begin_run(job.run_folder(seed), config_text(job, seed))

    def each_epoch(epoch: int, rows: list[dict[str, float]]) -> None:
        for (_, _, logger), row in zip(training, rows, strict=True):
            logger.epoch(epoch, row)
        if on_epoch:
            on_epoch(epoch, rows)

    def end(results: list[RunResult]) -> None:
        """Write what a stack gave before the next one trains."""
        written = list[tuple[Path, dict[str, Any], Parts | None]]()
        for (job, run, _), result in zip(training, results, strict=True):
            more = stack_report(together, job.pending, run.streams.seed, result.stack) | shared
            written.append(_write_run(job, run, result, more))
            failed.extend([(job, f"seed {run.streams.seed}: {result.failure}")] if result.failure else [])
        workspace.end([folder for folder, _, kept in written if kept is not None])
        for (_, run, logger), (folder, report, kept) in zip(training, written, strict=True):
            (folder / RESUME_FILE).unlink(missing_ok=True)
            logger.finish(report, kept, run.data)

    saving = job_checkpoints(first)
    tell_ranks([seed for _, seed in asked])
    hooks: Any = {"on_start": start, "on_search": on_search, "on_epoch": each_epoch, "on_end": end}
    train([run for _, run, _ in members], first.settings, first.device, checkpoints=saving, **hooks)
    return failed


def config_text(job: Job, seed: int) -> str:
    """Return what a run's `config.yaml` says."""
    return yaml.safe_dump({**job.config, "seed": seed, "seeds": None}, sort_keys=False)


def _write_run(
    job: Job, run: Run, result: RunResult, more: Mapping[str, Any]
) -> tuple[Path, dict[str, Any], Parts | None]:
    """Write what a run gave; return its folder, its report with `more` and, unless it failed, its predictions."""
    folder = job.run_folder(run.streams.seed)
    place = folder.relative_to(job.runs.parent).as_posix()
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
    while (seeds := told_seeds()) is not None:
        train([make_run(job, seed) for seed in seeds], job.settings, job.device)


def _what_diverged(job: Job, failures: Sequence[str]) -> str:
    told = f"train.lr={job.settings.lr:g}, train.optimizer={job.settings.optimizer}, preset {job.config['preset']}"
    return f"{'; '.join(failures)} ({told}); options and report: {job.folder}"


def make_run(job: Job, seed: int, data: RegressionData | None = None) -> Run:
    """Load the data of one seed, unless they are given, and initialise its model."""
    loaded: Any = job.dataset.load(seed) if data is None else data
    streams = Streams(seed, distributed_place()[0])
    with torch_seed(streams.init):
        width = job.settings.fitted_by.outputs * loaded.train.y.shape[1]
        model = job.make_model(tuple(loaded.train.x.shape[1:]), width)
    return Run(loaded, job.make_method(), model, streams, job.settings.lr, job.settings.weight_decay)


def job_checkpoints(job: Job) -> Checkpoints | None:
    """Return where a job's state is saved while it trains, or None if its configuration says never.

    With `rerun` whatever an earlier run saved is removed.
    """
    if job.config["rerun"]:
        for seed in job.pending:
            (job.run_folder(seed) / RESUME_FILE).unlink(missing_ok=True)
    every = job.config["checkpoint_every"]
    key = json.dumps({group: job.config[group] for group in (*GROUPS, "train")}, sort_keys=True)
    kernels_here = running_kernels() if job.device.type == "cpu" else ""
    origin = {"code": code_digest(), "torch": str(torch.__version__), "kernels": kernels_here}
    return Checkpoints(job.run_folder, every, key, origin, job.config["resume"] == "any") if every else None
