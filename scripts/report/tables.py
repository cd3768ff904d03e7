"""Tables of the paper, made from records: each experiment and preset with published runs, files, what is missing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cmixup.metrics import lower_is_better, with_everywhere
from scripts.config.compose import part_file
from scripts.driver.runs import LEARNED_NOTHING
from scripts.plan.selection import recorded_under, selected_methods, shared_options
from scripts.records import names
from scripts.records.experiment import RESULTS, Experiment, all_experiments, paper_rows, stands_for
from scripts.records.published import published_reports
from scripts.records.records import choose_variants, read_csv, select_records
from scripts.records.rescored import published_records
from scripts.report.register import writes
from scripts.report.result_table import Block, ResultTable, make_block, table_page, to_table_csv
from scripts.report.sweep import Sweep, find_sweeps, grid_page, sweep_page


def make_table(
    experiment: Experiment,
    records: pd.DataFrame,
    preset: str,
    methods: Sequence[str] | None = None,
    missing: Sequence[str] = (),
) -> ResultTable:
    """Return the table of one preset: a block for every dataset that has records.

    Args:
        experiment: which table.
        records: of any experiments and presets.
        preset: which of them.
        methods: its rows; default all of the experiment.
        missing: lines on what is not in it.
    """
    mine = experiment_records(experiment, records, preset)
    there = set(mine["dataset"])
    present = [dataset for dataset in (*experiment.datasets, experiment.fallback) if dataset in there]
    rows = {dataset: selected_methods(experiment, dataset, methods or experiment.methods) for dataset in present}
    epoch = {"epoch": "of the last epoch"} if shared_options(experiment).get("train.select") == "last" else {}
    paper = paper_rows(experiment)
    columns = {dataset: experiment.metrics_of.get(dataset, experiment.metrics) for dataset in present}
    renamed = [method for pairs in experiment.paper_trains.values() for pair in pairs.items() for method in pair]
    titles = names.titles_of(present, chain(*rows.values(), renamed), chain(experiment.metrics, *columns.values()))
    blocks = [
        make_block(
            mine,
            paper,
            dataset=dataset,
            methods=rows[dataset],
            metrics=columns[dataset],
            compare=stands_for(experiment, dataset, experiment.compare),
            titles=titles,
        )
        for dataset in present
    ]
    known = {r["dataset"] for r in read_csv(RESULTS / "paper" / "results.csv")}
    in_table = {r["dataset"] for r in paper}
    for k, block in enumerate(blocks):
        rows_of_block = mine[mine["dataset"] == block.dataset]
        notes = [*layer_notes(rows_of_block, block), *nothing_learned_notes(rows_of_block, block)]
        notes += [
            f"The paper's {titles.methods[theirs]} is {titles.methods[ours]} on this dataset."
            for theirs, ours in experiment.paper_trains.get(block.dataset, {}).items()
        ]
        if block.dataset not in in_table:
            elsewhere = titles.datasets[block.dataset] in known
            notes.append("Not in the paper's table: our addition." if elsewhere else "Not in the paper: a stand-in.")
        blocks[k] = replace(block, notes=[*notes, *block.notes])
    about = f" ({experiment.about_preset[preset]})" if preset in experiment.about_preset else ""
    notes = [*experiment.notes, *rank_lines(blocks, experiment.metrics[0])]
    return ResultTable(f"{experiment.title}, preset {preset}{about}", blocks, missing, notes, **epoch)


def layer_notes(records: pd.DataFrame, block: Block) -> list[str]:
    """Return a sentence that says where each method of a block mixes."""
    layers = {m: sorted(set(records["layer"][records["method"] == m]) - {""}) for m in block.cells}
    parts = [f"{block.titles.methods[m]} {' and '.join(where)}" for m, where in layers.items() if where]
    return [f"Mixed at: {', '.join(parts)}."] if parts else []


def nothing_learned_notes(records: pd.DataFrame, block: Block) -> list[str]:
    """Return a sentence that names methods and seeds of a block with runs that learned nothing."""
    failed = records[records["metric"] == LEARNED_NOTHING]
    seeds = {m: sorted(set(failed["seed"][failed["method"] == m])) for m in block.cells}
    parts = [f"{block.titles.methods[m]} (seeds {', '.join(map(str, s))})" for m, s in seeds.items() if s]
    text = "By validation no better than the mean of the training labels"
    return [f"{text}: {', '.join(parts)}."] if parts else []


def experiment_records(experiment: Experiment, records: pd.DataFrame, preset: str) -> pd.DataFrame:
    """Return the records of one preset that an experiment shows."""
    mine = records[records["preset"] == preset]
    pairs = list(zip(mine["method"], mine["dataset"], strict=True))
    where = {pair: recorded_under(experiment, *pair) for pair in set(pairs)}
    return mine[mine["experiment"] == [where[pair] for pair in pairs]]


def ranks_beside_paper(blocks: Sequence[Block], metric: str) -> tuple[list[str], dict[str, float], dict[str, float]]:
    """Return the datasets that have every method's score, ours and the paper's, and the mean ranks of both over them.

    Methods that the paper has on no dataset do not count. The best score has rank 1; equal scores share the mean of
    their ranks.

    Args:
        blocks: one a dataset.
        metric: by which.
    """
    blocks = [block for block in blocks if metric in block.metrics]
    methods = [
        m
        for m in (blocks[0].cells if blocks else ())
        if any(m in b.cells and b.cells[m][metric].paper is not None for b in blocks)
    ]
    whole = [b for b in blocks if all(m in b.cells and b.cells[m][metric].difference is not None for m in methods)]
    cells = [[block.cells[m][metric] for m in methods] for block in whole]
    ours, paper = ([[s.mean for c in row if (s := getattr(c, of))] for row in cells] for of in ("ours", "printed"))
    datasets = [block.dataset for block in whole] if methods else []
    return datasets, _mean_ranks(methods, ours, metric), _mean_ranks(methods, paper, metric)


def _mean_ranks(methods: Sequence[str], scores: list[list[float]], metric: str) -> dict[str, float]:
    if not scores or not methods:
        return {}
    sign = 1 if lower_is_better(metric) else -1
    ranks = pd.DataFrame(sign * np.array(scores), columns=list(methods)).rank(axis=1, na_option="bottom")
    return {str(method): float(mean) for method, mean in ranks.mean().items()}


def rank_lines(blocks: Sequence[Block], metric: str) -> list[str]:
    """Return a sentence on the mean ranks; nothing with one method, or fewer than two datasets that have every one."""
    datasets, ours, paper = ranks_beside_paper(blocks, metric)
    if len(datasets) < 2 or len(ours) < 2:
        return []
    titles = blocks[0].titles
    parts = [f"{titles.methods[m]} {ours[m]:.1f} ({paper[m]:.1f})" for m in sorted(ours, key=ours.__getitem__)]
    where = ", ".join(titles.datasets[d] for d in datasets)
    by = titles.metrics[metric]
    return [f"Mean rank by {by} over {where}, 1 is best (the paper's in parentheses): {'; '.join(parts)}."]


def shown_tables(
    records: pd.DataFrame, metrics: Sequence[str] = (), more: Sequence[str] = ()
) -> list[tuple[Experiment, str, ResultTable]]:
    """Return every table of the paper, or of the same with options changed, that has published records.

    Args:
        records: of all published runs.
        metrics: the columns; those of the experiment if empty.
        more: further columns.
    """
    tables = []
    for planned in all_experiments():
        special = {} if metrics else planned.metrics_of
        columns = {dataset: [*names_of, *more] for dataset, names_of in special.items()}
        experiment = replace(planned, metrics=[*(metrics or planned.metrics), *more], metrics_of=columns)
        changed = experiment.overrides and not experiment.figure
        if not (experiment.paper_table or changed) or experiment.variants:
            continue
        for preset in shown_presets(records, experiment.name):
            mine = experiment_records(experiment, standard_records(records, experiment), preset)
            missing = missing_lines(experiment, mine, preset)
            tables.append((experiment, preset, make_table(experiment, mine, preset, missing=missing)))
    return tables


def published_sweeps(results: Path = RESULTS) -> list[tuple[Experiment, str, list[Sweep]]]:
    """Return every sweep and preset that has published runs of two values or more."""
    sweeps = []
    for experiment in all_experiments():
        if experiment.sweep and (reports_here := published_reports(results, [experiment.name])):
            sources = {recorded_under(experiment, m, d) for m in experiment.methods for d in experiment.datasets}
            reports = choose_variants([*reports_here, *published_reports(results, sources - {experiment.name})])
            swept = [
                (preset, find_sweeps(experiment, reports, preset))
                for preset in sorted({r["preset"] for r in reports_here})
            ]
            sweeps += [(experiment, preset, some) for preset, some in swept if some]
    return sweeps


def published_grids(results: Path = RESULTS) -> list[tuple[Experiment, str, list[dict[str, Any]]]]:
    """Return every ablation grid and preset that has published runs, with all its runs."""
    return [
        (experiment, preset, reports)
        for experiment in all_experiments()
        if experiment.grid and (reports := published_reports(results, [experiment.name]))
        for preset in sorted({r["preset"] for r in reports})
    ]


def shown_presets(records: pd.DataFrame, experiment: str) -> list[str]:
    """Return the presets that were run for an experiment, in the order paper, released, others."""
    presets = select_records(records, experiment=experiment)["preset"].unique()
    return sorted(presets, key=lambda p: (("paper", "released").index(p) if p in ("paper", "released") else 2, p))


def standard_records(records: pd.DataFrame, experiment: Experiment | None = None) -> pd.DataFrame:
    """Return the records of runs that follow their preset: nothing was changed but what all runs of `experiment` do."""
    shared = shared_options(experiment) if experiment else {}
    return records[[options in ({}, shared) for options in records["options"]]]


def missing_lines(experiment: Experiment, records: pd.DataFrame, preset: str = "paper") -> list[str]:
    """Return a line on every cell without published runs, or one on all of a dataset's, with the reason."""
    there = set(zip(records["dataset"], records["method"], strict=True))
    lines = []
    for dataset in experiment.datasets:
        reasons: dict[str, list[str]] = {}
        cells = selected_methods(experiment, dataset, experiment.methods)
        for method in cells:
            if (dataset, method) not in there:
                reasons.setdefault(why_missing(dataset, preset), []).append(names.method_title(method))
        for reason, methods in reasons.items():
            which = "" if len(methods) == len(cells) else f", {', '.join(methods)}"
            lines.append(f"{names.dataset_title(dataset)}{which}: {reason}")
    return lines


