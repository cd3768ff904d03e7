"""The runs that a composed configuration would train, checked before any work is done."""

import json
import os
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from omegaconf import DictConfig

from cmixup.errors import InputError, check_choice, check_count, format_value
from cmixup.training.method import check_settings, per_run
from cmixup.training.settings import TrainSettings
from scripts.config.arguments import parse_seeds
from scripts.config.compose import TUNED_PRESETS, base_preset
from scripts.config.parts import (
    NOT_ARGUMENTS,
    ROOT_KEYS,
    arguments_of,
    changed_options,
    check_part,
    check_type,
    is_part,
    resolve_config,
    target_of,
)
from scripts.config.words import typed_path
from scripts.driver.runs import RunFolder, folder_name

LOGGERS = ("wandb", "none")
MOST_THREADS = 1024  # PyTorch crashes where the system cannot start as many


@dataclass(frozen=True)
class Job:
    """One checked configuration: everything that is needed to train it, before any work is done."""

    config: dict[str, Any]  # the resolved configuration
    seeds: list[int]  # all seeds asked for
    options: dict[str, Any]  # what differs from dataset, model, method and preset alone
    label: str  # the job in a few words
    folder: Path  # where the seeds' folders go
    out: Path  # holds `runs`, and the locks of those who work there
    device: torch.device
    settings: TrainSettings
    dataset: Any
    make_model: Callable[..., torch.nn.Module]
    make_method: Callable[[], Any]
    stackable: bool = False  # whether its method and model train as a stack
    pending: list[int] = field(default_factory=list)

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
    """Check every key, type and value of a composed configuration, and return the job that it would train."""
    config = resolve_config(cfg)
    for key in getattr(target_of(config["dataset"]), "user_files", ()):
        if isinstance(path := config["dataset"].get(key), str) and path:
            config["dataset"][key] = os.path.realpath(typed_path(path))  # however it is spelt, it is one table
    # How it runs.
    for key, kind in ROOT_KEYS.items():
        check_type(key, config[key], kind)
    if not config["out"]:
        raise InputError(f"out must be a folder, got {config['out']!r}")
    check_choice("logger", config["logger"], LOGGERS)
    check_count("threads", config["threads"], 1, most=MOST_THREADS)
    check_count("checkpoint_every", config["checkpoint_every"], what="0 (never) or a whole number of epochs")
    check_choice("resume", config["resume"], ("same", "any"))
    # What it trains.
    settings = check_part("train", dict(config["train"]), function=TrainSettings).build()
    dataset = check_part("dataset", config["dataset"])
    model = check_part("model", config["model"], ("in_shape", "out_features"))  # which come from the data
    method = check_part("method", config["method"])
    built = method.build()  # refuses bad values now rather than after loading the data
    try:
        built.check_batch(settings.batch_size)
        check_settings(type(built), settings)
    except InputError as error:
        raise InputError(f"train.{error} (method {config['method']['name']})") from None
    stackable = method.kind.stackable and getattr(model.kind, "stackable", False)
    seeds = parse_seeds([config["seed"]], "seed") if config["seeds"] is None else parse_seeds(config["seeds"])
    # Where it goes.
    options = named = changed_options(config)
    preset, name = config["preset"], config["dataset"]["name"]
    if preset in TUNED_PRESETS:  # whose values change when a method is tuned again, so they name the folder
        named = changed_options(config, base_preset(name, preset))
    parts = (config["experiment"], name, config["model"]["name"], config["method"]["name"], folder_name(preset, named))
    label = " ".join([name, config["method"]["name"], preset, *(f"{key}={value}" for key, value in options.items())])
    out = Path(config["out"])
    job = Job(
        config, seeds, options, label, out.joinpath("runs", *parts), out, pick_device(config["device"]), settings,
        dataset.build(), model.build, method.build, stackable,
    )  # fmt: skip
    job.pending.extend(s for s in seeds if config["rerun"] or not RunFolder(job.run_folder(s)).is_done(job.dataset))
    return job


def stack_key(job: Job) -> str:
    """Return what jobs must share to train as one stack: all of their configuration but seeds and what only draws.

    What a method names in `per_run` is each run's own: its options, and those of its parts, such as C-Mixup's
    bandwidth. So are learning rate and weight decay.
    """
    method, shared = job.config["method"], {k: v for k, v in job.config.items() if k not in ("seed", "seeds", "method")}
    of_runs = per_run(job.make_method())
    drawing = [key for key in of_runs if is_part(method.get(key))]
    passed_on = {key for part in drawing for key in method[part]} - {*NOT_ARGUMENTS, *arguments_of(target_of(method))}
    passed_on |= set(of_runs).difference(drawing)
    shared["method"] = {key: value for key, value in method.items() if key not in passed_on}
    shared["method"] |= {part: [method[part].get(name) for name in NOT_ARGUMENTS] for part in drawing}
    shared["train"] = {key: value for key, value in shared["train"].items() if key not in ("lr", "weight_decay")}
    alone = not job.stackable or job.config["checkpoint_every"]
    return json.dumps([shared, str(job.folder) if alone else ""], sort_keys=True)
