"""One cell of the study: trials of a method on a table, then runs with the winners' options, or a model that is fitted.

Models of the sea level have the defaults of their packages, and are fitted once on each split of protocol 2.
"""

from __future__ import annotations

import importlib
import importlib.util
import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch

from cmixup.data import RegressionData
from cmixup.errors import InputError
from cmixup.losses import Loss
from cmixup.training.trainer import RunResult, train
from datasets.common.fetch import sha256_of
from scripts.config.compose import compose_train
from scripts.driver.execute import make_run
from scripts.driver.job import Job, plan_job
from scripts.driver.predictions import Parts, Scored, scored_predictions
from scripts.driver.provenance import run_environment
from scripts.plan.schedule import stacks_of
from scripts.protocol.protocols import Protocol2, SeaLevel
from scripts.protocol.rules import Run, StudyCell
from scripts.records.study_errors import error_scores, normal_scores, rounded_predictions, row_key

PARTS = ("val", "test")
Load = Callable[[int], RegressionData]  # the rows of a split
Asked = tuple[Run, tuple[str, ...]]  # a run and its words


class Ended(NamedTuple):
    """What a run gave: its scores and best epoch, and its predictions on the parts that are kept."""

    row: Mapping[str, Any]
    parts: Parts


Known = Mapping[Asked, Ended]


def train_cell(
    cell: StudyCell, rules: Protocol2, load: Load, std: np.ndarray, known: Known | None = None, *,
    sign: Callable[[str], None] = lambda _: None,
) -> tuple[dict[str, Any], list[Parts]]:  # fmt: skip
    """Tune a method and train the runs of the rules with the best options, those that can as one stack.

    Args:
        cell: what to train.
        rules: of the study.
        load: of the cell's table and condition.
        std: standard deviation of every target over the whole table, `(d_y,)` float64.
        known: what other cells of the table and condition have trained.
        sign: called after each epoch with words for how far the cell is.

    Returns:
        The record, and the predictions of each of its runs on validation and test.

    Raises:
        InputError: every trial of a tuning diverged.
    """
    started, known = time.perf_counter(), known or {}
    torch.set_num_threads(1)
    make = cache(lambda words: plan_job(compose_train(rules.command(cell, words))))
    tunings = rules.tunings(cell)

    def trained(asked: Sequence[Asked], what: str) -> list[Ended]:
        """Return how each run ended, in order."""
        new = [one for one in dict.fromkeys(asked) if one not in known]
        about = f"{cell.method}, {len(new)} {what}, "
        runs = [(make(words), run) for run, words in new]
        results = train_runs(runs, load, apart=cell.condition.grouped, sign=lambda text: sign(about + text))
        found = dict(known)
        for (run, words), result in zip(new, results, strict=True):
            loss = make(words).settings.fitted_by
            found[run, words] = _run_scores(result, load(run.split), std, loss, grouped=cell.condition.grouped)
        return [found[one] for one in asked]

    searched = [tuning for tuning in tunings if len(tuning.trials) > 1]  # a trial alone is chosen without training it
    tried = trained([(tuning.at, tuple(words)) for tuning in searched for words in tuning.trials], "trials")
    trials, finals = list[dict[str, Any]](), list[Asked]()
    for tuning in tunings:
        if tuning not in searched:
            finals += [(run, tuple(tuning.trials[0])) for run in tuning.finals]
            continue
        by = row_key("val", rules.selection)
        values = [tried[len(trials) + k].row[by] for k in range(len(tuning.trials))]
        if not np.isfinite(values).any():
            raise InputError(f"every trial on split {tuning.at.split} diverged")
        best = tuning.trials[int(np.argmin(values))]
        chosen = tuple(rules.final_words(cell.method, best))
        finals += [(run, chosen) for run in tuning.finals]
        trials += [
            {"seed": tuning.at.seed, "options": words, "val": val}
            for words, val in zip(tuning.trials, values, strict=True)
        ]
    ended = trained(finals, "runs with the best options")
    rows = [
        {"seed": run.seed, "split": run.split, "options": list(words), **one.row}
        for (run, words), one in zip(finals, ended, strict=True)
    ]
    record = {
        **_cell_record(cell, rules.checksum, load(finals[0][0].split), std, rows), "trials": trials,
        "seconds": time.perf_counter() - started, **run_environment(make(finals[0][1]).device),
    }  # fmt: skip
    if file := rules.methods[cell.method].get("file"):
        record["entry"] = {"file": Path(file).name, "sha256": sha256_of(Path(file))}
    return record, [one.parts for one in ended]


