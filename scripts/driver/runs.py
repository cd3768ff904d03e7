"""Runs as folders, and what their reports say.

A run's folder holds `config.yaml`, `report.json`, `history.csv`, `predictions.h5`, `checkpoint.pt` (the best epoch's
weights), `model.json`, of a table `preprocessing.json`, and, written last, `DONE`; `cmixup.load_run` predicts with it.
A folder without `DONE` is not a result: the run has not ended, or has failed and its report says where. `DONE` lists
sizes and SHA-256 of the other files: a run of which one was cut or emptied is not done, either, and a file with
other bytes is refused when it is read.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from cmixup.data import RegressionData
from cmixup.done import DONE, FORMAT, checked, listed_files
from cmixup.errors import InputError
from cmixup.losses import LOSSES, SQUARED
from cmixup.metrics import metric_of, score
from cmixup.saved_run import MODEL, model_json
from cmixup.training.trainer import Run, RunResult

REPORT, HISTORY, CONFIG = "report.json", "history.csv", "config.yaml"
LONGEST_NAME = 120  # of a folder
SELECTION_RULES = {"best": "best on val over epochs, first of ties", "last": "the last epoch"}  # by train.select
MACHINE_KEYS = ("out", "weights", "resume")  # of a configuration: where a run is kept, how much of it, and from where
UNROUNDED = "unrounded_scores"  # of a published run: those of predictions that were not rounded to steps
LEARNED_NOTHING = "learned_nothing"  # a fact of such a run, 1; its report says it in words under the same name


def folder_name(preset: str, options: Mapping[str, Any]) -> str:
    """Name a run by its preset and every option that differs from it; what does not fit ends in a hash."""
    parts = [f"{key.removeprefix('method.')}={value}" for key, value in sorted(options.items())]
    written = ",".join([preset, *parts])
    name = re.sub(r"[^\w=,.+-]", "_", written)
    if name == written and len(name) <= LONGEST_NAME:
        # Of texts that others could be taken for: in another case, on disks that have none, or as several options.
        unlike = [value for value in options.values() if isinstance(value, str) and re.search("[A-Z,=]", value)]
        if not unlike:
            return name
        written += repr(unlike)
    digest = hashlib.sha256(written.encode()).hexdigest()[:12]
    return f"{name[:LONGEST_NAME]}-{digest}"


def is_done(folder: Path) -> bool:
    """Return whether a run's folder holds a finished run, with nothing of it damaged."""
    return (folder / DONE).is_file() and find_damage(folder) is None


def find_damage(folder: Path) -> tuple[Path, str] | None:
    """Return the first damaged file of a finished run and what is wrong with it, or None; contents are not read.

    A file of another size than `DONE` says is damaged; one that somebody has removed is not, but for the report. Runs
    of earlier versions have an empty `DONE`: of those the report must be readable, and nothing empty.
    """
    try:
        sizes = {name: each.size for name, each in listed_files(folder).items()}
    except InputError:
        return folder / DONE, "is no list of files"
    for name in (REPORT, CONFIG, HISTORY, *sizes):
        path = folder / name
        found = path.stat().st_size if path.is_file() else None
        if (found is None and name == REPORT) or (found is not None and found != sizes.get(name, found or 1)):
            return path, "is not there" if found is None else f"has {found} bytes, not {sizes.get(name, 'some')}"
    if not sizes:
        try:
            earlier = "format" not in read_report(folder)
        except Exception:  # whatever a damaged file may raise
            return folder / REPORT, "cannot be read"
        return None if earlier else (folder / DONE, "is empty")
    return None


