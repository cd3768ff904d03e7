"""Train what a composed configuration asks for, and leave one folder a seed behind."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import torch
import yaml
from omegaconf import DictConfig

from cmixup.errors import InputError, check_choice, check_count
from cmixup.label_scaling import check_label_scaling
from cmixup.methods.base import per_run
from cmixup.ranks import distributed_place
from cmixup.seeding import Streams, torch_seed
from cmixup.training.checkpoint import RESUME_FILE, Checkpoints
from cmixup.training.settings import TrainSettings
from cmixup.training.trainer import Run, RunResult, train
from scripts.driver.compose import base_preset, is_tuned
from scripts.driver.config import (
    GROUPS,
    NOT_ARGUMENTS,
    arguments,
    check_part,
    differences,
    is_part,
    parameters,
    resolved,
)
from scripts.driver.devices import pick_device, tell, told
from scripts.driver.locks import LOCKS, clean, holding, wait_for
from scripts.driver.predictions import Parts, scored
from scripts.driver.record import kept_texts, make_report, stack_report
from scripts.driver.runs import (
    ENDED,
    begin_run,
    code_digest,
    end_together,
    environment,
    folder_name,
    go_on_ending,
    is_done,
    set_damage_aside,
    write_report,
    write_run,
)
from scripts.driver.stack_logger import StackLogger
from scripts.driver.words import parse_seeds

MOST_THREADS = 1024  # PyTorch crashes where the system cannot start as many


class Diverged(RuntimeError):
    """Training gave numbers that are not finite; the seeds' reports say so, and they are not done."""


@dataclass(frozen=True)
class Job:
    """One checked configuration: everything that is needed to train it, before any work is done.

    Attributes:
        config: the resolved configuration.
        seeds: all seeds asked for.
        options: what differs from dataset, model, method and preset alone.
        folder: where the seeds' folders go.
        stackable: whether its method and model train as a stack.
    """

    config: dict[str, Any]
    seeds: list[int]
    options: dict[str, Any]
    folder: Path
    device: torch.device
    settings: TrainSettings
    dataset: Any
    make_model: Callable[..., torch.nn.Module]
    make_method: Callable[[], Any]
    stackable: bool = False
    pending: list[int] = field(default_factory=list)

    @property
    def runs(self) -> Path:
        """The folder of all runs of its experiment."""
        return Path(self.config["out"]) / "runs" / self.config["experiment"]

    def run_folder(self, seed: int) -> Path:
        """Return the folder of one seed."""
        return self.folder / f"seed={seed}"


def plan(cfg: DictConfig) -> Job:
    """Check a composed configuration and say what it would train.

    Raises:
        InputError: an unknown key, a wrong type or value, a device that is not there.
    """
    plain = resolved(cfg)
    seeds = parse_seeds([plain["seed"]], "seed") if plain["seeds"] is None else parse_seeds(plain["seeds"])
    check_choice("logger", plain["logger"], ("wandb", "none"))
    check_count("threads", plain["threads"], 1, most=MOST_THREADS)
    check_count("checkpoint_every", plain["checkpoint_every"], what="0 (never) or a whole number of epochs")
    check_choice("resume", plain["resume"], ("same", "any"))
    device = pick_device(plain["device"])
    given = arguments("train", plain["train"], TrainSettings)
    for key in ("epochs", "batch_size", "lr"):
        if key not in given:
            raise InputError(f"train.{key} is missing: it cannot be taken out")
    settings = TrainSettings(**given)
    # What the model is told of the data comes from the data.
    dataset, model, method = (
        check_part(group, plain[group], reserved) for group, reserved in (
            ("dataset", ()), ("model", ("in_shape", "out_features")), ("method", ()),
        )
    )  # fmt: skip
    made = method.build()  # refuses bad values now rather than after loading the data
    try:
        made.check_batch(settings.batch_size)
        check_label_scaling(settings.label_scaling, plain["method"]["name"], domains=made.domains)
    except InputError as error:
        raise InputError(f"train.{error} (method {plain['method']['name']})") from None
    options = differences(plain)
    # Tuned values change when a method is tuned again, so these runs are named by the values.
    preset, name = plain["preset"], plain["dataset"]["name"]
    naming_options = differences(plain, base_preset(name, preset)) if is_tuned(preset) else options
    folder = (
        Path(plain["out"]) / "runs" / plain["experiment"] / plain["dataset"]["name"] / plain["model"]["name"]
        / plain["method"]["name"] / folder_name(plain["preset"], naming_options)
    )  # fmt: skip
    stackable = made.stackable and getattr(model.kind, "stackable", False)
    job = Job(plain, seeds, options, folder, device, settings, dataset.build(), model.build, method.build, stackable)
    job.pending.extend(s for s in seeds if plain["rerun"] or not is_done(job.run_folder(s)))
    return job


