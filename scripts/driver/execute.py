"""Train the runs that composed configurations ask for, one folder a seed."""

import json
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from cmixup.data import RegressionData, Split
from cmixup.files import DONE, FORMAT
from cmixup.metrics import metric_of, score
from cmixup.saved_run import MODEL, MODEL_FORMAT
from cmixup.seeding import Streams, torch_seed
from cmixup.training.losses import LOSSES, SQUARED
from cmixup.training.trainer import EpochCallback, Run, RunResult, stacks
from scripts.config.parts import GROUPS
from scripts.driver.checkpoints import RESUME_FILE, Checkpoints
from scripts.driver.job import Job
from scripts.driver.locks import holding_locks
from scripts.driver.logger import WandbLogger
from scripts.driver.provenance import run_environment
from scripts.driver.runs import LEARNED_NOTHING, RunFolder, finish_stack
from scripts.stats.scored import Scored

SELECTION_RULES = {"best": "best on val over epochs, first of ties", "last": "the last epoch"}  # by train.select
MACHINE_KEYS = ("out", "weights", "resume")  # of a configuration: where a run is kept, how much of it, and from where


class Diverged(RuntimeError):
    """Training gave numbers that are not finite; the seeds' reports say so, and they are not done."""


def execute_together(jobs: Sequence[Job], on_epoch: EpochCallback = lambda *_: None) -> list[Path]:
    """Train the pending seeds of jobs with one `stack_key` as one stack and write a folder for each.

    Each seed has a lock. Those that another process trains are waited for, and trained here only if that process has
    ended without them; afterwards the jobs' pending seeds are those trained here. `on_epoch` is that of
    `cmixup.training.trainer.Stack.train`. Returns the folders written.

    Raises:
        InputError: no folder has been written then, but where a method's search diverged: folders have been begun.
        Diverged: after the other seeds are written, naming those that failed, and where.
    """
    jobs = [job for job in jobs if job.pending]
    pending_seeds = [(job, number, seed) for number, job in enumerate(jobs) for seed in job.pending]
    left = {job.run_folder(seed).relative_to(job.out).as_posix(): (number, seed) for job, number, seed in pending_seeds}
    written, failures = list[Path](), dict[Path, list[str]]()
    for job in jobs:
        job.pending.clear()
    waiting = False
    while left:
        with holding_locks(jobs[0].out, list(left), wait=waiting) as taken:
            finish_stack(jobs[0].out)  # runs that a process left when it died
            claimed = [replace(job, pending=[]) for job in jobs]
            for number, seed in (left.pop(name) for name in taken):
                job = jobs[number]
                folder = RunFolder(job.run_folder(seed))
                rerun = job.config["rerun"] and not waiting
                if not rerun and folder.is_done(job.dataset):  # another process has trained it meanwhile
                    continue
                if not rerun and (folder.path / DONE).is_file():
                    reason = folder.damage() or f"the table has changed since {folder.path} was trained"
                    print(f"{reason}: it is trained again", file=sys.stderr)
                job.pending.append(seed)
                claimed[number].pending.append(seed)
            claimed = [job for job in claimed if job.pending]
            for job, seed, failure in _train_claimed(claimed, on_epoch) if claimed else ():
                if failure:
                    failures.setdefault(job.folder, []).append(f"seed {seed}: {failure}")
                else:
                    written.append(job.run_folder(seed))
        waiting = True
    if failures:
        raise Diverged("; ".join(_what_diverged(job, failures[job.folder]) for job in jobs if job.folder in failures))
    return written


