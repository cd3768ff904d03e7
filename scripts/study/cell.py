"""One cell of the study: the trials of a method on a table, then all seeds with the winner's options."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch

from cmixup.data import RegressionData
from cmixup.errors import InputError
from cmixup.training.trainer import RunResult, train
from scripts.driver.compose import compose_train
from scripts.driver.execute import make_run
from scripts.driver.job import Job, plan
from scripts.driver.provenance import environment
from scripts.plan.schedule import stacks_of
from scripts.study.rules import Cell, Rules

Load = Callable[[int], RegressionData]  # the rows of a seed


def nrmse(prediction: np.ndarray, target: np.ndarray, std: np.ndarray) -> float:
    """Return `sqrt(mean over targets of MSE / variance)`: the error in standard deviations of the label.

    Args:
        prediction, target: `(n, d_y)`.
        std: `(d_y,)`.
    """
    error = (prediction.astype(np.float64) - target.astype(np.float64)) / std
    return float(np.sqrt(np.square(error).mean()))


def train_cell(
    cell: Cell, rules: Rules, load: Load, std: np.ndarray
) -> tuple[dict[str, Any], list[np.ndarray], list[np.ndarray]]:
    """Tune a method on the tuning seed, trials that can as one stack, and train all seeds with the best options.

    Args:
        cell: what to train.
        rules: of the study.
        load: of the cell's table and condition.
        std: standard deviation of every target over the whole table, `(d_y,)` float64.

    Returns:
        The record, and the predictions and labels of the test rows of each seed, float32 `(n, d_y)`.

    Raises:
        InputError: every trial diverged.
    """
    started = time.perf_counter()
    trials = rules.trials(cell.method)
    jobs = [plan(compose_train([*rules.words(cell), *words])) for words in trials]
    torch.set_num_threads(1)

    def score(result: RunResult, data: RegressionData, part: str) -> float:
        found = nrmse(_prediction(result, data, part), getattr(data, part).y.numpy(), std)
        return found if math.isfinite(found) else math.inf

    tuned: dict[int, RunResult] = {}
    for stack in stacks_of([((), job) for job in jobs]):
        own = [job for _, job in stack]
        tuned |= zip(map(id, own), train_runs(own, [rules.tune_seed], load), strict=True)
    scores = [score(tuned[id(job)], load(rules.tune_seed), "val") for job in jobs]
    if not np.isfinite(scores).any():
        raise InputError("every trial diverged")
    best = int(np.argmin(scores))
    final = train_runs([jobs[best]], range(rules.seeds), load)
    data = [load(seed) for seed in range(rules.seeds)]
    rows = [
        {"seed": seed, **{part: score(run, d, part) for part in ("val", "test")},
         "best_epoch": run.best_epoch}
        for seed, (run, d) in enumerate(zip(final, data, strict=True))
    ]  # fmt: skip
    record = {
        "table": cell.table.name, "condition": cell.condition.name, "method": cell.method, "options": trials[best],
        "trials": [{"options": words, "val": val} for words, val in zip(trials, scores, strict=True)],
        "train_rows": len(data[0].train), "val_rows": len(data[0].val), "std": std.tolist(), "seeds": rows,
        "rules": rules.checksum, "checksums": dict(data[0].checksums), "seconds": time.perf_counter() - started,
        **environment(jobs[best].device),
    }  # fmt: skip
    prediction = [_prediction(run, d, "test") for run, d in zip(final, data, strict=True)]
    return record, prediction, [d.test.y.numpy() for d in data]


def train_runs(jobs: Sequence[Job], seeds: Sequence[int], load: Load) -> list[RunResult]:
    """Train all seeds of jobs that share a stack; return the results by job, then seed."""
    runs = [make_run(job, seed, load(seed)) for job in jobs for seed in seeds]
    return train(runs, jobs[0].settings, jobs[0].device)


def _prediction(result: RunResult, data: RegressionData, part: str) -> np.ndarray:
    """Return the predictions on a part, NaN for a run that failed."""
    if result.failure:
        return np.full_like(getattr(data, part).y.numpy(), np.nan)
    found: np.ndarray = result.predictions[part][""].numpy()
    return found