def why_missing(dataset: str, preset: str = "paper") -> str:
    """Return why a dataset has no published runs, and what a run without mixing costs with that preset."""
    about = part_file("dataset", dataset)
    values = about["presets"].get(preset, about["presets"]["paper"])
    minutes = values.get("cpu_minutes", about.get("cpu_minutes"))
    cost = f"; a run without mixing takes about {minutes} minutes on a CPU core" if isinstance(minutes, int) else ""
    return about.get("absent", "not run yet") + cost


@writes
def table_files() -> dict[str, str]:
    """Return every table as a page, and as CSV with the metrics that every run has, too."""
    records, texts = published_records(), dict[str, str]()
    for experiment, preset, table in shown_tables(records):
        page = table_page(table, linked=True) + made_by(experiment.name, preset)
        texts[f"tables/{experiment.name}_{preset}.md"] = page
    for experiment, preset, table in shown_tables(records, more=with_everywhere(())):
        texts[f"tables/{experiment.name}_{preset}.csv"] = to_table_csv(table)
    return texts


@writes
def sweep_files() -> dict[str, str]:
    """Return the page of every sweep, ablation grid and experiment with variants."""
    texts = {(e.name, preset): sweep_page(e, some, preset) for e, preset, some in published_sweeps()}
    texts |= {(e.name, preset): grid_page(e, some, preset) for e, preset, some in published_grids()}
    return {f"tables/{name}_{preset}.md": text + made_by(name, preset) for (name, preset), text in texts.items()}


def made_by(experiment: str, preset: str) -> str:
    """Return the last line of a page: the commands that make it."""
    trained = f"python -m scripts.reproduce {experiment} preset={preset}"
    return f"\n`{trained}` trains these runs, `make publish` renders this page.\n"
