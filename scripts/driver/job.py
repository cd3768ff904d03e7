"""Train what a composed configuration asks for, and leave one folder a seed behind."""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
import yaml
from omegaconf import DictConfig

from cmixup.errors import InputError, check_choice
from cmixup.sampling.bandwidth import verdict
from cmixup.seeding import Streams, torch_seed
from cmixup.training.checkpoint import NAME, Checkpoints
from cmixup.training.trainer import Member, Outcome, TrainSettings, train
from scripts.driver.config import GROUPS, TUNED, arguments, differences, parse_seeds, resolved, target
from scripts.driver.logger import make_logger
from scripts.driver.runs import begin_run, environment, finish_run, is_done, recorded_config, stacked_seeds

LONGEST_NAME = 120


class Diverged(RuntimeError):
    """Training gave no finite validation score; nothing is recorded for that seed."""


@dataclass(frozen=True)
class Job:
    """One checked configuration: everything that is needed to train it, before any work is done.

    Attributes:
        plain: the resolved configuration.
        seeds: all seeds asked for.
        options: what differs from dataset, model, method and preset alone.
        folder: where the seeds' folders go.
    """

    plain: dict[str, Any]
    seeds: list[int]
    options: dict[str, Any]
    folder: Path
    device: torch.device
    settings: TrainSettings
    dataset: Any
    make_model: Callable[..., torch.nn.Module]
    make_method: Callable[[], Any]
    pending: list[int] = field(default_factory=list)

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
    if plain["threads"] < 1:
        raise InputError(f"threads must be 1 or more, got {plain['threads']!r}")
    if plain["checkpoint_every"] < 0:
        raise InputError(f"checkpoint_every must be 0 (never) or more, got {plain['checkpoint_every']!r}")
    device = pick_device(plain["device"])
    parts: dict[str, Any] = {"train": TrainSettings, **{group: target(plain[group]) for group in GROUPS}}
    reserved = {"model": ("in_shape", "out_features")}  # these come from the data
    given = {group: arguments(group, plain[group], part, reserved.get(group, ())) for group, part in parts.items()}
    for group, checked in given.items():
        plain[group].update(checked)
    settings = TrainSettings(**given["train"])
    dataset = parts["dataset"](**given["dataset"])
    method = parts["method"](**given["method"])  # refuses bad values now rather than after loading the data
    if settings.batch_size < method.least_batch:
        raise InputError(
            f"train.batch_size must be at least {method.least_batch} for this {plain['method']['name']}, "
            f"got {settings.batch_size}"
        )
    if settings.batch_size % method.batch_multiple:
        raise InputError(
            f"train.batch_size must be a multiple of {method.batch_multiple} for this {plain['method']['name']}, "
            f"got {settings.batch_size}"
        )
    options = differences(plain)
    # Tuned values change when a method is tuned again, so these runs are named by the values.
    told = differences(plain, "paper") if plain["preset"] == TUNED else options
    folder = (
        Path(plain["out"]) / "runs" / plain["experiment"] / plain["dataset"]["name"] / plain["model"]["name"]
        / plain["method"]["name"] / folder_name(plain["preset"], told)
    )  # fmt: skip
    job = Job(
        plain, seeds, options, folder, device, settings, dataset,
        make_model=lambda shape, width: parts["model"](shape, width, **given["model"]),
        make_method=lambda: parts["method"](**given["method"]),
    )  # fmt: skip
    job.pending.extend(s for s in seeds if plain["rerun"] or not is_done(job.run_folder(s)))
    return job


def folder_name(preset: str, options: Mapping[str, Any]) -> str:
    """Name a run by its preset and every option that differs from it; what does not fit ends in a hash."""
    parts = [f"{key.removeprefix('method.')}={value}" for key, value in sorted(options.items())]
    written = ",".join([preset, *parts])
    name = re.sub(r"[^\w=,.+-]", "_", written)
    if name == written and len(name) <= LONGEST_NAME:
        return name
    digest = hashlib.sha256(written.encode()).hexdigest()[:12]
    return f"{name[:LONGEST_NAME]}-{digest}"


