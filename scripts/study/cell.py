"""One cell of the study: the trials of a method on a table, then all seeds with the winner's options."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from cmixup.data import RegressionData
from cmixup.errors import InputError
from cmixup.training.trainer import RunResult, train
from scripts.driver.compose import compose_train
from scripts.driver.job import make_run
from scripts.driver.plan import Job, plan
from scripts.driver.provenance import environment
from scripts.plan.schedule import stacks_of
from scripts.study.rules import Cell, Rules

LoadFn = Callable[[Job, int], RegressionData]


class Loader:
    """Loads the rows of one table under one condition, each seed once."""

    def __init__(self) -> None:
        self.job: Job | None = None
        self.loaded: dict[int, RegressionData] = {}

    def __call__(self, job: Job, seed: int) -> RegressionData:
        """Return the rows of a seed; all jobs asked for must be of one dataset with one set of options."""
        if self.job is None:
            self.job = job
        if job.config["dataset"] != self.job.config["dataset"]:
            raise InputError("a loader is of one dataset with one set of options")
        if seed not in self.loaded:
            self.loaded[seed] = self.job.dataset.load(seed)
        return self.loaded[seed]

    @property
    def std(self) -> np.ndarray:
        """Standard deviation of every target over the whole table, `(d_y,)` float64."""
        assert self.job is not None
        found: np.ndarray = self.job.dataset.table.y.std(axis=0)
        return found


def nrmse(prediction: np.ndarray, target: np.ndarray, std: np.ndarray) -> float:
    """Return `sqrt(mean over targets of MSE / variance)`: the error in standard deviations of the label.

    Args:
        prediction, target: `(n, d_y)`.
        std: `(d_y,)`.
    """
    error = (prediction.astype(np.float64) - target.astype(np.float64)) / std
    return float(np.sqrt(np.square(error).mean()))


def train_cell(cell: Cell, rules: Rules, load: Loader) -> tuple[dict[str, Any], list[np.ndarray], list[np.ndarray]]:
    """Tune a method and train its seeds.

    Returns:
        The record, and the predictions and labels of the test rows of each seed, float32 `(n, d_y)`.

    Raises:
        InputError: a table that cannot be read, or every trial diverged.
    """
    started, shared = time.perf_counter(), rules.words(cell)
    trials = rules.trials(cell.method)
    jobs = [plan(compose_train([*shared, *words])) for words in trials]
    torch.set_num_threads(1)
    results, data = train_trials(trials, jobs, rules.tune_seed, load), load(jobs[0], rules.tune_seed)
    scores = np.array([_score(result, data, "val", load.std) for result in results])
    if not np.isfinite(scores).any():
        raise InputError(f"every trial of {' '.join(cell.key)} diverged")
    best = int(scores.argmin())
    job, seeds = jobs[best], list(range(rules.seeds))
    (final,) = train_runs([job], seeds, load)
    each = [load(job, seed) for seed in seeds]
    rows = []
    for seed, one, d in zip(seeds, final, each, strict=True):
        both = {part: _score(one, d, part, load.std) for part in ("val", "test")}
        rows.append({"seed": seed, **both, "best_epoch": one.best_epoch})
    tried = [{"options": words, "val": score} for words, score in zip(trials, scores.tolist(), strict=True)]
    record = {
        "table": cell.table.name, "condition": cell.condition.name, "method": cell.method, "options": trials[best],
        "trials": tried, "train_rows": len(each[0].train), "val_rows": len(each[0].val), "std": load.std.tolist(),
        "seeds": rows, "rules": rules.checksum, "checksums": dict(each[0].checksums),
        "seconds": time.perf_counter() - started, **environment(job.device),
    }  # fmt: skip
    prediction = [_prediction(result, d, "test") for result, d in zip(final, each, strict=True)]
    return record, prediction, [d.test.y.numpy() for d in each]


def train_trials(trials: Sequence[list[str]], jobs: Sequence[Job], seed: int, load: LoadFn) -> list[RunResult]:
    """Train the jobs of all trials on one seed, those that can as one stack; return the results in the jobs' order."""
    found: dict[int, RunResult] = {}
    for stack in stacks_of(list(zip(trials, jobs, strict=True))):
        results = train_runs([job for _, job in stack], [seed], load)
        found |= {id(job): result for (_, job), (result,) in zip(stack, results, strict=True)}
    return [found[id(job)] for job in jobs]


def train_runs(jobs: Sequence[Job], seeds: Sequence[int], load: LoadFn) -> list[list[RunResult]]:
    """Train all seeds of jobs that share a stack; return the results by job, then seed."""
    runs = [make_run(job, seed, load(job, seed)) for job in jobs for seed in seeds]
    results = train(runs, jobs[0].settings, jobs[0].device)
    return [results[k * len(seeds) : (k + 1) * len(seeds)] for k in range(len(jobs))]


def _score(result: RunResult, data: RegressionData, part: str, std: np.ndarray) -> float:
    if result.failure:
        return float("inf")
    return nrmse(_prediction(result, data, part), getattr(data, part).y.numpy(), std)


def _prediction(result: RunResult, data: RegressionData, part: str) -> np.ndarray:
    """Return the predictions on a part, NaN for a run that failed."""
    if result.failure:
        return np.full_like(getattr(data, part).y.numpy(), np.nan)
    found: np.ndarray = result.predictions[part][""].numpy()
    return found
