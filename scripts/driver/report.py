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
from scripts.driver.job import Job
from scripts.driver.runs import LEARNED_NOTHING

SELECTION_RULES = {"best": "best on val over epochs, first of ties", "last": "the last epoch"}  # by train.select
MACHINE_KEYS = ("out", "weights", "resume")  # of a configuration: where a run is kept, how much of it, and from where


def make_report(jobs: Sequence[Job], job: Job, run: Run, result: RunResult) -> dict[str, Any]:
    """Return the record of one run.

    It names the run's stack, since a run repeats to the last digit only in the same one: batched kernels round
    differently for another number of models, and training amplifies that. `stack` is how many models the trainer
    stacked, `stack_seeds` those of the run's job, and `stack_cells`, where jobs of several options trained together,
    options and seeds of all of them in the order of the stack.

    Args:
        jobs: all that trained together.
        job: the run's, one of them.
        run: what was trained.
        result: what that gave.
    """
    data, seed, config = run.data, run.streams.seed, job.config
    words = {name: value for name, value in result.diagnostics.items() if isinstance(value, str)}
    numbers = {name: value for name, value in result.diagnostics.items() if name not in words}
    nothing = nothing_learned(data, result)
    stacked = result.stack == sum(len(one.pending) for one in jobs)
    cells = [{"options": one.options, "seeds": list(one.pending)} for one in jobs]
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
        "options": job.options,
        "seed": seed,
        "status": "failed" if result.failure else "done",
        "failure": str(result.failure) if result.failure else "",
        "run": job.run_folder(seed).relative_to(job.out / "runs").as_posix(),
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
        "config": {key: value for key, value in job.seed_config(seed).items() if key not in MACHINE_KEYS},
        "stack": result.stack,
        "stack_seeds": list(job.pending) if stacked else [seed],
        **({"stack_cells": cells} if stacked and len(jobs) > 1 else {}),
    }


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


def kept_texts(config: Mapping[str, Any], run: Run, result: RunResult) -> dict[str, str]:
    """Return what a run keeps beside its weights, so that `cmixup.load_run` can predict with them."""
    x: Any = run.data.train.x
    scaling = result.label_scaling if config["train"]["label_scaling"] in ("centre", "standard") else {}
    width = run.data.train.y.shape[1]
    of_loss = LOSSES[config["train"].get("loss", SQUARED.name)].outputs
    tasks = run.method.tasks
    made = model_json(config["model"], x.shape[1:], width, tasks=tasks, label_scaling=scaling, outputs=of_loss)
    return {**run.data.extras, MODEL: made}
