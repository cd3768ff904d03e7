"""What training a cell costs here, going by the published runs that are most like it."""

from __future__ import annotations

import functools
import json
import statistics
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scripts.driver.compose import compose_train
from scripts.driver.job import Job
from scripts.driver.provenance import device_name
from scripts.records.experiment import RESULTS

TRAINED = ("dataset", "method", "train")  # parts of a configuration in which a similar run may differ
LEAST = 0.1  # of the epochs asked for: a shorter run is mostly its start and its test, and says little of a long one


@dataclass(frozen=True)
class _Run:
    """A published run: what it trained, as leaves of its configuration, where, for how many epochs and seconds."""

    leaves: frozenset[tuple[str, str]]
    model: frozenset[tuple[str, str]]
    device: str
    epochs: int
    seconds: float


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
    seconds = _like(job, _published(results, *(job.config[part]["name"] for part in ("dataset", "method"))))
    if seconds is not None:
        return seconds / 60
    names = [f"{part}={job.config[part]['name']}" for part in ("dataset", "method")]
    composed = compose_train([*names, f"preset={job.config['preset']}"])
    minutes = float(composed.dataset.get("cpu_minutes", 0.0)) * float(composed.method.get("cost", 1.0))
    return minutes * epochs / composed.train.epochs


def _like(job: Job, runs: tuple[_Run, ...]) -> float | None:
    """Return the seconds of one run of a job by the published runs most like it, or None if none is like it."""
    epochs, model = job.settings.epochs, _leaves(job.config, ("model",))
    mine = _leaves(job.config, TRAINED)
    groups: dict[int, list[_Run]] = defaultdict(list)
    for run in runs:
        if run.model == model and run.epochs >= LEAST * epochs:
            groups[len({key for key, _ in run.leaves ^ mine})].append(run)
    if not groups:
        return None
    nearest = groups[min(groups)]
    here = device_name(job.device)
    chosen = [run for run in nearest if run.device == here] or nearest
    return statistics.median(run.seconds * epochs / run.epochs for run in chosen)


@functools.cache
def _published(results: Path, dataset: str, method: str) -> tuple[_Run, ...]:
    """Return the published CPU runs of a dataset and method, read once a process."""
    files = sorted((results / "runs").glob(f"*/{dataset}/{method}.jsonl"))
    reports = (json.loads(line) for path in files for line in path.read_text().splitlines())
    return tuple(
        _Run(_leaves(r["config"], TRAINED), _leaves(r["config"], ("model",)), r["device"], r["epochs"], r["seconds"])
        for r in reports
        if str(r["device"]).startswith("cpu")
    )


def _leaves(config: Mapping[str, Any], parts: tuple[str, ...]) -> frozenset[tuple[str, str]]:
    """Return the values of some parts of a configuration as texts, each with its key."""
    return frozenset(leaf for part in parts for leaf in _flat(part, config[part]))


def _flat(key: str, value: Any) -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for name, inside in value.items():
            yield from _flat(f"{key}.{name}", inside)
    else:
        yield key, str(value)
