"""What a composed configuration would train, checked before any work is done."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from omegaconf import DictConfig

from cmixup.errors import InputError, check_choice, format_value
from cmixup.training.method import per_run
from cmixup.training.settings import TrainSettings
from scripts.config.arguments import parse_seeds
from scripts.config.compose import TUNED_PRESETS, base_preset
from scripts.config.parts import (
    NOT_ARGUMENTS,
    arguments_of,
    changed_options,
    check_config,
    is_part,
    resolve_config,
    target_of,
)
from scripts.config.words import typed_path
from scripts.driver.runs import folder_name, is_done


@dataclass(frozen=True)
class Job:
    """One checked configuration: everything that is needed to train it, before any work is done.

    Attributes:
        config: the resolved configuration.
        seeds: all seeds asked for.
        options: what differs from dataset, model, method and preset alone.
        label: the job in a few words.
        folder: where the seeds' folders go.
        out: holds `runs`, and the locks of those who work there.
        stackable: whether its method and model train as a stack.
    """

    config: dict[str, Any]
    seeds: list[int]
    options: dict[str, Any]
    label: str
    folder: Path
    out: Path
    device: torch.device
    settings: TrainSettings
    dataset: Any
    make_model: Callable[..., torch.nn.Module]
    make_method: Callable[[], Any]
    stackable: bool = False
    pending: list[int] = field(default_factory=list)

    def seed_config(self, seed: int) -> dict[str, Any]:
        """Return the configuration of one seed alone."""
        return {**self.config, "seed": seed, "seeds": None}

    def run_folder(self, seed: int) -> Path:
        """Return the folder of one seed."""
        return self.folder / f"seed={seed}"

    @property
    def epochs(self) -> int:
        """The epochs that are left to train: those of one stack, or of each seed where seeds train one by one."""
        return self.settings.epochs * (min(len(self.pending), 1) if self.stackable else len(self.pending))


def pick_device(name: str) -> torch.device:
    """Return the device called `name`: "auto" is CUDA, if any."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    try:
        device = torch.device(name)
        check_choice("device", device.type, ("cpu", "cuda"))
    except (RuntimeError, InputError):
        raise InputError(f"device must be auto, cpu, cuda or cuda:<n>, got {format_value(name)}") from None
    if device.type == "cuda" and (not torch.cuda.is_available() or (device.index or 0) >= torch.cuda.device_count()):
        raise InputError(f"device is {name!r}, but this machine offers {torch.cuda.device_count()} CUDA devices")
    return device


def plan_job(cfg: DictConfig) -> Job:
    """Check a composed configuration and say what it would train."""
    plain = resolve_config(cfg)
    for key in getattr(target_of(plain["dataset"]), "user_files", ()):
        if isinstance(path := plain["dataset"].get(key), str) and path:
            plain["dataset"][key] = os.path.realpath(typed_path(path))  # however it is spelt, it is one table
    settings, dataset, model, method = check_config(plain)
    seeds = parse_seeds([plain["seed"]], "seed") if plain["seeds"] is None else parse_seeds(plain["seeds"])
    options = named = changed_options(plain)
    preset, name = plain["preset"], plain["dataset"]["name"]
    if preset in TUNED_PRESETS:  # whose values change when a method is tuned again, so they name the folder
        named = changed_options(plain, base_preset(name, preset))
    parts = (plain["experiment"], name, plain["model"]["name"], plain["method"]["name"], folder_name(preset, named))
    label = " ".join([name, plain["method"]["name"], preset, *(f"{key}={value}" for key, value in options.items())])
    out = Path(plain["out"])
    stackable = method.kind.stackable and getattr(model.kind, "stackable", False)
    job = Job(
        plain, seeds, options, label, out.joinpath("runs", *parts), out, pick_device(plain["device"]), settings,
        dataset.build(), model.build, method.build, stackable,
    )  # fmt: skip
    job.pending.extend(seed for seed in seeds if plain["rerun"] or not is_done(job.run_folder(seed), job.dataset))
    return job


def stack_key(job: Job) -> str:
    """Return what jobs must share to train as one stack: all of their configuration but seeds and what only draws.

    What a method names in `per_run` is each run's own: its options, and those of its parts, such as C-Mixup's
    bandwidth. So are learning rate and weight decay.
    """
    method, shared = job.config["method"], {k: v for k, v in job.config.items() if k not in ("seed", "seeds", "method")}
    of_runs = per_run(job.make_method())
    drawing = [key for key in of_runs if is_part(method.get(key))]
    passed_on = {key for part in drawing for key in method[part]}.difference(
        NOT_ARGUMENTS, arguments_of(target_of(method))
    )
    passed_on |= set(of_runs).difference(drawing)
    shared["method"] = {key: value for key, value in method.items() if key not in passed_on}
    shared["method"] |= {part: [method[part].get(name) for name in NOT_ARGUMENTS] for part in drawing}
    shared["train"] = {key: value for key, value in shared["train"].items() if key not in ("lr", "weight_decay")}
    alone = not job.stackable or job.config["checkpoint_every"]
    return json.dumps([shared, str(job.folder) if alone else ""], sort_keys=True)