def pick_device(name: str) -> torch.device:
    """Return the device called `name`; "auto" is CUDA where there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
    except RuntimeError:
        raise InputError(f"device must be auto, cpu, cuda or cuda:<n>, got {name!r}") from None
    if device.type not in ("cpu", "cuda"):
        raise InputError(f"device must be auto, cpu, cuda or cuda:<n>, got {name!r}")
    if device.type == "cuda" and (not torch.cuda.is_available() or (device.index or 0) >= torch.cuda.device_count()):
        raise InputError(f"device is {name!r}, but this machine offers {torch.cuda.device_count()} CUDA devices")
    return device


def execute(job: Job, on_epoch: Callable[[int, list[dict[str, float]]], None] | None = None) -> list[Path]:
    """Train the pending seeds of a job as one stack and write a folder for each.

    Returns:
        The folders written.

    Raises:
        Diverged: after the other seeds are written, naming those without a finite score.
    """
    if not job.pending:
        return []
    torch.set_num_threads(job.plain["threads"])
    members = []
    for seed in job.pending:
        data, streams = job.dataset.load(seed), Streams(seed)
        with torch_seed(streams.init):
            model = job.make_model(tuple(data.train.x.shape[1:]), data.train.y.shape[1])
        members.append(Member(data, job.make_method(), model, streams))
    for seed in job.pending:
        if job.plain["rerun"]:
            (job.run_folder(seed) / NAME).unlink(missing_ok=True)
        begin_run(job.run_folder(seed), yaml.safe_dump({**job.plain, "seed": seed, "seeds": None}, sort_keys=False))
    # Before training: what is committed or edited meanwhile is not what runs.
    shared = {"started": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), **environment(job.device)}
    logger = make_logger(job.plain, job.pending)

    def each_epoch(epoch: int, rows: list[dict[str, float]]) -> None:
        logger.epoch(epoch, rows)
        if on_epoch:
            on_epoch(epoch, rows)

    outcomes = train(members, job.settings, job.device, each_epoch, checkpoints(job))
    written, diverged = [], []
    for member, outcome in zip(members, outcomes, strict=True):
        seed = member.streams.seed
        if outcome.diverged:
            (job.run_folder(seed) / NAME).unlink(missing_ok=True)
            diverged.append(seed)
            continue
        report = make_report(job, member, outcome) | shared
        finish_run(job.run_folder(seed), report, outcome.history, outcome.state_dict)
        (job.run_folder(seed) / NAME).unlink(missing_ok=True)
        logger.finish(seed, report)
        written.append(job.run_folder(seed))
    logger.close()
    if diverged:
        raise Diverged(f"no finite validation {members[0].data.selection} for seeds {diverged} of {job.folder}")
    return written


def checkpoints(job: Job) -> Checkpoints | None:
    """Return where a job's state is saved while it trains, or None if its configuration says never."""
    every = job.plain["checkpoint_every"]
    key = json.dumps({group: job.plain[group] for group in (*GROUPS, "train")}, sort_keys=True)
    return Checkpoints(job.run_folder, every, key) if every else None


def pairs_verdict(facts: Mapping[str, float]) -> str:
    """Return in words what the bandwidth does to the pairs; empty for methods without one."""
    wanted = ("effective_fraction", "self_probability", "equal_label_probability")
    return verdict(*(facts[name] for name in wanted)) if all(name in facts for name in wanted) else ""


def make_report(job: Job, member: Member, outcome: Outcome) -> dict[str, Any]:
    """Return the record of one run."""
    plain, data, seed = job.plain, member.data, member.streams.seed
    return {
        "experiment": plain["experiment"],
        "dataset": data.name,
        "model": plain["model"]["name"],
        "method": plain["method"]["name"],
        "preset": plain["preset"],
        "layer": member.method.layer,
        "bandwidth": outcome.facts.get("bandwidth"),
        "alpha": plain["method"].get("alpha"),
        "options": job.options,
        "seed": seed,
        "run": job.run_folder(seed).relative_to(Path(plain["out"]) / "runs").as_posix(),
        "scores": outcome.scores,
        "facts": outcome.facts,
        "verdict": pairs_verdict(outcome.facts),
        "selection": data.selection,
        "selection_rule": "best on val over epochs, first of ties",
        "best_epoch": outcome.best_epoch,
        "epochs": job.settings.epochs,
        "seconds": outcome.seconds,
        "stack": outcome.stack,
        "stack_seeds": stacked_seeds(job.pending, seed, outcome.stack),
        "unit": data.unit,
        "notes": [*data.notes, *getattr(member.model, "notes", ())],
        "checksums": dict(data.checksums),
        "config": {**recorded_config(plain), "seed": seed, "seeds": None},
    }
