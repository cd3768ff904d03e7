"""What training a cell costs here, going by the published runs that are most like it."""

from __future__ import annotations

import functools
import statistics
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from scripts.config.compose import compose_train
from scripts.config.parts import GROUPS, config_leaves
from scripts.driver.job import Job
from scripts.driver.provenance import device_name
from scripts.records.experiment import RESULTS
from scripts.records.published import published_reports

LEAST = 0.1  # of the epochs asked for: a shorter run is mostly its start and its test, and says little of a long one


def estimate_minutes(job: Job) -> float:
    """Return how many minutes a job's pending runs would take on one core here."""
    return len(job.pending) * run_minutes(job)


def run_minutes(job: Job, results: Path = RESULTS) -> float:
    """Return how many minutes one run of a job would take on one core here.

    It goes by published CPU runs of the same dataset, model and method. Of these it takes the ones whose configuration
    differs in the fewest values, in none where the cell itself is published, and of these the ones from this kind of
    processor where there are some; their median is scaled by the epochs, as a dataset has the same rows in all of its
    cells. Without such runs it goes by the `cpu_minutes` of the dataset's config times the `cost` of the method's. A
    GPU is taken to be fast enough for anything.
    """
    if job.device.type != "cpu":
        return 0.0
    epochs = job.settings.epochs
    seconds = _similar_seconds(
        job, _published_cpu(results, *(job.config[part]["name"] for part in ("dataset", "method")))
    )
    if seconds is not None:
        return seconds / 60
    names = [f"{part}={job.config[part]['name']}" for part in ("dataset", "method")]
    composed = compose_train([*names, f"preset={job.config['preset']}"])
    minutes = float(composed.dataset.get("cpu_minutes", 0.0)) * float(composed.method.get("cost", 1.0))
    return minutes * epochs / composed.train.epochs


def _similar_seconds(job: Job, runs: list[tuple[frozenset[tuple[str, str]], dict[str, Any]]]) -> float | None:
    """Return the seconds of one run of a job by the published runs most like it, or None if none is like it."""
    epochs, mine = job.settings.epochs, _trained_values(job.config)
    groups: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for own, run in runs:
        differing = {key for key, _ in own ^ mine}
        if run["epochs"] >= LEAST * epochs and not any(key.startswith("model.") for key in differing):
            groups[len(differing)].append(run)
    if not groups:
        return None
    nearest = groups[min(groups)]
    here = device_name(job.device)
    chosen = [run for run in nearest if run["device"] == here] or nearest
    return statistics.median(run["seconds"] * epochs / run["epochs"] for run in chosen)


@functools.cache
def _published_cpu(results: Path, dataset: str, method: str) -> list[tuple[frozenset[tuple[str, str]], dict[str, Any]]]:
    """Return the reports of published CPU runs of a dataset and method, each after `_trained_values`, read once."""
    reports = (r for r in published_reports(results, tables=[dataset]) if r["method"] == method)
    return [(_trained_values(r["config"]), r) for r in reports if str(r["device"]).startswith("cpu")]


def _trained_values(config: Mapping[str, Any]) -> frozenset[tuple[str, str]]:
    """Return what a configuration trains as texts, each value with its key."""
    return frozenset(
        (key, str(value)) for key, value in config_leaves({part: config[part] for part in (*GROUPS, "train")})
    )
