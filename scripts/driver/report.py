"""What a run says of itself: its report, and the texts that `cmixup.load_run` needs beside its weights."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cmixup.data import RegressionData
from cmixup.done import FORMAT
from cmixup.losses import LOSSES, SQUARED
from cmixup.metrics import metric_of, score
from cmixup.saved_run import MODEL, model_json
from cmixup.training.trainer import Run, RunResult
from scripts.driver.runs import LEARNED_NOTHING

SELECTION_RULES = {"best": "best on val over epochs, first of ties", "last": "the last epoch"}  # by train.select
MACHINE_KEYS = ("out", "weights", "resume")  # of a configuration: where a run is kept, how much of it, and from where


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
    reached, mean = (score(data.selection, one, val.y, val.domain) for one in (prediction, constant))
    if not bool(mean.isfinite()) or bool(metric.better(reached, mean)):
        return ""
    return (
        f"learned nothing: val {data.selection} {float(reached):.4g} is no better than {float(mean):.4g}, "
        "that of the training labels' mean"
    )


def stack_report(
    together: Sequence[tuple[Mapping[str, Any], Sequence[int]]], seeds: Sequence[int], seed: int, size: int
) -> dict[str, Any]:
    """Return what a report says of a run's stack.

    A run repeats to the last digit only in the same stack: batched kernels round differently for another number of
    models, and training amplifies that.

    Args:
        together: options and seeds of each job that trained together.
        seeds: those of the run's job.
        seed: the run's.
        size: how many models the trainer stacked.

    Returns:
        `stack`: how many; `stack_seeds`: the seeds of the run's job; and, where jobs of several options trained
        together, `stack_cells`: options and seeds of all of them in the order of the stack, its own included.
    """
    stacked = size == sum(len(numbers) for _, numbers in together)
    cells = [{"options": options, "seeds": list(numbers)} for options, numbers in together]
    stack = {"stack": size, "stack_seeds": list(seeds) if stacked else [seed]}
    return stack | ({"stack_cells": cells} if stacked and len(together) > 1 else {})


def kept_texts(config: Mapping[str, Any], run: Run, result: RunResult) -> dict[str, str]:
    """Return what a run keeps beside its weights, so that `cmixup.load_run` can predict with them."""
    x: Any = run.data.train.x
    scaling = result.label_scaling if config["train"]["label_scaling"] in ("centre", "standard") else {}
    width = run.data.train.y.shape[1]
    of_loss = LOSSES[config["train"].get("loss", SQUARED.name)].outputs
    tasks = run.method.tasks
    made = model_json(config["model"], x.shape[1:], width, tasks=tasks, label_scaling=scaling, outputs=of_loss)
    return {**run.data.extras, MODEL: made}