def strict_json(value: Any) -> Any:
    """Return `value` as strict JSON takes it: NaN becomes null, and infinity the word "inf" or "-inf"."""
    if isinstance(value, Mapping):
        return {key: strict_json(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [strict_json(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


def parse_report(text: str) -> dict[str, Any]:
    """Return a report from its JSON text; a score that is null is NaN again."""
    return with_numbers(json.loads(text))


def with_numbers(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return a report that JSON gave with numbers for what `strict_json` made of those that are not finite."""
    of_parts = {
        key: {part: {name: number_of(v) for name, v in each.items()} for part, each in report[key].items()}
        for key in ("scores", UNROUNDED)
        if key in report or key == "scores"
    }
    return {**report, **of_parts, "facts": {name: number_of(v) for name, v in report["facts"].items()}}


def read_report(folder: Path) -> dict[str, Any]:
    """Return the report of a run's folder."""
    return parse_report(checked(folder / REPORT).read_text())


def number_of(value: float | str | None) -> float:
    """Return a number that `strict_json` has made a value of JSON."""
    return math.nan if value is None else float(value) if isinstance(value, str) else value


def load_reports(root: Path) -> list[dict[str, Any]]:
    """Return the reports of all finished runs below `root`, in order of their folders' names.

    Runs with a damaged file are left out, and a line says so: training them again mends them.
    """
    reports = []
    for folder in (done.parent for done in sorted(root.rglob(DONE))):
        if found := find_damage(folder):
            print(f"{found[0]} {found[1]}: the run does not count; its command trains it again", file=sys.stderr)
            continue
        try:
            reports.append(read_report(folder))
        except InputError as error:
            print(f"{error}; the run does not count", file=sys.stderr)
    return reports


def make_report(
    config: Mapping[str, Any], options: Mapping[str, Any], folder: str, run: Run, result: RunResult
) -> dict[str, Any]:
    """Return the record of one run.

    Args:
        config: the resolved configuration.
        options: what it changes of its preset.
        folder: the run's, below the folder of all runs.
        run: what was trained.
        result: what that gave.
    """
    data, seed = run.data, run.streams.seed
    words = {name: value for name, value in result.diagnostics.items() if isinstance(value, str)}
    numbers = {name: value for name, value in result.diagnostics.items() if name not in words}
    nothing = nothing_learned(data, result)
    return {
        "format": FORMAT,
        "experiment": config["experiment"],
        "dataset": data.name,
        "model": config["model"]["name"],
        "method": config["method"]["name"],
        "preset": config["preset"],
        "layer": config["method"].get("layer", ""),
        "bandwidth": numbers.get("bandwidth"),
        "alpha": config["method"].get("alpha"),
        "options": options,
        "seed": seed,
        "status": "failed" if result.failure else "done",
        "failure": str(result.failure) if result.failure else "",
        "run": folder,
        "scores": result.scores,
        "facts": numbers | ({LEARNED_NOTHING: 1.0} if nothing else {}),
        "verdict": words.get("verdict", ""),
        "learned_nothing": nothing,
        "selection": LOSSES[config["train"].get("loss", SQUARED.name)].selection or data.selection,
        "selection_rule": SELECTION_RULES[config["train"].get("select", "best")],
        "best_epoch": result.best_epoch,
        "epochs": config["train"]["epochs"],
        "seconds": result.seconds,
        "unit": data.unit,
        "label_scaling": result.label_scaling,
        "notes": [*data.notes, *getattr(run.model, "notes", ())],
        "checksums": dict(data.checksums),
        "config": {**recorded_config(config), "seed": seed, "seeds": None},
    }


def recorded_config(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a resolved configuration that is recorded: all but folders of this machine."""
    return {key: value for key, value in plain.items() if key not in MACHINE_KEYS}


def nothing_learned(data: RegressionData, result: RunResult) -> str:
    """Return a sentence if a run's validation score is no better than that of the training labels' mean, or nothing.

    The mean predicts every row alike, so its correlation is 0.
    """
    if result.failure:
        return ""
    metric, val = metric_of(data.selection), data.val
    prediction = result.predictions["val"][""]
    constant = data.train.y.double().mean(dim=0).to(val.y.dtype).expand_as(val.y)
    found, mean = (score(data.selection, each, val.y, val.domain) for each in (prediction, constant))
    if not bool(mean.isfinite()) or bool(metric.better(found, mean)):
        return ""
    return (
        f"learned nothing: val {data.selection} {float(found):.4g} is no better than {float(mean):.4g}, "
        "that of the training labels' mean"
    )


def stack_report(
    together: Sequence[tuple[Mapping[str, Any], Sequence[int]]], own: Sequence[int], seed: int, size: int
) -> dict[str, Any]:
    """Return what a report says of a run's stack.

    A run repeats to the last digit only in the same stack: batched kernels round differently for another number of
    models, and training amplifies that.

    Args:
        together: options and seeds of each job that trained together.
        own: the seeds of the run's own job.
        seed: the run's.
        size: how many models the trainer stacked.

    Returns:
        `stack`: how many; `stack_seeds`: the seeds of the run's own job; and, where jobs of several options trained
        together, `stack_cells`: options and seeds of all of them in the order of the stack, its own included.
    """
    stacked = size == sum(len(seeds) for _, seeds in together)
    cells = [{"options": options, "seeds": list(seeds)} for options, seeds in together]
    said = {"stack": size, "stack_seeds": list(own) if stacked else [seed]}
    return said | ({"stack_cells": cells} if stacked and len(together) > 1 else {})


def kept_texts(config: Mapping[str, Any], run: Run, result: RunResult) -> dict[str, str]:
    """Return what a run keeps beside its weights, so that `cmixup.load_run` can predict with them."""
    x: Any = run.data.train.x
    scaling = result.label_scaling if config["train"]["label_scaling"] in ("centre", "standard") else {}
    width = run.data.train.y.shape[1]
    of_loss = LOSSES[config["train"].get("loss", SQUARED.name)].outputs
    tasks = run.method.tasks
    made = model_json(config["model"], x.shape[1:], width, tasks=tasks, label_scaling=scaling, outputs=of_loss)
    return {**run.data.extras, MODEL: made}