def stack_key(job: Job) -> str:
    """Return what jobs must share to train as one stack: all of their configuration but seeds and what only draws.

    The options of the parts that a method names in `per_run`, such as C-Mixup's bandwidth, are each run's own.
    """
    method, shared = job.config["method"], {k: v for k, v in job.config.items() if k not in ("seed", "seeds", "method")}
    drawing = [key for key in per_run(job.make_method()) if is_part(method.get(key))]
    passed_on = {key for part in drawing for key in method[part]}.difference(NOT_ARGUMENTS, parameters(method))
    shared["method"] = {key: value for key, value in method.items() if key not in passed_on}
    shared["method"] |= {part: [method[part].get(name) for name in NOT_ARGUMENTS] for part in drawing}
    alone = not job.stackable or job.config["checkpoint_every"]
    return json.dumps([shared, str(job.folder) if alone else ""], sort_keys=True)


def execute(job: Job, on_epoch: Callable[[int, list[dict[str, float]]], None] | None = None) -> list[Path]:
    """Train the pending seeds of a job as one stack and write a folder for each; see `execute_together`."""
    return execute_together([job], on_epoch)


def execute_together(
    jobs: Sequence[Job], on_epoch: Callable[[int, list[dict[str, float]]], None] | None = None
) -> list[Path]:
    """Train the pending seeds of all jobs as one stack and write a folder for each.

    Each seed has a lock. Those that another process trains are waited for, and trained here only if that process has
    ended without them; what the jobs have as pending afterwards is what was trained here.

    Returns:
        The folders written.

    Raises:
        InputError: jobs that cannot share a stack, or a method or model that does not suit the data; no folder has been
            written then. Or a method's search that diverged: folders have been begun, and none is done. Or a checkpoint
            of other code or data.
        Diverged: after the other seeds are written, naming those that failed, and where.
    """
    for job in jobs:
        clean(Path(job.config["out"]) / LOCKS)
        finish_ending(job)
    jobs = [job for job in jobs if job.pending]
    if not jobs:
        return []
    if len({stack_key(job) for job in jobs}) > 1:
        raise InputError(f"jobs must share all but seeds and what only draws, got {[str(job.folder) for job in jobs]}")
    torch.set_num_threads(jobs[0].config["threads"])
    out, left = Path(jobs[0].config["out"]), [list(job.pending) for job in jobs]
    for job in jobs:
        job.pending.clear()
    done, failed, rerun = list[Path](), list[tuple[Job, str]](), jobs[0].config["rerun"]
    while any(left):
        names = [_name(job, s) for job, seeds in zip(jobs, left, strict=True) for s in seeds]
        with holding(out / LOCKS, names) as taken:
            mine = [
                replace(job, pending=_to_train(job, [s for s in seeds if _name(job, s) in taken], rerun=rerun))
                for job, seeds in zip(jobs, left, strict=True)
            ]
            for job, own in zip(jobs, mine, strict=True):
                job.pending.extend(own.pending)
            if here := [own for own in mine if own.pending]:
                written, problems = _train(here, on_epoch)
                done, failed = done + written, failed + problems
        left = [[s for s in seeds if _name(job, s) not in taken] for job, seeds in zip(jobs, left, strict=True)]
        if any(left):
            wait_for(out / LOCKS, [name for name in names if name not in taken])
            rerun = False  # what another process has trained meanwhile is new
    if failed:
        each = [(job, [line for one, line in failed if one.folder == job.folder]) for job in jobs]
        raise Diverged("; ".join(_what_diverged(job, lines) for job, lines in each if lines))
    return done


def finish_ending(job: Job) -> None:
    """Mark those of a job's runs as done whose process was killed after it had decided that they are."""
    if any(job.runs.glob(f"{ENDED}*")):
        with holding(Path(job.config["out"]) / LOCKS, [_name(job, seed) for seed in job.seeds]) as taken:
            go_on_ending(job.runs, [job.run_folder(seed) for seed in job.seeds if _name(job, seed) in taken])


def _name(job: Job, seed: int) -> str:
    """Return what a seed's lock is called."""
    return job.run_folder(seed).relative_to(job.config["out"]).as_posix()


