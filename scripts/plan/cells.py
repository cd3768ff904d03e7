"""The cells of an experiment: what can be trained here, with which command lines, and what cannot and why."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from datasets.common.fetch import FetchError
from scripts.driver.cli import label
from scripts.driver.compose import command, compose_train, is_tuned, override, tune_command, tuned_values
from scripts.driver.compose import names as options
from scripts.driver.config import target
from scripts.driver.job import plan
from scripts.driver.runs import is_done, read_report
from scripts.plan.costs import estimate_minutes
from scripts.plan.schedule import Planned, items_of, stacks_of, train
from scripts.records import names
from scripts.records.experiment import Experiment
from scripts.records.layer_choice import choose_variants
from scripts.records.published import published_reports
from scripts.records.variants import variants


@dataclass(frozen=True)
class Choice:
    """What the command line narrows an experiment to."""

    datasets: list[str]
    methods: list[str]
    seeds: list[int]
    preset: str
    out: str
    device: str
    rerun: bool


def overrides(experiment: Experiment, choice: Choice, dataset: str, method: str, change: str = "") -> list[str]:
    """Return the command line of scripts.train for one cell; no `change` means the preset's.

    A change is such as another layer; several stand on lines of their own.
    """
    return [
        *experiment.overrides,
        f"dataset={dataset}", f"method={method}", f"preset={choice.preset}",
        f"experiment={experiment.recorded_under(method, dataset)}",
        f"seeds=[{','.join(map(str, choice.seeds))}]", "logger=none", f"out={choice.out}", f"device={choice.device}",
        f"rerun={str(choice.rerun).lower()}", *change.splitlines(),
    ]  # fmt: skip


TOO_LONG = "min here"  # ends the line of a cell that is over the budget


def changes(experiment: Experiment, choice: Choice, dataset: str, method: str) -> list[str]:
    """Return what is changed of a preset, a job each: a variant, the layer, a swept option or a ladder's options."""
    if experiment.variants:
        mine = [v for v in variants(experiment) if (v.dataset, v.method) == (dataset, method)]
        return ["\n".join(v.overrides) for v in mine]
    if points := experiment.points(dataset):
        return ["\n".join(command(point)) for point in points]
    values = [override(experiment.sweep["option"], value) for value in experiment.swept(dataset, method)]
    # A tuned preset has its layer, chosen on validation with everything else.
    both = method in experiment.choose_layer and not is_tuned(choice.preset)
    layers = ["method.layer=input", "method.layer=hidden"] if both else [""]
    return ["\n".join(filter(None, pair)) for pair in itertools.product(values or [""], layers)]


def to_train(experiment: Experiment, choice: Choice, dataset: str, method: str) -> Choice:
    """Return the choice with the seeds of a dataset, without those of a sweep's lines that are published already."""
    choice = replace(choice, seeds=experiment.seeds_for(dataset, choice.seeds))
    if not experiment.sweep or experiment.swept(dataset, method) or choice.rerun:
        return choice
    there = {r["seed"] for r in published_lines(experiment, choice) if (r["dataset"], r["method"]) == (dataset, method)}
    return replace(choice, seeds=[seed for seed in choice.seeds if seed not in there])


def published_lines(experiment: Experiment, choice: Choice) -> list[dict[str, Any]]:
    """Return the published reports of what a sweep is compared with: other experiments' runs of the same seeds."""
    return [
        r for r in (_published() if experiment.sweep else [])
        if r["experiment"] == experiment.recorded_under(r["method"], r["dataset"]) != experiment.name
        and (r["preset"], r["options"]) == (choice.preset, {}) and r["seed"] in choice.seeds
        and r["dataset"] in choice.datasets and r["method"] in choice.methods
    ]  # fmt: skip


_published = functools.cache(published_reports)


def plan_cells(experiment: Experiment, choice: Choice) -> tuple[list[Planned], list[str]]:
    """Return the cells that can be trained here, the longest first, and a line for each other with the reason."""
    methods = [m for m in choice.methods if m in options("method")]
    missing = [f"{names.method_title(m)}: not in this version" for m in choice.methods if m not in methods]
    datasets = []
    for dataset in choice.datasets:
        if lacks := _lacks(dataset):
            missing.append(f"{names.dataset_title(dataset)}: {lacks}")
        else:
            datasets.append(dataset)
    if not datasets and experiment.fallback:
        shown = names.dataset_title(experiment.fallback)
        missing.append(f"no dataset of this table could be had; {shown} stands in")
        datasets = [experiment.fallback]
    found: list[tuple[float, Planned]] = []
    for dataset, method in ((d, m) for d in datasets for m in experiment.methods_for(d, methods)):
        if is_tuned(choice.preset) and tuned_values(dataset, method, choice.preset) is None:
            shown = f"{names.dataset_title(dataset)}, {names.method_title(method)}"
            missing.append(f"{shown}: not tuned yet; {tune_command(dataset, method, choice.preset)}")
            continue
        own = to_train(experiment, choice, dataset, method)
        for change in changes(experiment, choice, dataset, method) if own.seeds else []:
            words = overrides(experiment, own, dataset, method, change)
            job = plan(compose_train(words))
            minutes = estimate_minutes(job)
            if minutes > experiment.budget_minutes:
                missing.append(f"{label(job)}: about {minutes:.0f} {TOO_LONG}")
            else:
                found.append((minutes, (words, job)))
    # The longest first, so that no core waits for one long cell at the end.
    return [cell for _, cell in sorted(found, key=lambda pair: -pair[0])], missing


def _lacks(dataset: str) -> str:
    """Return why a dataset cannot be trained here, or nothing; files that can be had are fetched."""
    if dataset not in options("dataset"):
        return "not in this version"
    try:
        target(compose_train([f"dataset={dataset}"]).dataset)().fetch()
    except FetchError as error:
        return str(error)
    return ""


def train_cells(experiment: Experiment, cells: Sequence[Planned]) -> list[str]:
    """Train all pending cells; returns what went wrong. Those of a sweep or a ladder share stacks."""
    alone = not experiment.sweep and not experiment.grid
    return train(items_of([[cell] for cell in cells] if alone else stacks_of(cells)), experiment.name)


def collect(cells: Sequence[Planned]) -> list[dict[str, Any]]:
    """Return the reports of these cells' finished runs, the better layer of each method chosen."""
    folders = [job.run_folder(seed) for _, job in cells for seed in job.seeds]
    return choose_variants([read_report(f) for f in folders if is_done(f)])
