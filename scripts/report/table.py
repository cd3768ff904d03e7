"""How a table of the paper is made from records."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from cmixup.metrics import lower_is_better
from scripts.driver.runs import LEARNED_NOTHING
from scripts.plan.asked import asked_methods, recorded_under, shared_options
from scripts.records import names
from scripts.records.experiment import RESULTS, Experiment
from scripts.records.paper import paper_rows, stands_for
from scripts.records.records import read_csv
from scripts.records.tables import Block, ResultTable, make_block


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
    paper = paper_rows(experiment)
    known = {r["dataset"] for r in read_csv(RESULTS / "paper" / "results.csv")}
    order = [*experiment.datasets, experiment.fallback]
    present = names.in_order((d for d in mine["dataset"].unique() if d in order), order)
    chosen = methods or experiment.methods
    blocks: list[Block] = []
    for dataset in present:
        rows = asked_methods(experiment, dataset, chosen)
        own = mine[mine["dataset"] == dataset]
        notes = [*layer_notes(own, rows), *nothing_learned_notes(own, rows)]
        notes += [
            f"The paper's {names.method_title(theirs)} is {names.method_title(ours)} on this dataset."
            for theirs, ours in experiment.paper_trains.get(dataset, {}).items()
        ]
        if not any(r["dataset"] == dataset for r in paper):
            elsewhere = names.dataset_title(dataset) in known
            notes.append("Not in the paper's table: our addition." if elsewhere else "Not in the paper: a stand-in.")
        block = make_block(
            mine,
            paper,
            dataset=dataset,
            methods=rows,
            metrics=experiment.metrics_of.get(dataset, experiment.metrics),
            compare=stands_for(experiment, dataset, experiment.compare),
            notes=notes,
        )
        blocks.append(block)
    about = f" ({experiment.about_preset[preset]})" if preset in experiment.about_preset else ""
    title = f"{experiment.title}, preset {preset}{about}"
    notes = [*experiment.notes, *rank_lines(blocks, experiment.metrics[0])]
    if shared_options(experiment).get("train.select") == "last":
        return ResultTable(title, blocks, missing, notes, epoch="of the last epoch")
    return ResultTable(title, blocks, missing, notes)


def layer_notes(records: pd.DataFrame, methods: Sequence[str]) -> list[str]:
    """Return a sentence that says where each method mixes."""
    layers = {m: sorted(set(records["layer"][records["method"] == m]) - {""}) for m in methods}
    parts = [f"{names.method_title(method)} {' and '.join(found)}" for method, found in layers.items() if found]
    return [f"Mixed at: {', '.join(parts)}."] if parts else []


def nothing_learned_notes(records: pd.DataFrame, methods: Sequence[str]) -> list[str]:
    """Return a sentence that names methods and seeds with runs that learned nothing."""
    found = records[records["metric"] == LEARNED_NOTHING]
    seeds = {m: sorted(set(found["seed"][found["method"] == m])) for m in methods}
    parts = [f"{names.method_title(m)} (seeds {', '.join(map(str, s))})" for m, s in seeds.items() if s]
    said = "By validation no better than the mean of the training labels"
    return [f"{said}: {', '.join(parts)}."] if parts else []


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
    shown = [block.dataset for block in whole] if methods else []
    return shown, _mean_ranks(methods, ours, metric), _mean_ranks(methods, paper, metric)


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
    parts = [f"{names.method_title(m)} {ours[m]:.1f} ({paper[m]:.1f})" for m in sorted(ours, key=ours.__getitem__)]
    shown = ", ".join(names.dataset_title(d) for d in datasets)
    by = names.metric_title(metric)
    return [f"Mean rank by {by} over {shown}, 1 is best (the paper's in parentheses): {'; '.join(parts)}."]
