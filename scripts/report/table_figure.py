"""The picture of a table: every method minus ERM, paired over seeds, a line a preset, with the paper's difference."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from scripts.records import names
from scripts.records.experiment import load_experiment
from scripts.records.published import published_records
from scripts.records.records import by_seed_or_none
from scripts.records.register import draws
from scripts.records.stats import Summary, paired_or_none, welch_interval
from scripts.records.tables import Block, ResultTable
from scripts.report.figures import legend_below, new_subplots, series_looks
from scripts.report.palette import COLOURS
from scripts.report.tables import make_table, shown_presets, standard_records

ERM, LED, PAPER_SEEDS = "erm", "cmixup", 3
PAPER = "the paper, 95 % interval of two means of 3 seeds"


def table_figure(tables: Mapping[str, ResultTable], records: pd.DataFrame, metric: str = "rmse") -> Figure:
    """Draw each method's score minus ERM's, a panel a dataset: the paper's difference, and below it a line a preset.

    Args:
        tables: one table a preset; a dataset need not be in all.
        records: what they were made from.
        metric: which score to draw.
    """
    found: dict[str, list[Block]] = {}
    for block in (b for table in tables.values() for b in table.blocks):
        found.setdefault(block.dataset, []).append(block)
    every = (m for blocks in found.values() for m in blocks[0].cells if any(b.cells[m][metric].ours for b in blocks))
    methods = [method for method in dict.fromkeys(every) if method != ERM]
    size = max(9.2, 2 + 2.6 * len(found)), 2.0 + len(methods) * (0.16 + 0.1 * len(tables))
    figure, axes = new_subplots(1, len(found), figsize=size, sharey=True)
    handles: dict[str, Any] = {}
    for axis, (dataset, blocks) in zip(axes[0], found.items(), strict=True):
        scores = {
            (preset, method): by_seed_or_none(records, preset=preset, dataset=dataset, method=method, metric=metric,
                                      experiment="table1")
            for preset in tables for method in (ERM, *methods)
        }  # fmt: skip
        below: list[bool] = []
        axis.axvline(0, color=COLOURS[ERM], linewidth=1)
        for row, method in enumerate(methods):
            # A method's row is 1 high: the paper's line and one a preset stand in it from above, with room at its ends.
            heights = row - 0.5 + (np.arange(len(tables) + 1) + 1) / (len(tables) + 2)
            if row % 2:
                axis.axhspan(row - 0.5, row + 0.5, color="0.95", linewidth=0, zorder=0)
            title = names.method_title(method)
            shown = next((each for each in blocks if method in each.cells), None)
            pair = [_printed_mean(shown, name, metric) for name in (method, ERM)] if shown else []
            if all(pair) and (own := welch_interval(*pair)):  # type: ignore[arg-type]
                handles[PAPER] = axis.errorbar(own.mean, heights[0], xerr=[[own.mean - own.low], [own.high - own.mean]],
                                               fmt="D", color="0.25", markersize=4, gid=title, label=PAPER)  # fmt: skip
            for preset, height, look in zip(tables, heights[1:], series_looks(len(tables)), strict=True):
                difference = paired_or_none(scores[preset, method], scores[preset, ERM])
                if difference is None:
                    continue
                label = f"ours, preset {preset}"
                ends = [[difference.mean - difference.low], [difference.high - difference.mean]]
                handles[label] = axis.errorbar(difference.mean, height, xerr=ends, linewidth=1.2, linestyle="",
                                               markersize=5.5, gid=title, label=label, **look)  # fmt: skip
                if method == LED:
                    below.append(difference.high < 0)
        axis.set_yticks(range(len(methods)), [names.method_title(m) for m in methods])
        axis.set_ylim(len(methods) - 0.5, -0.5)
        axis.tick_params(labelsize=8)
        axis.set_xlabel(f"test {names.metric_title(metric)} minus ERM's")
        lead = f"\n{names.method_title(LED)} lower under {sum(below)} of {len(below)} presets" if below else ""
        axis.set_title(f"{names.dataset_title(dataset)}{lead}", fontsize=10)
        axis.grid(axis="x", alpha=0.3)
    order = (PAPER, *(f"ours, preset {preset}" for preset in tables))
    legend_below(figure, {label: handles[label] for label in order if label in handles},
                 "mean difference, paired over seeds, with its 95 % interval")  # fmt: skip
    return figure


def _printed_mean(block: Block, method: str, metric: str) -> Summary | None:
    """Return the paper's mean and standard deviation of a method, or None where it prints none."""
    cell = block.cells[method][metric] if method in block.cells else None
    if cell is None or cell.paper is None or cell.paper_std is None:
        return None
    return Summary(cell.paper, cell.paper_std, PAPER_SEEDS)


@draws
def table1_figures() -> dict[str, Figure]:
    """Return the figure of Table 1."""
    table1, records = load_experiment("table1"), published_records()
    tables = {p: make_table(table1, standard_records(records), p) for p in shown_presets(records, "table1")}
    return {"figures/table1.png": table_figure(tables, standard_records(records))}
