"""Train every cell of a table that can be trained here, then print and write the table.

`python -m scripts.reproduce table1 --seeds 10 --datasets airfoil,no2 --methods erm,cmixup --preset paper`
"""

from __future__ import annotations

import argparse
import math
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from cmixup.errors import InputError, check_nonnegative
from cmixup.files import write_atomically
from scripts.driver.cli import chosen, out_folder, user_errors, warnings
from scripts.driver.devices import pick_device
from scripts.driver.words import parse_seeds
from scripts.plan.cells import TOO_LONG, Choice, collect, plan_cells, published_lines, train_cells
from scripts.records import names
from scripts.records.curves import read_curves
from scripts.records.experiment import Experiment, load_experiment, make_table
from scripts.records.records import records_frame
from scripts.records.tables import LEGEND, Table, header, interval_lines, lines, to_latex, to_markdown, to_table_csv
from scripts.report.ladder import to_markdown as to_ladder_markdown
from scripts.report.sweep import sweeps
from scripts.report.sweep import to_markdown as to_sweep_markdown
from scripts.report.terminal import print_table


def show(table: Table, more: str = "") -> None:
    """Print a table to the terminal; `more` is a command that trains what is not in it."""
    console = Console(highlight=False)
    console.print(f"\n[bold]{table.title}[/bold]", LEGEND, sep="\n")
    for block in table.blocks:
        print_table(header(block), lines(block, "[bold]{}[/bold]"), names.dataset_title(block.dataset))
        for sentence in (*interval_lines(block), *block.notes):
            console.print(sentence, markup=False)
    for note in table.notes:
        console.print(note, markup=False)
    if table.missing:
        console.print("\nNot in this table:")
        for line in table.missing:
            console.print(f"- {line}", markup=False, soft_wrap=True)
        if more:
            console.print(more, markup=False, soft_wrap=True)


def write(table: Table, folder: Path, stem: str) -> None:
    """Write a table as Markdown, CSV and LaTeX."""
    for suffix, text in ((".md", to_markdown(table)), (".csv", to_table_csv(table)), (".tex", to_latex(table))):
        write_atomically(folder / f"{stem}{suffix}", text)


def show_sweep(experiment: Experiment, choice: Choice, reports: Sequence[dict[str, Any]], missing: list[str]) -> None:
    """Write and print the figure and the table of a sweep.

    Raises:
        InputError: no dataset has two values.
    """
    from scripts.report.figures import to_png  # with matplotlib: over a second, which tables do without
    from scripts.report.sweep_figure import draw_sweeps

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
    parser.add_argument("--budget", default="", help="minutes that a cell may take; 0: any; default the experiment's")
    return parser.parse_args(arguments)


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise InputError(f"budget must be a number of minutes, got {text!r}") from None


def _command_for_all(given: argparse.Namespace) -> str:
    """Return the command that trains the cells that take too long, too."""
    options = {key: value for key, value in vars(given).items() if value and key not in ("experiment", "budget")}
    words = [word for key, value in options.items() for word in (f"--{key}", value)]
    return f"python -m scripts.reproduce {shlex.join([given.experiment, *words])} --budget 0    trains all of these"


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    given = parse(argv)
    with user_errors():
        experiment = load_experiment(given.experiment)
        if given.budget:
            minutes = check_nonnegative("budget", _number(given.budget), "a number of minutes")
            experiment = replace(experiment, budget_minutes=minutes or math.inf)
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
        if missing:
            print(f"{len(missing)} cells are not trained here; they are listed at the end", file=sys.stderr)
        more = _command_for_all(given) if any(TOO_LONG in line for line in missing) else ""
        missing += train_cells(experiment, choice, jobs)
        for line in (line for job in jobs.values() for line in warnings(job)):
            print(line, file=sys.stderr)
        reports = collect(jobs)
        stem = f"{experiment.name}_{choice.preset}"
        if experiment.sweep:
            show_sweep(experiment, choice, reports, missing)
            print(more, end="\n" if more else "")
            return
        if experiment.grid:
            path = Path(choice.out) / "tables" / f"{stem}.md"
            text = to_ladder_markdown(experiment, reports, choice.preset, missing)
            write_atomically(path, text)
            print(f"{text}\nWritten: {path}; runs in {choice.out}/runs")
            return
        if experiment.figure:
            from scripts.report.figures import draw, to_png

            for line in [*missing, *filter(None, [more])]:
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
        show(table, more)
        print(f"\nWritten: {folder / stem}.md, .csv, .tex; runs in {choice.out}/runs")


if __name__ == "__main__":
    main()