def train_runs(
    runs: Sequence[tuple[Job, Run]], load: Load, *, apart: bool = False, sign: Callable[[str], None] = lambda _: None
) -> list[RunResult]:
    """Train runs, those that can as one stack, and return the results in order; no method sees the test labels.

    Args:
        runs: a job for each.
        load: of their rows.
        apart: whether splits differ in size, so that runs of different ones share no stack.
        sign: called after each epoch with words for it.
    """
    found: dict[int, RunResult] = {}
    rows = cache(lambda split: _without_test_labels(load(split)))
    for split in sorted({run.split for _, run in runs}) if apart else [None]:
        own = [([str(k)], job) for k, (job, run) in enumerate(runs) if split in (None, run.split)]
        for stack in stacks_of(own):
            places = [int(words[0]) for words, _ in stack]
            made = [make_run(runs[k][0], runs[k][1].seed, rows(runs[k][1].split)) for k in places]
            settings = stack[0][1].settings

            def tell(epoch: int, _: object, most: int = settings.epochs, left: int = len(runs) - len(found)) -> None:
                sign(f"{left} left, epoch {epoch} of {most} at most")

            found |= zip(places, train(made, settings, stack[0][1].device, on_epoch=tell), strict=True)
    return [found[k] for k in range(len(runs))]


def _without_test_labels(data: RegressionData) -> RegressionData:
    return replace(data, test=replace(data.test, y=torch.zeros_like(data.test.y)))


def _run_scores(result: RunResult, data: RegressionData, std: np.ndarray, loss: Loss, *, grouped: bool) -> Ended:
    """Return the scores of a run and the predictions that are kept; of one that failed NaN and infinity."""
    if result.failure:
        nothing = {p: torch.full_like(getattr(data, p).y, math.nan).repeat(1, loss.outputs) for p in PARTS}
        result = replace(result, predictions={p: loss.by_predictor("", each) for p, each in nothing.items()})
    return _part_scores(scored_predictions(data, result), result.best_epoch, std, grouped=grouped)


def _part_scores(parts: Mapping[str, Scored], best_epoch: int, std: np.ndarray, *, grouped: bool) -> Ended:
    kept = {part: rounded_predictions(one) for part, one in parts.items()}
    row: dict[str, Any] = {"best_epoch": best_epoch}
    for part, one in kept.items():
        each = error_scores(one, std, grouped=grouped) | normal_scores(one, kept["val"], std)
        row |= {row_key(part, name): v if math.isfinite(v) else math.inf for name, v in each.items()}
    return Ended(row, kept)


def _cell_record(
    cell: StudyCell, checksum: str, data: RegressionData, std: np.ndarray, rows: Sequence[Mapping[str, Any]]
) -> dict[str, Any]:
    """Return what a cell's record says of its rows of data and of its runs, which are `rows`, a run each."""
    return {
        "table": cell.table.name, "condition": cell.condition.name, "method": cell.method, "seeds": rows, "trials": [],
        "train_rows": len(data.train), "val_rows": len(data.val), "std": std.tolist(), "rules": checksum,
        "checksums": dict(data.checksums),
    }  # fmt: skip


def check_packages(cells: Sequence[StudyCell], rules: SeaLevel) -> None:
    """Refuse cells of the sea level whose package is not installed.

    Raises:
        InputError: there is one.
    """
    for method in dict.fromkeys(cell.method for cell in cells):
        package = rules.methods[method]["model"].partition(".")[0]
        if importlib.util.find_spec(package) is None:
            raise InputError(
                f"methods has {method}, whose package is not installed: pip install {package}, or leave it out"
            )


def fit_cell(cell: StudyCell, rules: SeaLevel, load: Load, std: np.ndarray) -> tuple[dict[str, Any], list[Parts]]:
    """Fit the model of a cell of the sea level on every split; see `train_cell`, whose record has trials, too."""
    started, about = time.perf_counter(), rules.methods[cell.method]
    package, _, kind = about["model"].rpartition(".")
    make, rows, kept = getattr(importlib.import_module(package), kind), list[dict[str, Any]](), list[Parts]()
    for run in (run for tuning in rules.tunings(cell) for run in tuning.finals):
        data = load(run.split)
        x, labels = np.asarray(data.train.x), data.train.y.numpy().T
        models = [make(**about.get("fixed", {})).fit(x, label) for label in labels]
        parts = {}
        for part in PARTS:
            own = getattr(data, part)
            each = np.column_stack([model.predict(np.asarray(own.x)) for model in models]).astype(np.float32)
            parts[part] = Scored({"": each}, own.y.numpy(), own.domain.numpy())
        one = _part_scores(parts, 0, std, grouped=cell.condition.grouped)
        rows.append({"seed": run.seed, "split": run.split, "options": [about["model"]], **one.row})
        kept.append(one.parts)
    made_by = run_environment(torch.device("cpu"))
    distribution = metadata.packages_distributions()[package.partition(".")[0]][0]
    versions = {**made_by["versions"], distribution: metadata.version(distribution)}
    record = _cell_record(cell, rules.checksum, data, std, rows)
    return {**record, "seconds": time.perf_counter() - started, **made_by, "versions": versions}, kept
