"""The cells of an experiment that can be trained here and what they cost, and why the others cannot."""

import functools
import statistics
from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from datasets.common.fetch import FetchError
from datasets.common.pose.rendered import RenderedDataset
from scripts.config.compose import TUNED_PRESETS, compose_train, option_names, tune_command, tuned_values
from scripts.config.parts import target_of
from scripts.driver.job import Job, plan_job
from scripts.driver.runs import RunFolder
from scripts.plan.schedule import items_of, train_items
from scripts.plan.selection import Choice, cell_commands, recorded_under, selected_methods
from scripts.records import names
from scripts.records.experiment import RESULTS, Experiment
from scripts.records.published import published_runs
from scripts.records.run_tables import choose_variants, frame_of


def estimate_minutes(job: Job) -> float:
    """Return how many minutes a job's pending runs would take on one core here."""
    return len(job.pending) * run_minutes(job)


def run_minutes(job: Job, results: Path = RESULTS) -> float:
    """Return how many minutes one run of a job would take on one core here.

    It is the median of the published CPU runs of the same dataset, method and preset, scaled by the epochs. Without
    such runs it is the `cpu_minutes` of the dataset's config times the `cost` of the method's, and without those the
    median over presets. A GPU is taken to be fast enough for anything.
    """
    if job.device.type != "cpu":
        return 0.0
    epochs, preset = job.settings.epochs, job.config["preset"]
    dataset, method = (job.config[part]["name"] for part in ("dataset", "method"))
    runs = _table_runs(results)
    alike = [run for run in runs[(runs["dataset"] == dataset) & (runs["method"] == method)].to_dict("records")
             if run["shared"]["device"].startswith("cpu")]  # fmt: skip
    if not (same := [run for run in alike if run["preset"] == preset]):
        composed = compose_train([f"dataset={dataset}", f"method={method}", f"preset={preset}"])
        if minutes := float(composed.dataset.get("cpu_minutes", 0.0)) * float(composed.method.get("cost", 1.0)):
            return minutes * epochs / composed.train.epochs
    paces = [run["seconds"] / run["shared"]["epochs"] for run in same or alike]
    return statistics.median(paces or [0.0]) * epochs / 60


_table_runs = functools.cache(published_runs)  # read once


TOO_LONG = "min here"  # ends the line of a cell that is over the budget


def published_lines(experiment: Experiment, choice: Choice) -> pd.DataFrame:
    """Return the published runs that points are compared with: other experiments' runs of the same seeds."""
    runs = _table_runs(RESULTS)
    under = [recorded_under(experiment, *cell) for cell in zip(runs["method"], runs["dataset"], strict=True)]
    return runs[
        (runs["experiment"] == under) & (runs["experiment"] != experiment.name) & bool(experiment.points)
        & (runs["preset"] == choice.preset) & (runs["options"] == "") & runs["seed"].isin(choice.seeds)
        & runs["dataset"].isin(choice.datasets) & runs["method"].isin(choice.methods)
    ]  # fmt: skip


def plan_cells(experiment: Experiment, choice: Choice, *, fetching: bool = True) -> tuple[list[Job], list[str]]:
    """Return the cells that can be trained here, the longest first, and a line for each other with the reason.

    Without `fetching` a dataset counts as here.
    """
    methods = [m for m in choice.methods if m in option_names("method")]
    missing = [f"{names.method_title(m)}: not in this version" for m in choice.methods if m not in methods]
    datasets = []
    for dataset in choice.datasets:
        if reason := _missing_files(dataset, fetching=fetching):
            missing.append(f"{names.dataset_title(dataset)}: {reason}")
        else:
            datasets.append(dataset)
    if not datasets and experiment.fallback:
        title = names.dataset_title(experiment.fallback)
        missing.append(f"no dataset of this table could be had; {title} stands in")
        datasets = [experiment.fallback]
    estimates: list[tuple[float, Job]] = []
    # Lines that a sweep is compared with are not trained where they are published.
    lines = published_lines(experiment, choice)
    published = set() if choice.rerun else set(zip(lines["dataset"], lines["method"], lines["seed"], strict=True))
    for dataset, method in ((d, m) for d in datasets for m in selected_methods(experiment, d, methods)):
        if choice.preset in TUNED_PRESETS and tuned_values(dataset, method, choice.preset) is None:
            title = f"{names.dataset_title(dataset)}, {names.method_title(method)}"
            missing.append(f"{title}: not tuned yet; {tune_command(dataset, method, choice.preset)}")
            continue
        requested = choice.seeds[: experiment.seeds_of.get(dataset)]
        seeds = [seed for seed in requested if (dataset, method, seed) not in published]
        for words in cell_commands(experiment, choice, dataset, method) if seeds else []:
            job = plan_job(compose_train([*words, f"seeds={seeds}"]))
            minutes = estimate_minutes(job)
            if minutes > experiment.budget_minutes:
                missing.append(f"{job.label}: about {minutes:.0f} {TOO_LONG}")
            else:
                estimates.append((minutes, job))
    # The longest first, so that no core waits for one long cell at the end.
    return [job for _, job in sorted(estimates, key=lambda pair: -pair[0])], missing


def _missing_files(dataset: str, *, fetching: bool) -> str:
    """Return why a dataset cannot be trained here, or nothing; `fetching` gets files and renders views."""
    if dataset not in option_names("dataset"):
        return "not in this version"
    if not fetching:
        return ""
    try:
        built = target_of(compose_train([f"dataset={dataset}"]).dataset)()
        built.fetch()
        if isinstance(built, RenderedDataset):
            built.render()  # once, before several processes do
    except FetchError as error:
        return str(error)
    return ""


def train_cells(experiment: Experiment, cells: Sequence[Job]) -> list[str]:
    """Train all pending cells; returns what went wrong. Those of grids alone share stacks."""
    separate = not experiment.points or any("label" in entry for entry in experiment.points)
    return train_items(items_of(cells, separate=separate), experiment.name)


def collect_runs(cells: Sequence[Job]) -> pd.DataFrame:
    """Return these cells' finished runs, the better layer of each method chosen."""
    folders = [RunFolder(job.run_folder(seed)) for job in cells for seed in job.seeds]
    return choose_variants(frame_of(folder.report() for folder in folders if folder.is_done()))
