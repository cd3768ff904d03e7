"""Train every cell of a table that can be trained here, then print and write the table.

`python -m scripts.reproduce table1 --seeds 10 --datasets airfoil,no2 --methods erm,cmixup --preset paper`
"""

from __future__ import annotations

import argparse
import functools
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table as RichTable

from cmixup.errors import InputError
from cmixup.files import write_atomically
from datasets.common.fetch import FetchError
from scripts.driver.cli import chosen, label, out_folder, user_errors, warnings
from scripts.driver.compose import TUNED, compose_train, override, tuned_path
from scripts.driver.compose import names as options
from scripts.driver.config import target
from scripts.driver.job import Job, pick_device, plan
from scripts.driver.parallel import stacks_of, train_all, train_stacks
from scripts.driver.runs import is_done, read_report
from scripts.driver.words import parse_seeds
from scripts.report import names
from scripts.report.curves import read_curves
from scripts.report.experiment import Experiment, estimate_minutes, load_experiment, make_table
from scripts.report.figures import draw, to_png
from scripts.report.layer_choice import choose_variants
from scripts.report.published import published_reports
from scripts.report.records import records_frame
from scripts.report.sweep import sweeps
from scripts.report.sweep import to_markdown as to_sweep_markdown
from scripts.report.sweep_figure import draw_sweeps
from scripts.report.tables import LEGEND, Table, header, interval_lines, lines, to_latex, to_markdown, to_table_csv


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
    """Return the command line of scripts.train for one cell; no `change`, such as another layer, means the preset's."""
    return [
        *([change] if change else []),
        *experiment.overrides,
        f"dataset={dataset}", f"method={method}", f"preset={choice.preset}",
        f"experiment={experiment.recorded_under(method, dataset)}",
        f"seeds=[{','.join(map(str, choice.seeds))}]", "logger=none", f"out={choice.out}", f"device={choice.device}",
        f"rerun={str(choice.rerun).lower()}",
    ]  # fmt: skip


Jobs = dict[tuple[str, str, str], Job]  # by dataset, method and change of its preset ("": none)


def changes(experiment: Experiment, choice: Choice, dataset: str, method: str) -> list[str]:
    """Return what is changed of a cell's preset, one job each: the layer, or the value of a swept option."""
    if values := experiment.swept(dataset, method):
        return [override(experiment.sweep["option"], value) for value in values]
    # Preset tuned has its layer, chosen on validation with everything else.
    if method in experiment.choose_layer and choice.preset != TUNED:
        return ["method.layer=input", "method.layer=hidden"]
    return [""]


def to_train(experiment: Experiment, choice: Choice, dataset: str, method: str) -> Choice:
    """Return the choice without the seeds of a sweep's lines that are published already."""
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
        if choice.preset == TUNED and not tuned_path(dataset, method).is_file():
            shown = f"{names.dataset_title(dataset)}, {names.method_title(method)}"
            missing.append(f"{shown}: not tuned yet; python -m scripts.tune dataset={dataset} method={method}")
            continue
        own = to_train(experiment, choice, dataset, method)
        for change in changes(experiment, choice, dataset, method) if own.seeds else []:
            command = overrides(experiment, own, dataset, method, change)
            job = plan(compose_train(command))
            minutes = estimate_minutes(dataset, method, job)
            if minutes > experiment.budget_minutes:
                missing.append(
                    f"{label(job)}: about {minutes:.0f} min here; python -m scripts.train {' '.join(command)}"
                )
            else:
                jobs[dataset, method, change] = job
                costs[dataset, method, change] = minutes
    # The longest first, so that no core waits for one long cell at the end.
    return {key: jobs[key] for key in sorted(jobs, key=costs.__getitem__, reverse=True)}, missing


def train_cells(experiment: Experiment, choice: Choice, jobs: Jobs) -> list[str]:
    """Train all pending cells; returns what went wrong."""
    cells = [(overrides(experiment, replace(choice, seeds=job.seeds), *key), job) for key, job in jobs.items()]
    if experiment.sweep:
        return train_stacks(stacks_of(cells), experiment.name)
    return train_all(cells, experiment.name)


def collect(jobs: Jobs) -> list[dict[str, Any]]:
    """Return the reports of these jobs' finished runs, the better layer of each method chosen."""
    folders = [job.run_folder(seed) for job in jobs.values() for seed in job.seeds]
    return choose_variants([read_report(f) for f in folders if is_done(f)])