def _train_claimed(jobs: Sequence[Job], on_epoch: EpochCallback) -> list[tuple[Job, int, str]]:
    """Train the pending seeds of jobs, whose locks are held, and write folders; return each, and why it failed."""
    first = jobs[0]
    torch.set_num_threads(first.config["threads"])
    seeds = [(job, seed) for job in jobs for seed in job.pending]
    runs = [make_run(job, seed) for job, seed in seeds]
    # Before training: code that is committed or edited meanwhile does not run.
    made_by = {"started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), **run_environment(first.device)}
    checkpoints = job_checkpoints(first, made_by) if first.config["checkpoint_every"] else None
    failures: dict[int, str] = {}
    for stack in stacks(runs, first.settings, first.device, checkpoints):  # each is written before the next one trains
        members = [seeds[k] for k in stack.places]
        logged = members if first.config["logger"] == "wandb" else []
        loggers = [WandbLogger(job.config, job.options, seed, job.run_folder(seed)) for job, seed in logged]
        folders = [RunFolder(job.run_folder(seed)) for job, seed in members]
        configs = [{**job.config, "seed": seed, "seeds": None} for job, seed in members]
        for folder, config in zip(folders, configs, strict=True):
            folder.begin(config)

        def log_epoch(epoch: int, rows: list[dict[str, float]], listening: Sequence[WandbLogger] = loggers) -> None:
            for logger, row in [pair for pair in zip(listening, rows, strict=False) if pair[1].get("epoch") == epoch]:
                logger.epoch(epoch, row)
            on_epoch(epoch, rows)

        results = stack.train(log_epoch)
        for (job, _), config, run, folder, result in zip(members, configs, stack.runs, folders, results, strict=True):
            report = make_report(members, job, config, run, result) | made_by
            files: Any = {} if result.failure else run_files(config, run, result)
            folder.write(config, report, result.history, **files)
        finish_stack(first.out, [f.path for f, result in zip(folders, results, strict=True) if not result.failure])
        for logger, folder, run in zip(loggers, folders, stack.runs, strict=False):
            logger.finish(folder, run.data.test.x)
        failures |= {k: result.failure for k, result in zip(stack.places, results, strict=True)}
    return [(job, seed, failures[k]) for k, (job, seed) in enumerate(seeds)]


def run_files(config: Mapping[str, Any], run: Run, result: RunResult) -> dict[str, Any]:
    """Return what `RunFolder.write` writes of a run that has not failed, with all that `cmixup.load_run` needs."""
    x: Any = run.data.train.x
    # Pretrained weights only began the training: their file need not be here.
    options = {key: None if key == "weights" else value for key, value in config["model"].items()}
    scaled = config["train"]["label_scaling"] in ("centre", "standard")
    outputs = LOSSES[config["train"].get("loss", SQUARED.name)].outputs
    about = {"format": MODEL_FORMAT, "model": options, "in_shape": list(x.shape[1:]),
             "out_features": run.data.train.y.shape[1], "tasks": run.method.tasks,
             "label_scaling": dict(result.label_scaling) if scaled else {},
             **({"outputs": outputs} if outputs > 1 else {})}  # fmt: skip
    return {
        "state": result.state_dict if config["weights"] else None,
        "predictions": scored_predictions(result, run.data),
        "texts": {**run.data.extras, MODEL: json.dumps(about, indent=1) + "\n"},
    }


def scored_predictions(result: RunResult, data: RegressionData) -> dict[str, Scored]:
    """Return the predictions of a run beside its labels."""
    scored = {}
    for part, by_name in result.predictions.items():
        split: Split = getattr(data, part)
        named = {name: prediction.numpy() for name, prediction in by_name.items()}
        scored[part] = Scored(named, split.y.numpy(), split.domain.numpy())
    return scored


def _what_diverged(job: Job, lines: Sequence[str]) -> str:
    settings = f"train.lr={job.settings.lr:g}, train.optimizer={job.settings.optimizer}, preset {job.config['preset']}"
    return f"{'; '.join(lines)} ({settings}); options and report: {job.folder}"


def make_run(job: Job, seed: int, data: RegressionData | None = None) -> Run:
    """Load the data of one seed, unless they are given, and initialise its model."""
    loaded: Any = job.dataset.load(seed) if data is None else data
    streams = Streams(seed)
    with torch_seed(streams.init):
        width = job.settings.fitted_by.outputs * loaded.train.y.shape[1]
        model = job.make_model(tuple(loaded.train.x.shape[1:]), width)
    return Run(loaded, job.make_method(), model, streams, job.settings.lr, job.settings.weight_decay)


def job_checkpoints(job: Job, made_by: Mapping[str, Any]) -> Checkpoints:
    """Return where a job's state, of the code `made_by`, is saved while it trains; `rerun` removes an earlier one."""
    if job.config["rerun"]:
        for seed in job.pending:
            (job.run_folder(seed) / RESUME_FILE).unlink(missing_ok=True)
    key = json.dumps({group: job.config[group] for group in (*GROUPS, "train")}, sort_keys=True)
    commit = f"{made_by['commit']}{' with changes' if made_by['dirty'] else ''}"
    origin = {"commit": commit, "torch": str(torch.__version__)}
    any_origin = job.config["resume"] == "any"
    return Checkpoints(job.run_folder, job.config["checkpoint_every"], key, origin, any_origin)


def make_report(
    members: Sequence[tuple[Job, int]], job: Job, config: Mapping[str, Any], run: Run, result: RunResult
) -> dict[str, Any]:
    """Return the record of one run, of the job and seed of each of its stack's `members`.

    It names the run's stack, since a run repeats to the last digit only in the same one: batched kernels round
    differently for another number of models, and training amplifies that. `stack` counts the models that the trainer
    stacked, and `stack_seeds` has the seeds of the run's job. Where jobs of several options trained together,
    `stack_cells` has options and seeds of all in the order of the stack.
    """
    data, seed = run.data, run.streams.seed
    words = {name: value for name, value in result.diagnostics.items() if isinstance(value, str)}
    numbers = {name: value for name, value in result.diagnostics.items() if name not in words}
    no_learning = ""
    if not result.failure:  # the training labels' mean predicts every row alike, so its correlation is 0
        metric, val = metric_of(data.selection), data.val
        constant = data.train.y.double().nanmean(dim=0).to(val.y.dtype).expand_as(val.y)
        both = (result.predictions["val"][""], constant)
        reached, mean = (score(data.selection, prediction, val.y, val.domain) for prediction in both)
        if bool(mean.isfinite()) and not bool(metric.better(reached, mean)):
            no_learning = (
                f"learned nothing: val {data.selection} {float(reached):.4g} is no better than {float(mean):.4g}, "
                "that of the training labels' mean"
            )
    jobs = list({id(one): one for one, _ in members}.values())
    cells = [{"options": one.options, "seeds": [seed for other, seed in members if other is one]} for one in jobs]
    method, train, failure = config["method"], config["train"], result.failure
    return {
        "format": FORMAT, "experiment": config["experiment"], "dataset": data.name, "model": config["model"]["name"],
        "method": method["name"], "preset": config["preset"], "layer": method.get("layer", ""),
        "bandwidth": numbers.get("bandwidth"), "alpha": method.get("alpha"), "options": job.options, "seed": seed,
        "status": "failed" if failure else "done", "failure": failure,
        "run": job.run_folder(seed).relative_to(job.out / "runs").as_posix(), "scores": result.scores,
        "facts": numbers | ({LEARNED_NOTHING: 1.0} if no_learning else {}), "verdict": words.get("verdict", ""),
        "learned_nothing": no_learning,
        "selection": LOSSES[train.get("loss", SQUARED.name)].selection or data.selection,
        "selection_rule": SELECTION_RULES[train.get("select", "best")], "best_epoch": result.best_epoch,
        "epochs": train["epochs"], "seconds": result.seconds, "unit": data.unit,
        "label_scaling": result.label_scaling, "notes": [*data.notes, *getattr(run.model, "notes", ())],
        "checksums": dict(data.checksums),
        "config": {key: value for key, value in config.items() if key not in MACHINE_KEYS},
        "stack": result.stack, "stack_seeds": [stack_seed for other, stack_seed in members if other is job],
        **({"stack_cells": cells} if len(jobs) > 1 else {}),
    }  # fmt: skip