def _to_train(job: Job, seeds: Sequence[int], *, rerun: bool) -> list[int]:
    """Return which of these seeds, whose locks are held, are not done; with `rerun` all."""
    folders = {seed: job.run_folder(seed) for seed in seeds}
    go_on_ending(job.runs, list(folders.values()))
    for folder in folders.values():
        set_damage_aside(folder)
    return [seed for seed, folder in folders.items() if rerun or not is_done(folder)]


def _train(
    jobs: Sequence[Job], on_epoch: Callable[[int, list[dict[str, float]]], None] | None
) -> tuple[list[Path], list[tuple[Job, str]]]:
    """Train seeds whose locks are held; return the folders that are done, and of seeds that failed the job and why."""
    first = jobs[0]
    members = [(job, seed) for job in jobs for seed in job.pending]
    logger = StackLogger([(job.config, job.options, job.pending) for job in jobs])  # refuses before data are read
    runs = [make_run(job, seed) for job, seed in members]
    # Before training: what is committed or edited meanwhile is not what runs.
    shared = {"started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), **environment(first.device)}
    together = [(job.options, job.pending) for job in jobs]
    training, done, failed = list[int](), list[Path](), list[tuple[Job, str]]()

    def start(seeds: list[int]) -> None:
        training[:] = logger.start(len(seeds))
        for number in training:
            job, seed = members[number]
            config = {**job.config, "seed": seed, "seeds": None}
            begin_run(job.run_folder(seed), yaml.safe_dump(config, sort_keys=False))

    def each_epoch(epoch: int, rows: list[dict[str, float]]) -> None:
        logger.epoch(epoch, rows)
        if on_epoch:
            on_epoch(epoch, rows)

    def end(results: list[RunResult]) -> None:
        """Write what a stack gave before the next one trains."""
        ended, told = list[Path](), list[tuple[int, dict[str, Any], Parts | None]]()
        for number, result in zip(training, results, strict=True):
            job, seed = members[number]
            folder, run = job.run_folder(seed), runs[number]
            report = make_report(job.config, job.options, folder.relative_to(job.runs.parent).as_posix(), run, result)
            report |= stack_report(together, job.pending, seed, result.stack) | shared
            kept = None if result.failure else scored(run.data, result)
            if kept is None:
                write_report(folder, report, result.history)
                failed.append((job, f"seed {seed}: {result.failure}"))
            else:
                weights = result.state_dict if job.config["weights"] else None
                write_run(folder, report, result.history, weights, kept, extras=kept_texts(job.config, run, result))
                ended.append(folder)
            told.append((number, report, kept))
        if ended:
            end_together(first.runs, ended)
        for number, report, predictions in told:
            job, seed = members[number]
            (job.run_folder(seed) / RESUME_FILE).unlink(missing_ok=True)
            logger.finish(number, report, predictions)
        done.extend(ended)

    saving = checkpoints(first)
    tell([seed for _, seed in members])
    train(runs, first.settings, first.device, on_epoch=each_epoch, checkpoints=saving, on_start=start, on_end=end)
    logger.close()
    return done, failed


def train_along(job: Job) -> None:
    """Train what the first process of several trains, and write nothing."""
    torch.set_num_threads(job.config["threads"])
    while (seeds := told()) is not None:
        train([make_run(job, seed) for seed in seeds], job.settings, job.device)


def _what_diverged(job: Job, failures: Sequence[str]) -> str:
    told = f"train.lr={job.settings.lr:g}, train.optimizer={job.settings.optimizer}, preset {job.config['preset']}"
    return f"{'; '.join(failures)} ({told}); options and report: {job.folder}"


def make_run(job: Job, seed: int) -> Run:
    """Load the data of one seed and initialise its model."""
    data, streams = job.dataset.load(seed), Streams(seed, distributed_place()[0])
    with torch_seed(streams.init):
        model = job.make_model(tuple(data.train.x.shape[1:]), data.train.y.shape[1])
    return Run(data, job.make_method(), model, streams)


def checkpoints(job: Job) -> Checkpoints | None:
    """Return where a job's state is saved while it trains, or None if its configuration says never.

    With `rerun` whatever an earlier run saved is removed.
    """
    if job.config["rerun"]:
        for seed in job.pending:
            (job.run_folder(seed) / RESUME_FILE).unlink(missing_ok=True)
    every = job.config["checkpoint_every"]
    key = json.dumps({group: job.config[group] for group in (*GROUPS, "train")}, sort_keys=True)
    origin = {"code": code_digest(), "torch": str(torch.__version__)}
    return Checkpoints(job.run_folder, every, key, origin, job.config["resume"] == "any") if every else None
