"""How a table of the paper is made from records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import chain

import numpy as np
import pandas as pd

from cmixup.metrics import lower_is_better
from scripts.driver.runs import LEARNED_NOTHING
from scripts.plan.asked import asked_methods, recorded_under, shared_options
from scripts.records import names
from scripts.records.experiment import RESULTS, Experiment, paper_rows, stands_for
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
    there = set(mine["dataset"])
    present = [dataset for dataset in (*experiment.datasets, experiment.fallback) if dataset in there]
    rows = {dataset: asked_methods(experiment, dataset, methods or experiment.methods) for dataset in present}
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
        own = mine[mine["dataset"] == block.dataset]
        notes = [*layer_notes(own, block), *nothing_learned_notes(own, block)]
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
    parts = [f"{block.titles.methods[method]} {' and '.join(found)}" for method, found in layers.items() if found]
    return [f"Mixed at: {', '.join(parts)}."] if parts else []


def nothing_learned_notes(records: pd.DataFrame, block: Block) -> list[str]:
    """Return a sentence that names methods and seeds of a block with runs that learned nothing."""
    found = records[records["metric"] == LEARNED_NOTHING]
    seeds = {m: sorted(set(found["seed"][found["method"] == m])) for m in block.cells}
    parts = [f"{block.titles.methods[m]} (seeds {', '.join(map(str, s))})" for m, s in seeds.items() if s]
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
    titles = blocks[0].titles
    parts = [f"{titles.methods[m]} {ours[m]:.1f} ({paper[m]:.1f})" for m in sorted(ours, key=ours.__getitem__)]
    shown = ", ".join(titles.datasets[d] for d in datasets)
    by = titles.metrics[metric]
    return [f"Mean rank by {by} over {shown}, 1 is best (the paper's in parentheses): {'; '.join(parts)}."]