def show(table: Table) -> None:
    """Print a table to the terminal."""
    console = Console(width=max(Console().width, 110), highlight=False)
    console.print(f"\n[bold]{table.title}[/bold]", LEGEND, sep="\n")
    for block in table.blocks:
        title = names.dataset_title(block.dataset)
        grid = RichTable(title=title, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0))
        for k, column in enumerate(header(block)):
            grid.add_column(column, justify="left" if k == 0 else "right", no_wrap=True)
        for row in lines(block, "[bold]{}[/bold]"):
            grid.add_row(*row)
        # A number that is cut is worse than a line that the terminal wraps.
        wide = console.options.update(width=1000)
        Console(width=max(console.width, console.measure(grid, options=wide).maximum), highlight=False).print(grid)
        for sentence in (*interval_lines(block), *block.notes):
            console.print(sentence, markup=False)
    for note in table.notes:
        console.print(note, markup=False)
    if table.missing:
        console.print("\nNot in this table:")
        for line in table.missing:
            console.print(f"- {line}", markup=False)


def write(table: Table, folder: Path, stem: str) -> None:
    """Write a table as Markdown, CSV and LaTeX."""
    for suffix, text in ((".md", to_markdown(table)), (".csv", to_table_csv(table)), (".tex", to_latex(table))):
        write_atomically(folder / f"{stem}{suffix}", text)


def show_sweep(experiment: Experiment, choice: Choice, reports: Sequence[dict[str, Any]], missing: list[str]) -> None:
    """Write and print the figure and the table of a sweep.

    Raises:
        InputError: no dataset has two values.
    """
    found = sweeps(experiment, [*reports, *published_lines(experiment, choice)], choice.preset)
    if not found:
        reasons = "; ".join(line.splitlines()[0] for line in missing)
        raise InputError(f"experiment {experiment.name} has no dataset with two values to show: {reasons}")
    folder, stem = Path(choice.out), f"{experiment.name}_{choice.preset}"
    text = to_sweep_markdown(experiment, found, choice.preset, missing)
    write_atomically(folder / "tables" / f"{stem}.md", text)
    write_atomically(folder / "figures" / f"{stem}.png", to_png(draw_sweeps(found, experiment.sweep["method"])))
    print(text)
    print(f"Written: {folder / 'tables' / stem}.md, {folder / 'figures' / stem}.png; runs in {choice.out}/runs")


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line; empty options count as not given, so that make can pass them through."""
    parser = argparse.ArgumentParser(prog="python -m scripts.reproduce", description=__doc__)
    parser.add_argument("experiment", help="a file of configs/experiment, such as table1")
    parser.add_argument("--seeds", default="", help="a count (10 means 0..9), a list 0,3,5 or a range 0..9")
    parser.add_argument("--datasets", default="", help="comma-separated; default: all of the table")
    parser.add_argument("--methods", default="", help="comma-separated; default: all of the table")
    parser.add_argument("--preset", default="", help="paper (default), released, default or tuned")
    parser.add_argument("--device", default="", help="auto (default), cpu or cuda")
    parser.add_argument("--out", default="", help="where runs and tables go; default outputs")
    parser.add_argument("--rerun", default="", help="1: train again what is done")
    return parser.parse_args(arguments)


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    given = parse(argv)
    with user_errors():
        experiment = load_experiment(given.experiment)
        device = given.device or "auto"
        cpu = pick_device(device).type == "cpu"
        choice = Choice(
            datasets=chosen("datasets", given.datasets, [d for d in (*experiment.datasets, experiment.fallback) if d])
            if given.datasets
            else list(experiment.datasets),
            methods=chosen("methods", given.methods, list(experiment.methods)),
            seeds=parse_seeds(given.seeds or experiment.seeds),
            preset=given.preset or (cpu and experiment.cpu_preset) or "paper",
            out=str(out_folder(given.out)),
            device=device,
            rerun=given.rerun not in ("", "0"),
        )
        jobs, missing = plan_cells(experiment, choice)
        for line in missing:
            print(f"not trained: {line.splitlines()[0]}", file=sys.stderr)
        missing += train_cells(experiment, choice, jobs)
        for line in (line for job in jobs.values() for line in warnings(job)):
            print(line, file=sys.stderr)
        reports = collect(jobs)
        if experiment.sweep:
            show_sweep(experiment, choice, reports, missing)
            return
        stem = f"{experiment.name}_{choice.preset}"
        if experiment.figure:
            for line in missing:
                print(f"- {line}")
            path = Path(choice.out) / "figures" / f"{stem}.png"
            figure = draw(experiment, read_curves(reports, Path(choice.out) / "runs"), choice.preset)
            write_atomically(path, to_png(figure))
            print(f"\nWritten: {path}; runs in {choice.out}/runs")
            return
        built = [m for m in choice.methods if any(method == m for _, method, _ in jobs)]
        records = records_frame(reports)
        table = make_table(experiment, records, choice.preset, built, missing)
        folder = Path(choice.out) / "tables"
        write(table, folder, stem)
        show(table)
        print(f"\nWritten: {folder / stem}.md, .csv, .tex; runs in {choice.out}/runs")


if __name__ == "__main__":
    main()
