"""One cell of the study: the trials of a method on a table, then runs with the winners' options."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from cmixup.data import RegressionData
from cmixup.errors import InputError
from cmixup.training.trainer import RunResult, train
from datasets.common.fetch import sha256_of
from scripts.driver.compose import compose_train
from scripts.driver.execute import make_run
from scripts.driver.job import Job, plan
from scripts.driver.predictions import Scored, scored
from scripts.driver.provenance import environment
from scripts.plan.schedule import stacks_of
from scripts.study.rules import Rules, Run, StudyCell

PARTS = ("val", "test")
Load = Callable[[int], RegressionData]  # the rows of a split
Asked = tuple[Run, tuple[str, ...]]  # a run and its words


class Ended(NamedTuple):
    """What a run gave: its scores and best epoch, and its predictions on the parts that are kept."""

    row: Mapping[str, Any]
    parts: Mapping[str, Scored]


Known = Mapping[Asked, Ended]


def train_cell(
    cell: StudyCell, rules: Rules, load: Load, std: np.ndarray, known: Known | None = None
) -> tuple[dict[str, Any], list[Mapping[str, Scored]]]:
    """Tune a method and train the runs of the rules with the best options, those that can as one stack.

    Args:
        cell: what to train.
        rules: of the study.
        load: of the cell's table and condition.
        std: standard deviation of every target over the whole table, `(d_y,)` float64.
        known: what other cells of the table and condition have trained.

    Returns:
        The record, and the predictions of each of its runs on the parts that the rules keep.

    Raises:
        InputError: every trial of a tuning diverged.
    """
    started, known = time.perf_counter(), known or {}
    torch.set_num_threads(1)
    make = cache(lambda words: plan(compose_train(rules.command(cell, words))))
    tunings = rules.tunings(cell)

    def trained(asked: Sequence[Asked]) -> list[Ended]:
        """Return how each run ended, in order."""
        new = [one for one in dict.fromkeys(asked) if one not in known]
        results = train_runs([(make(words), run) for run, words in new], load, apart=cell.condition.grouped)
        found = dict(known)
        for (run, words), result in zip(new, results, strict=True):
            found[run, words] = _ended(result, load(run.split), std, rules, grouped=cell.condition.grouped)
        return [found[one] for one in asked]

    tried = trained([(tuning.at, tuple(words)) for tuning in tunings for words in tuning.trials])
    trials, finals = list[dict[str, Any]](), list[Asked]()
    for tuning in tunings:
        values = [tried[len(trials) + k].row["val"] for k in range(len(tuning.trials))]
        if not np.isfinite(values).any():
            raise InputError(f"every trial on split {tuning.at.split} diverged")
        chosen = tuple(tuning.trials[int(np.argmin(values))])
        finals += [(run, chosen) for run in tuning.finals]
        trials += [
            {"seed": tuning.at.seed, "options": words, "val": val}
            for words, val in zip(tuning.trials, values, strict=True)
        ]
    ended = trained(finals)
    rows = [
        {"seed": run.seed, "split": run.split, "options": list(words), **one.row}
        for (run, words), one in zip(finals, ended, strict=True)
    ]
    data = load(finals[0][0].split)
    record = {
        "table": cell.table.name, "condition": cell.condition.name, "method": cell.method, "seeds": rows,
        "trials": trials, "train_rows": len(data.train), "val_rows": len(data.val), "std": std.tolist(),
        "rules": rules.checksum, "checksums": dict(data.checksums), "seconds": time.perf_counter() - started,
        **environment(make(finals[0][1]).device),
    }  # fmt: skip
    if file := rules.methods[cell.method].get("file"):
        record["entry"] = {"file": Path(file).name, "sha256": sha256_of(Path(file))}
    return record, [one.parts for one in ended]


def train_runs(runs: Sequence[tuple[Job, Run]], load: Load, *, apart: bool = False) -> list[RunResult]:
    """Train runs, those that can as one stack, and return the results in order; no method sees the test labels.

    Args:
        runs: a job for each.
        load: of their rows.
        apart: whether splits differ in size, so that runs of different ones share no stack.
    """
    found: dict[int, RunResult] = {}
    rows = cache(lambda split: _without_test_labels(load(split)))
    for split in sorted({run.split for _, run in runs}) if apart else [None]:
        own = [([str(k)], job) for k, (job, run) in enumerate(runs) if split in (None, run.split)]
        for stack in stacks_of(own):
            places = [int(words[0]) for words, _ in stack]
            made = [make_run(runs[k][0], runs[k][1].seed, rows(runs[k][1].split)) for k in places]
            found |= zip(places, train(made, stack[0][1].settings, stack[0][1].device), strict=True)
    return [found[k] for k in range(len(runs))]


def _without_test_labels(data: RegressionData) -> RegressionData:
    return replace(data, test=replace(data.test, y=torch.zeros_like(data.test.y)))


def _ended(result: RunResult, data: RegressionData, std: np.ndarray, rules: Rules, *, grouped: bool) -> Ended:
    """Return the scores of a run and the predictions that the rules keep; of one that failed NaN and infinity."""
    if result.failure:
        result = replace(result, predictions={p: {"": torch.full_like(getattr(data, p).y, math.nan)} for p in PARTS})
    parts = {part: rules.kept(one) for part, one in scored(data, result).items()}
    row: dict[str, Any] = {"best_epoch": result.best_epoch}
    for part, one in parts.items():
        each = rules.scores(one, std, grouped=grouped)
        row |= {name.replace("nrmse", part, 1): v if math.isfinite(v) else math.inf for name, v in each.items()}
    return Ended(row, {part: parts[part] for part in rules.parts})
