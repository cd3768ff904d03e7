"""Train one configuration: `python -m scripts.train dataset=airfoil model=fcn3 method=cmixup seed=0`.

`seeds=0..9` trains several seeds as one stack; `-m` sweeps: `method.bandwidth=0.1,1,10 'seed=range(0,3)'`. A job of a
sweep that fails is named at the end, and the others go on. What Optuna and other sweepers get is the validation score
that selects checkpoints, the mean over seeds.
"""

from __future__ import annotations

import math
import multiprocessing
import os
import statistics
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import BrokenExecutor
from pathlib import Path
from typing import Any

import hydra
import numpy as np
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from cmixup.errors import InputError
from cmixup.metrics import METRICS
from scripts.config.arguments import train_help
from scripts.config.compose import (
    CONFIG_DIR,
    compose_train,
    describe_error,
    is_tuned,
    option_names,
    table_words,
    with_tuned,
)
from scripts.driver.cli import bandwidth_warnings, guarded_job, in_sweep, job_label, print_once, user_errors
from scripts.driver.devices import device_word, joined_processes, send_seeds
from scripts.driver.execute import execute_job, train_along
from scripts.driver.job import Job, plan_job
from scripts.driver.logger import log_done
from scripts.driver.predictions import PREDICTIONS, read_predictions
from scripts.driver.progress import ProgressDisplay
from scripts.driver.runs import read_report
from scripts.driver.workers import end_with


def run_training(cfg: DictConfig) -> float:
    """Plan, train what is not done, and print one line a seed.

    Returns:
        The validation score that selects checkpoints, the mean over the seeds.
    """
    cfg.device = device_word(cfg.device)
    job = plan_job(cfg)
    with joined_processes(str(job.device)) as rank:
        if rank:
            train_along(job)
            return math.nan
        score = run_job(job)  # where it fails, torchrun ends the others
        send_seeds(None)
        return score


def run_job(job: Job) -> float:
    """Train a planned job, write it and print it; see `run_training`."""
    epochs, name, label = job.settings.epochs, job.config["dataset"]["name"], job_label(job)
    if job.pending:
        print_once(f"{name}: {line}" for line in job.dataset.problems())
    with ProgressDisplay(job.epochs, f"training {count_noun(len(job.pending), 'seed')}") as board:
        if job.pending:
            board.begin(label)
        execute_job(
            job,
            lambda epoch, rows: board.epoch(label, epoch, epochs, rows[0]),
            lambda step, steps: board.search(label, step, steps),
        )
    for line in bandwidth_warnings(job):
        print(line, file=sys.stderr)
    reports = [read_report(job.run_folder(seed)) for seed in job.seeds]
    print_once(f"{name}: {note}" for report in reports for note in report["notes"])
    for seed, report in zip(job.seeds, reports, strict=True):
        folder, again = job.run_folder(seed), ""
        if seed not in job.pending:
            log_done(job.config, job.options, seed, folder)
            again = "  (already done; rerun=true trains it again)"
        print(
            f"{label} seed {seed}: test {format_scores(report['scores']['test'])}{in_label_units(folder, job)}{again}"
        )
    if len(reports) > 1:
        print(f"{label} mean of {len(reports)} seeds: test {mean_scores(reports)}")
    print(f"Runs: {job.folder}")
    return math.fsum(r["scores"]["val"][r["selection"]] for r in reports) / len(reports)


def count_noun(count: int, noun: str) -> str:
    """Return a number of things in words, such as "1 seed" or "3 seeds"."""
    return f"{count} {noun}{'s' * (count != 1)}"


def format_scores(scores: Mapping[str, float]) -> str:
    """Return scores by name with their units where these are percent."""
    return "  ".join(f"{name} {score_digits(value)}{percent_sign(name)}" for name, value in scores.items())


def mean_scores(reports: Sequence[Mapping[str, Any]]) -> str:
    """Return each test score's mean over seeds, and their standard deviation behind +-."""
    parts = []
    for name in reports[0]["scores"]["test"]:
        values = [report["scores"]["test"][name] for report in reports]
        mean, std = score_digits(statistics.fmean(values)), score_digits(statistics.stdev(values))
        parts.append(f"{name} {mean} ± {std}{percent_sign(name)}")
    return "  ".join(parts) + "  (± std)"


def percent_sign(metric: str) -> str:
    """Return the sign of a metric in percent, or nothing."""
    return " %" if metric in METRICS and METRICS[metric].unit == "%" else ""


def score_digits(value: float) -> str:
    """Return a score with four decimals, or with five digits where these are few or none."""
    return f"{value:.4f}" if value == 0 or 0.01 <= abs(value) < 1e6 else f"{value:.5g}"


def in_label_units(folder: Path, job: Job) -> str:
    """Return the test error in the label's own unit, in words, for a run that was trained on its logarithm."""
    if not getattr(job.dataset, "log_target", False):
        return ""
    ((_, kept),) = read_predictions(folder / PREDICTIONS).items()
    test = kept["test"]
    error = np.exp(test.prediction[""].astype(np.float64)) - np.exp(test.target.astype(np.float64))
    return f" of the logarithm; rmse {np.sqrt(np.mean(error**2)):.4f} in the label's unit"


@hydra.main(version_base="1.3", config_path=str(CONFIG_DIR), config_name="train")
def main(cfg: DictConfig) -> float:
    """Entry point; errors that a user can correct are one line, without a traceback, and end no sweep."""

    def train() -> float:
        return run_training(compose_train(HydraConfig.get().overrides.task) if is_tuned(cfg.preset) else cfg)

    with user_errors():
        if not in_sweep():
            return train()
        if (command := multiprocessing.parent_process()) is not None:  # a launcher's, such as joblib's
            end_with(command.pid or 0)
        return guarded_job(train)


def normalize_arguments(words: list[str]) -> list[str]:
    """Return a command line as Hydra takes it: `table=` and `target=` as options of the dataset csv.

    One that asks Hydra to show a configuration has the values that a tuned preset stands for.
    """
    words = table_words(words)
    presets = [word.partition("=")[2] for word in words if word.startswith("preset=")]
    if {"--cfg", "-c"} & set(words) and presets and is_tuned(presets[-1]):
        first = next(k for k, word in enumerate(words) if "=" in word)
        cfg = compose_train([word for word in words if "=" in word and not word.startswith("preset=")])
        return [*words[:first], *with_tuned(cfg, presets[-1], words[first:])]
    return words


if __name__ == "__main__":
    with user_errors():
        if {"-h", "--help"} & set(sys.argv[1:]):
            print(train_help(option_names), flush=True)
            raise SystemExit(0)
        sys.argv[1:] = normalize_arguments(sys.argv[1:])
        os.environ.setdefault("HYDRA_FULL_ERROR", "1")  # so that its errors come here
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray's launcher reports to nobody
        try:
            main()
        except (HydraException, OmegaConfBaseException) as error:
            raise InputError(describe_error(error)) from None
        except BrokenExecutor:
            raise InputError("a process of the launcher was killed; the same command trains what is left") from None
