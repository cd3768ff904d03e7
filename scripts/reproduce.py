"""Train every cell of a table or figure that can be trained here, then print and write it.

`all` does so for configs/experiment; runs that are done are not trained again, so it goes on where it stopped, and
`dry_run=1` prints what is missing and about how long it takes.

Example: python -m scripts.reproduce table1 seeds=10 datasets=airfoil,no2 methods=erm,cmixup preset=paper
"""

import math
import shlex
import sys
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pandas as pd

from cmixup.errors import InputError
from cmixup.files import write_atomically
from scripts.config.arguments import OUT, Args, parse_args, parse_seeds
from scripts.driver.cli import bandwidth_warnings, user_errors
from scripts.driver.job import Job, pick_device
from scripts.plan.cells import TOO_LONG, collect_runs, estimate_minutes, plan_cells, published_lines, train_cells
from scripts.plan.selection import Choice, changes_preset, swept_option
from scripts.records.experiment import Experiment, all_experiments, load_experiment
from scripts.report.ablation import ablation_frame, ablation_page, find_sweeps
from scripts.report.rendering import to_png
from scripts.report.result_table import markdown_page, missing_part, table_page, to_table_csv
from scripts.report.tables import make_table

Files = dict[str, str | bytes]  # by ending; the page, "md", is there always
KEYS = {
    "experiment": "a file of configs/experiment, such as table1, or all; may stand alone",
    "seeds": "a count (10 means 0..9), a list 0,3,5 or a range 0..9; default the experiment's",
    "datasets": "names between commas; default all of the experiment",
    "methods": "names between commas; default all of the experiment",
    "preset": "paper, released, default, tuned or cpu; default the experiment's",
    "device": "auto, cpu, cuda or cuda:1; default auto",
    "rerun": "1: train again what is done",
    "budget": "minutes that a cell may take, 0: any; default the experiment's",
    "dry_run": "1: print what would be trained and about how long it takes, and train nothing",
    "out": OUT,
}


def choice_of(experiment: Experiment, args: Args) -> Choice:
    """Return what the command line narrows an experiment to."""
    device, known = args.get("device", "auto"), [d for d in (*experiment.datasets, experiment.fallback) if d]
    cpu_preset = pick_device(device).type == "cpu" and experiment.cpu_preset
    choice = Choice(
        datasets=args.names("datasets", known) if "datasets" in args else list(experiment.datasets),
        methods=args.names("methods", experiment.methods), seeds=parse_seeds(args.get("seeds", experiment.seeds)),
        preset=args.get("preset") or cpu_preset or "paper", out=str(args.out), device=device,
        rerun=args.switch("rerun"),
    )  # fmt: skip
    if changes_preset(experiment) and choice.preset != "paper":
        raise InputError(f"preset must be paper, which {experiment.name} changes, got {choice.preset!r}")
    return choice


def ablation_files(experiment: Experiment, choice: Choice, cells: Sequence[Job], missing: Sequence[str]) -> Files:
    """Return what each point of an ablation does, and the figure of two values or more of one option."""
    runs = pd.concat([collect_runs(cells), published_lines(experiment, choice)], ignore_index=True)
    rows = ablation_frame(experiment, runs, choice.preset)
    files: Files = {"md": ablation_page(experiment, rows, choice.preset, missing), "csv": rows.to_csv(index=False)}
    if sweeps := find_sweeps(experiment, runs, choice.preset):
        from scripts.report.sweep_figure import draw_sweeps  # here: Matplotlib takes a second, and tables need none

        files["png"] = to_png(draw_sweeps(sweeps, swept_option(experiment)[0]))
    return files


def figure_files(experiment: Experiment, choice: Choice, cells: Sequence[Job], missing: Sequence[str]) -> Files:
    """Return the figure of an experiment's curves, and a page with it and what is not in it."""
    from scripts.report.overfitting import overfitting_figure, read_curves

    if (runs := collect_runs(cells)).empty:
        return {"md": markdown_page(f"## {experiment.title}", *missing_part(missing))}
    curves = read_curves(runs.to_dict("records"), Path(choice.out) / "runs")
    figure = to_png(overfitting_figure(experiment, curves, choice.preset))
    link = f"![{experiment.title}](../figures/{experiment.name}_{choice.preset}.png)"
    return {"md": markdown_page(f"## {experiment.title}", link, *missing_part(missing)), "png": figure}


