"""Train one configuration: `python -m scripts.train dataset=airfoil model=fcn3 method=cmixup seed=0`.

`seeds=0..9` trains several seeds as one stack; `-m` sweeps: `method.bandwidth=0.1,1,10 'seed=range(0,3)'`. A job of a
sweep that fails is named at the end, and the others go on. What Optuna and other sweepers get is the validation score
that selects checkpoints, the mean over seeds.
"""

from __future__ import annotations

import contextlib
import itertools
import math
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
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from cmixup.errors import InputError
from cmixup.metrics import METRICS
from scripts.config.arguments import as_options
from scripts.config.compose import CONFIG_DIR, compose_train, in_words, is_tuned, option_names, with_tuned
from scripts.config.help_text import train_help
from scripts.driver.cli import bandwidth_warnings, guarded_job, in_sweep, job_label, say_once, user_errors
from scripts.driver.devices import device_word, joined_processes, send_seeds
from scripts.driver.execute import execute_job, train_along
from scripts.driver.job import Job, plan_job
from scripts.driver.logger import log_done
from scripts.driver.predictions import PREDICTIONS, read_predictions
from scripts.driver.progress import ProgressDisplay
from scripts.driver.runs import read_report
from scripts.driver.workers import run_apart
from scripts.plan.costs import run_minutes


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
        score = lead_training(job)  # where it fails, torchrun ends the others
        send_seeds(None)
        return score


def lead_training(job: Job) -> float:
    """Train a planned job, write it and print it; see `run_training`."""
    epochs, name = job.settings.epochs, job.config["dataset"]["name"]
    if job.pending:
        say_once(f"{name}: {line}" for line in job.dataset.problems())
    with ProgressDisplay(job.epochs, f"training {counted_seeds(job.pending)}") as board:
        if job.pending:
            board.begin(job_label(job))
        execute_job(
            job,
            lambda epoch, rows: board.epoch(job_label(job), epoch, epochs, rows[0]),
            lambda step, steps: board.search(job_label(job), step, steps),
        )
    for line in bandwidth_warnings(job):
        print(line, file=sys.stderr)
    reports = [read_report(job.run_folder(seed)) for seed in job.seeds]
    say_once(f"{name}: {note}" for report in reports for note in report["notes"])
    for seed, report in zip(job.seeds, reports, strict=True):
        folder, done = job.run_folder(seed), seed not in job.pending
        if done:
            log_done(job.config, job.options, seed, folder)
        print(
            f"{job_label(job)} seed {seed}: test {said_scores(report['scores']['test'])}{in_label_units(folder, job)}"
            f"{'  (already done; rerun=true trains it again)' if done else ''}"
        )
    if len(reports) > 1:
        print(f"{job_label(job)} mean of {len(reports)} seeds: test {mean_scores(reports)}")
    print(f"Runs: {job.folder}")
    return math.fsum(r["scores"]["val"][r["selection"]] for r in reports) / len(reports)


def counted_seeds(seeds: Sequence[int]) -> str:
    """Return how many seeds there are, in words."""
    return f"{len(seeds)} seed{'s' * (len(seeds) != 1)}"


def said_scores(scores: Mapping[str, float]) -> str:
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
    found, truth = (np.exp(values.astype(np.float64)) for values in (kept["test"].prediction[""], kept["test"].target))
    return f" of the logarithm; rmse {np.sqrt(np.mean((found - truth) ** 2)):.4f} in the label's unit"


@hydra.main(version_base="1.3", config_path=str(CONFIG_DIR), config_name="train")
def main(cfg: DictConfig) -> float:
    """Entry point; errors that a user can mend are one line, without a traceback, and end no sweep."""

    def one() -> float:
        return run_training(compose_train(HydraConfig.get().overrides.task) if is_tuned(cfg.preset) else cfg)

    with user_errors():
        return guarded_job(lambda: run_apart(lambda: guarded_job(one))) if in_sweep() else one()


def spell_out(words: list[str]) -> list[str]:
    """Return a command line as Hydra takes it: `table=` and `target=` as options of the dataset csv.

    One that asks Hydra to show a configuration has the values that a tuned preset stands for.
    """
    if any(word.startswith("table=") for word in words) and not any(word.startswith("dataset=") for word in words):
        words = [*words, "dataset=csv"]
    words = [as_options(word) for word in words]
    presets = [word.partition("=")[2] for word in words if word.startswith("preset=")]
    if {"--cfg", "-c"} & set(words) and presets and is_tuned(presets[-1]):
        first = next(k for k, word in enumerate(words) if "=" in word)
        cfg = compose_train([word for word in words if "=" in word and not word.startswith("preset=")])
        return [*words[:first], *with_tuned(cfg, presets[-1], words[first:])]
    return words


def say_hours(words: list[str]) -> None:
    """Say how long a sweep takes where that is an hour or more, by published runs of its datasets and methods."""
    if not {"-m", "--multirun"} & set(words):
        return
    parser, jobs, choices = OverridesParser.create(), 1, list[list[str]]()
    for word in (word for word in words if "=" in word and not word.startswith(("-", "hydra"))):
        given = parser.parse_override(word)
        swept = list(given.sweep_string_iterator()) if given.is_sweep_override() else [word.partition("=")[2]]
        jobs *= len(swept)
        looked_at = swept if given.get_key_element() in ("dataset", "method", "preset") else swept[:1]
        choices.append([f"{given.get_key_element()}={value}" for value in looked_at])
    with contextlib.suppress(InputError):  # its job says it
        planned = [plan_job(compose_train(each)) for each in itertools.product(*choices)]
        hours = sum(run_minutes(job) * len(job.seeds) for job in planned) / len(planned) * jobs / 60
        if hours >= 1:
            print(f"{jobs} jobs, about {hours:.1f} hours on one core; stopped, the command goes on", file=sys.stderr)


if __name__ == "__main__":
    if {"-h", "--help"} & set(sys.argv[1:]):
        print(train_help(option_names))
        raise SystemExit(0)
    with user_errors():
        sys.argv[1:] = spell_out(sys.argv[1:])
        os.environ.setdefault("HYDRA_FULL_ERROR", "1")  # so that its errors come here
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray's launcher reports to nobody
        try:
            say_hours(sys.argv[1:])
            main()
        except (HydraException, OmegaConfBaseException) as error:
            raise InputError(in_words(error)) from None
        except BrokenExecutor:
            raise InputError("a process of the launcher was killed; the same command trains what is left") from None
