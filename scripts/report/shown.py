"""Which tables are shown, and their files: every experiment and preset with published runs, and what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from cmixup.metrics import with_everywhere
from scripts.config.compose import option_names, part_file
from scripts.plan.asked import asked_methods, recorded_under, shared_options
from scripts.records import names
from scripts.records.experiment import RESULTS, Experiment, all_experiments
from scripts.records.published import published_reports
from scripts.records.records import choose_variants, select_records
from scripts.records.register import writes
from scripts.records.rescored import filled_records
from scripts.records.tables import ResultTable, table_page, to_table_csv
from scripts.report.ladder import ladder_page
from scripts.report.sweep import Sweep, find_sweeps, sweep_page
from scripts.report.table import experiment_records, make_table


def shown_tables(
    records: pd.DataFrame, metrics: Sequence[str] = (), more: Sequence[str] = ()
) -> list[tuple[Experiment, str, ResultTable]]:
    """Return every table of the paper, or of the same with options changed, that has published records.

    Args:
        records: of all published runs.
        metrics: the columns; those of the experiment if empty.
        more: further columns.
    """
    found = []
    for each in all_experiments():
        columns = {name: [*own, *more] for name, own in ({} if metrics else each.metrics_of).items()}
        experiment = replace(each, metrics=[*(metrics or each.metrics), *more], metrics_of=columns)
        changed = experiment.overrides and not experiment.figure
        if not (experiment.paper_table or changed) or experiment.variants:
            continue
        for preset in shown_presets(records, experiment.name):
            own = experiment_records(experiment, standard_records(records, experiment), preset)
            missing = missing_lines(experiment, own, preset)
            found.append((experiment, preset, make_table(experiment, own, preset, missing=missing)))
    return found


def published_sweeps(results: Path = RESULTS) -> list[tuple[Experiment, str, list[Sweep]]]:
    """Return every sweep and preset that has published runs of two values or more."""
    shown = []
    for experiment in all_experiments():
        if experiment.sweep and (own := published_reports(results, [experiment.name])):
            sources = {recorded_under(experiment, m, d) for m in experiment.methods for d in experiment.datasets}
            reports = choose_variants([*own, *published_reports(results, sources - {experiment.name})])
            swept = [
                (preset, find_sweeps(experiment, reports, preset)) for preset in sorted({r["preset"] for r in own})
            ]
            shown += [(experiment, preset, found) for preset, found in swept if found]
    return shown


def published_ladders(results: Path = RESULTS) -> list[tuple[Experiment, str, list[dict[str, Any]]]]:
    """Return every ladder and preset that has published runs, with all runs of that ladder."""
    return [
        (experiment, preset, own)
        for experiment in all_experiments()
        if experiment.grid and (own := published_reports(results, [experiment.name]))
        for preset in sorted({r["preset"] for r in own})
    ]


def shown_presets(records: pd.DataFrame, experiment: str) -> list[str]:
    """Return the presets that were run for an experiment, in the order paper, released, others."""
    found = select_records(records, experiment=experiment)["preset"].unique()
    return sorted(found, key=lambda p: (("paper", "released").index(p) if p in ("paper", "released") else 2, p))


def standard_records(records: pd.DataFrame, experiment: Experiment | None = None) -> pd.DataFrame:
    """Return the records of runs that follow their preset: nothing was changed but what all runs of `experiment` do."""
    own = shared_options(experiment) if experiment else {}
    return records[[options in ({}, own) for options in records["options"]]]


def missing_lines(experiment: Experiment, records: pd.DataFrame, preset: str = "paper") -> list[str]:
    """Return a line on every cell without published runs, or one on all of a dataset's, with the reason."""
    there = set(zip(records["dataset"], records["method"], strict=True))
    found = []
    for dataset in experiment.datasets:
        reasons: dict[str, list[str]] = {}
        cells = asked_methods(experiment, dataset, experiment.methods)
        for method in cells:
            if (dataset, method) not in there:
                reasons.setdefault(why_missing(dataset, method, preset), []).append(names.method_title(method))
        for reason, methods in reasons.items():
            which = "" if len(methods) == len(cells) else f", {', '.join(methods)}"
            found.append(f"{names.dataset_title(dataset)}{which}: {reason}")
    return found


def why_missing(dataset: str, method: str, preset: str = "paper") -> str:
    """Return why a cell has no published runs, and what a run without mixing costs with that preset."""
    if dataset not in option_names("dataset"):
        return "this dataset is not in this version"
    if method not in option_names("method"):
        return "this method is not in this version"
    about = part_file("dataset", dataset)
    values = about["presets"].get(preset, about["presets"]["paper"])
    minutes = values.get("cpu_minutes", about.get("cpu_minutes"))
    cost = f"; a run without mixing takes about {minutes} minutes on a CPU core" if isinstance(minutes, int) else ""
    return about.get("absent", "not run yet") + cost


@writes("results/runs", "results/predictions", "results/paper")
def table_files() -> dict[str, str]:
    """Return every table as a page, and as CSV with the metrics that every run has, too."""
    records, texts = filled_records(), dict[str, str]()
    for experiment, preset, table in shown_tables(records):
        page = table_page(table, linked=True) + made_by(experiment.name, preset)
        texts[f"tables/{experiment.name}_{preset}.md"] = page
    for experiment, preset, table in shown_tables(records, more=with_everywhere(())):
        texts[f"tables/{experiment.name}_{preset}.csv"] = to_table_csv(table)
    return texts


@writes("results/runs", "results/paper")
def sweep_files() -> dict[str, str]:
    """Return the page of every sweep and ladder."""
    texts = {(e.name, preset): sweep_page(e, found, preset) for e, preset, found in published_sweeps()}
    texts |= {(e.name, preset): ladder_page(e, found, preset) for e, preset, found in published_ladders()}
    return {f"tables/{name}_{preset}.md": text + made_by(name, preset) for (name, preset), text in texts.items()}


def made_by(experiment: str, preset: str) -> str:
    """Return the last line of a page: the commands that make it."""
    trained = f"python -m scripts.reproduce {experiment} preset={preset}"
    return f"\n`{trained}` trains these runs, `make publish` renders this page.\n"
