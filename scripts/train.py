"""Train one configuration: `python -m scripts.train dataset=airfoil model=fcn3 method=cmixup seed=0`.

`seeds=0..9` trains several seeds as one stack; `-m` sweeps: `method.bandwidth=0.1,1,10 'seed=range(0,3)'`. A job of a
sweep that fails is named at the end, and the others go on. What Optuna and other sweepers get is the validation score
that selects checkpoints, the mean over seeds.
"""

import itertools
import math
import os
import statistics
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import BrokenExecutor
from typing import Any

import hydra
from hydra.core.hydra_config import HydraConfig
from hydra.errors import HydraException
from hydra.types import RunMode
from omegaconf import DictConfig
from omegaconf.errors import OmegaConfBaseException

from cmixup.errors import InputError
from cmixup.metrics import METRICS, NAIVE, parse_score
from scripts.config.compose import CONFIG_DIR, TUNED_PRESETS, compose_train, describe_error, normalize_arguments
from scripts.config.words import take_folders
from scripts.driver.cli import bandwidth_warnings, guarded_job, print_once, user_errors
from scripts.driver.execute import execute_together
from scripts.driver.job import plan_job
from scripts.driver.progress import ProgressDisplay
from scripts.driver.runs import RunFolder
from scripts.driver.workers import end_with_parent


def run_training(cfg: DictConfig) -> float:
    """Plan, train what is not done, print a line a seed; return the mean validation score that selects checkpoints."""
    job = plan_job(compose_train(HydraConfig.get().overrides.task) if cfg.preset in TUNED_PRESETS else cfg)
    epochs, name, label = job.settings.epochs, job.config["dataset"]["name"], job.label
    if job.pending:
        print_once(f"{name}: {line}" for line in job.dataset.problems())
    with ProgressDisplay(job.epochs, f"training {len(job.pending)} seed{'s' * (len(job.pending) != 1)}") as board:
        execute_together([job], lambda epoch, rows: board.show(label, epoch, epochs, rows[0]))
    for line in bandwidth_warnings(job):
        print(line, file=sys.stderr)
    reports = [RunFolder(job.run_folder(seed)).report() for seed in job.seeds]
    print_once(f"{name}: {note}" for report in reports for note in report["notes"])
    shared = [score for score in reports[0]["scores"]["test"] if all(score in r["scores"]["test"] for r in reports)]
    baselines = [score for score in shared if parse_score(score)[2].startswith(NAIVE)]
    tests = [{key: value for key, value in r["scores"]["test"].items() if key not in baselines} for r in reports]
    unit = " of the logarithm" if getattr(job.dataset, "log_target", False) else ""
    for seed, scores_of_seed in zip(job.seeds, tests, strict=True):
        scores = "  ".join(itertools.starmap(format_score, scores_of_seed.items()))
        suffix = "" if seed in job.pending else "  (already done; rerun=true trains it again)"
        print(f"{label} seed {seed}: test {scores}{unit}{suffix}")
    if len(reports) > 1:
        by_metric = {metric: [scores[metric] for scores in tests] for metric in tests[0] if metric in shared}
        means = "  ".join(format_score(metric, *values) for metric, values in by_metric.items())
        print(f"{label} mean of {len(reports)} seeds: test {means}  (± std)")
    if baselines and (line := baseline_line(reports, baselines)):
        print(f"{name}: {line}")
    print(f"Runs: {job.folder}")
    return math.fsum(r["scores"]["val"][r["selection"]] for r in reports) / len(reports)


def baseline_line(reports: Sequence[Mapping[str, Any]], baselines: Sequence[str]) -> str:
    """Return the test scores of predictions that need no network in words, and whether the runs are better.

    All are means over the runs, whose splits may differ.
    """
    selection, by_name = reports[0]["selection"], dict[str, list[str]]()
    scores = {score: statistics.fmean(r["scores"]["test"][score] for r in reports) for score in (selection, *baselines)}
    for score in baselines:
        _, metric, name = parse_score(score)
        texts = by_name.setdefault(name.removeprefix(NAIVE).replace("_", " "), [])
        texts.append(format_score(metric, scores[score]))
    errors = [scores[score] for score in baselines if score.startswith(f"{selection}_{NAIVE}")]
    if not errors:
        return ""
    better = "better than all of them" if scores[selection] < min(errors) else "no better than the best of them"
    listed = "; ".join(f"{name} {'  '.join(values)}" for name, values in by_name.items())
    return f"without a network: test {listed}; training was {better} by {selection}"


def format_score(metric: str, *values: float) -> str:
    """Return a score with its name and a sign of percent, or the mean of several and their standard deviation.

    Numbers have four decimals, or five digits where these are few or none.
    """
    numbers = values if len(values) == 1 else (statistics.fmean(values), statistics.stdev(values))
    text = " ± ".join(f"{x:.4f}" if x == 0 or 0.01 <= abs(x) < 1e6 else f"{x:.5g}" for x in numbers)
    return f"{metric} {text}{' %' if metric in METRICS and METRICS[metric].unit == '%' else ''}"


@hydra.main(version_base="1.3", config_path=str(CONFIG_DIR), config_name="train")
def main(cfg: DictConfig) -> float:
    """Entry point; errors that a user can correct are one line, without a traceback, and end no sweep."""
    with user_errors():
        take_folders(HydraConfig.get().overrides.hydra)  # a launcher's process elsewhere has not read the command line
        if HydraConfig.get().mode != RunMode.MULTIRUN:
            return run_training(cfg)
        end_with_parent()  # a launcher's, such as joblib's
        return guarded_job(lambda: run_training(cfg))


if __name__ == "__main__":
    with user_errors():
        sys.argv[1:] = normalize_arguments(sys.argv[1:])
        os.environ.setdefault("HYDRA_FULL_ERROR", "1")  # so that its errors come here
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # Ray's launcher reports to nobody
        try:
            main()
        except (HydraException, OmegaConfBaseException) as error:
            raise InputError(describe_error(error)) from None
        except BrokenExecutor:
            raise InputError("a process of the launcher was killed; the same command trains what is left") from None
