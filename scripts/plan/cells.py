"""The cells of an experiment: what can be trained here, with which command lines, and what cannot and why."""

from __future__ import annotations

import functools
import itertools
from dataclasses import dataclass, replace
from typing import Any

from datasets.common.fetch import FetchError
from scripts.driver.cli import label
from scripts.driver.compose import command, compose_train, is_tuned, override, tune_command, tuned_path
from scripts.driver.compose import names as options
from scripts.driver.config import target
from scripts.driver.plan import Job, plan
from scripts.driver.runs import is_done, read_report
from scripts.plan.costs import estimate_minutes
from scripts.plan.schedule import stacks_of, train_all, train_stacks
from scripts.records import names
from scripts.records.experiment import Experiment
from scripts.records.layer_choice import choose_variants
from scripts.records.published import published_reports


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
        *change.splitlines(),
        *experiment.overrides,
        f"dataset={dataset}", f"method={method}", f"preset={choice.preset}",
        f"experiment={experiment.recorded_under(method, dataset)}",
        f"seeds=[{','.join(map(str, choice.seeds))}]", "logger=none", f"out={choice.out}", f"device={choice.device}",
        f"rerun={str(choice.rerun).lower()}",
    ]  # fmt: skip


TOO_LONG = "min here"  # ends the line of a cell that is over the budget

Jobs = dict[tuple[str, str, str], Job]  # by dataset, method and change of its preset ("": none)


def changes(experiment: Experiment, choice: Choice, dataset: str, method: str) -> list[str]:
    """Return what is changed of a cell's preset, one job each: the layer, a swept option, or a ladder's options."""
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


def plan_cells(experiment: Experiment, choice: Choice) -> tuple[Jobs, list[str]]:
    """Return the jobs that can run here, and a line for everything that cannot, with the reason."""
    missing: list[str] = []
    methods = [m for m in choice.methods if m in options("method")]
    missing += [f"{names.method_title(m)}: not in this version" for m in choice.methods if m not in methods]
    datasets = []
    for dataset in choice.datasets:
        shown = names.dataset_title(dataset)
        if dataset not in options("dataset"):
            missing.append(f"{shown}: not in this version")
            continue
        try:
            target(compose_train([f"dataset={dataset}"]).dataset)().fetch()
        except FetchError as error:
            missing.append(f"{shown}: {error}")
        else:
            datasets.append(dataset)
    if not datasets and experiment.fallback:
        shown = names.dataset_title(experiment.fallback)
        missing.append(f"no dataset of this table could be had; {shown} stands in")
        datasets = [experiment.fallback]
    jobs: Jobs = {}
    costs: dict[tuple[str, str, str], float] = {}
    cells = [(dataset, method) for dataset in datasets for method in experiment.methods_for(dataset, methods)]
    for dataset, method in cells:
        if is_tuned(choice.preset) and not tuned_path(dataset, method, choice.preset).is_file():
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
                jobs[dataset, method, change] = job
                costs[dataset, method, change] = minutes
    # The longest first, so that no core waits for one long cell at the end.
    return {key: jobs[key] for key in sorted(jobs, key=costs.__getitem__, reverse=True)}, missing


def train_cells(experiment: Experiment, choice: Choice, jobs: Jobs) -> list[str]:
    """Train all pending cells; returns what went wrong."""
    cells = [(overrides(experiment, replace(choice, seeds=job.seeds), *key), job) for key, job in jobs.items()]
    if experiment.sweep or experiment.grid:
        return train_stacks(stacks_of(cells), experiment.name)
    return train_all(cells, experiment.name)


def minutes(jobs: Jobs) -> float:
    """Return how long the pending runs of these jobs would take on one core here."""
    return sum(estimate_minutes(job) for job in jobs.values() if job.pending)


def collect(jobs: Jobs) -> list[dict[str, Any]]:
    """Return the reports of these jobs' finished runs, the better layer of each method chosen."""
    folders = [job.run_folder(seed) for job in jobs.values() for seed in job.seeds]
    return choose_variants([read_report(f) for f in folders if is_done(f)])