def table_files(experiment: Experiment, choice: Choice, cells: Sequence[Job], missing: Sequence[str]) -> Files:
    """Return a table as Markdown and CSV."""
    trained = {job.config["method"]["name"] for job in cells}
    trained_methods = [method for method in choice.methods if method in trained]
    table = make_table(experiment, collect_runs(cells), choice.preset, trained_methods, missing)
    return {"md": table_page(table), "csv": to_table_csv(table)}


def show_experiment(experiment: Experiment, choice: Choice, cells: Sequence[Job], missing: Sequence[str]) -> None:
    """Write the files of an experiment below `out`, into figures/ and tables/, and print its page."""
    make = ablation_files if experiment.points else figure_files if experiment.figure else table_files
    files, stem = make(experiment, choice, cells, missing), f"{experiment.name}_{choice.preset}"
    paths = [Path(choice.out, "figures" if end == "png" else "tables", f"{stem}.{end}") for end in files]
    for path, content in zip(paths, files.values(), strict=True):
        write_atomically(path, content)
    print(files["md"])
    print(f"\nWritten: {', '.join(map(str, paths))}; runs in {choice.out}/runs")


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    with user_errors():
        args, failed = parse_args(argv, KEYS, __doc__, names=("experiment",)), list[str]()
        name = args.get("experiment", "")
        if name != "all":
            reproduce_experiment(load_experiment(name), args)
            return
        experiments = all_experiments()
        for experiment in experiments:
            try:
                reproduce_experiment(experiment, args)
            except InputError as error:
                failed.append(f"{experiment.name}: {error}")
                print(failed[-1], file=sys.stderr)
        if failed:
            raise InputError(f"{len(failed)} of {len(experiments)} experiments are not whole: {'; '.join(failed)}")


def reproduce_experiment(experiment: Experiment, args: Args) -> None:
    """Train the cells of an experiment as the command line narrows it, and show it.

    Where cells could not be trained an `InputError` says so, once the others have been shown. With `dry_run` a line for
    each cell that is missing, with its minutes on one core, and for each that is not trained is all.
    """
    budget = (args.numbers("budget") or [experiment.budget_minutes])[0] or math.inf
    experiment, choice = replace(experiment, budget_minutes=budget), choice_of(experiment, args)
    dry_run = args.switch("dry_run")
    cells, missing = plan_cells(experiment, choice, fetching=not dry_run)
    runs, minutes = sum(len(job.pending) for job in cells), sum(map(estimate_minutes, cells))
    summary = f"{experiment.name}: {runs} runs are missing, about {minutes:.0f} minutes on one core"
    if dry_run:
        for job in (job for job in cells if job.pending):
            print(f"{experiment.name}: {job.label}: {len(job.pending)} runs, about {estimate_minutes(job):.1f} min")
        print("\n".join([*(f"{experiment.name}: not trained: {line}" for line in missing), summary]))
        return
    if missing:
        print(f"{len(missing)} cells are not trained here; they are listed at the end", file=sys.stderr)
    print(summary, file=sys.stderr)
    untrained = train_cells(experiment, cells)
    for line in (line for job in cells for line in bandwidth_warnings(job)):
        print(line, file=sys.stderr)
    show_experiment(experiment, choice, cells, [*missing, *untrained])
    if any(TOO_LONG in line for line in missing):
        options = [f"{key}={value}" for key, value in args.items() if key not in ("experiment", "budget")]
        arguments = shlex.join([experiment.name, *options])
        print(f"python -m scripts.reproduce {arguments} budget=0    trains all of these")
    if untrained:
        others = f"; and {len(untrained) - 1} more" if untrained[1:] else ""
        raise InputError(f"not trained: {untrained[0]}{others}")


if __name__ == "__main__":
    main()
