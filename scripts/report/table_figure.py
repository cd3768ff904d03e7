"""The picture of a table: every seed and mean of ours, a line a preset, beside the paper's numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from cmixup.metrics import lower_is_better
from scripts.records import names
from scripts.records.experiment import load_experiment
from scripts.records.published import published_records
from scripts.records.records import by_seed_or_none
from scripts.records.register import draws
from scripts.records.tables import Block, ResultTable
from scripts.report.figures import legend_below, looks, subplots
from scripts.report.shown import presets, standard
from scripts.report.table import make_table


def table_figure(tables: Mapping[str, ResultTable], records: pd.DataFrame, metric: str = "rmse") -> Figure:
    """Draw, for each dataset and method, the paper's mean ± std, and below it a line a preset: every seed and the mean.

    Args:
        tables: one table a preset; a dataset need not be in all.
        records: what they were made from.
        metric: which score to draw.
    """
    found: dict[str, list[Block]] = {}
    for block in (b for table in tables.values() for b in table.blocks):
        found.setdefault(block.dataset, []).append(block)
    every = (m for blocks in found.values() for m in blocks[0].cells if any(b.cells[m][metric].ours for b in blocks))
    methods = list(dict.fromkeys(every))
    size = max(9.2, 2 + 2.4 * len(found)), 1.8 + len(methods) * (0.16 + 0.1 * len(tables))
    figure, axes = subplots(1, len(found), figsize=size, sharey=True)
    paper, own = "the paper, mean ± std of 3 seeds", {preset: f"ours, preset {preset}" for preset in tables}
    handles: dict[str, Any] = {}
    for axis, (dataset, blocks) in zip(axes[0], found.items(), strict=True):
        for row, method in enumerate(methods):
            # A method's row is 1 high: the paper's line and one a preset stand in it from above, with room at its ends.
            heights = row - 0.5 + (np.arange(len(tables) + 1) + 1) / (len(tables) + 2)
            if row % 2:
                axis.axhspan(row - 0.5, row + 0.5, color="0.95", linewidth=0, zorder=0)
            title = names.method_title(method)
            cell = next((b.cells[method][metric] for b in blocks if method in b.cells), None)
            if cell is not None and cell.paper is not None:
                handles[paper] = axis.errorbar(cell.paper, heights[0], xerr=cell.paper_std, fmt="D", color="black",
                                               capsize=2, markersize=5, gid=title, label=paper)  # fmt: skip
            for (preset, label), height, look in zip(own.items(), heights[1:], looks(len(tables)), strict=True):
                values = by_seed_or_none(records, preset=preset, dataset=dataset, method=method, metric=metric,
                                 experiment="table1")  # fmt: skip
                seeds = list(values.values())
                if not seeds:
                    continue
                axis.plot(seeds, [height] * len(seeds), ".", color=look["color"], alpha=0.4, gid=title, label=label)
                (handles[label],) = axis.plot(
                    sum(seeds) / len(seeds), height, linestyle="", markersize=6.5, markeredgecolor="black",
                    markeredgewidth=0.5, gid=title, label=label, **look,
                )  # fmt: skip
        axis.set_yticks(range(len(methods)), [names.method_title(m) for m in methods])
        axis.set_ylim(len(methods) - 0.5, -0.5)
        axis.tick_params(labelsize=8)
        better = "lower" if lower_is_better(metric) else "higher"
        axis.set_xlabel(f"test {names.metric_title(metric)}, {better} is better")
        axis.set_title(names.dataset_title(dataset))
        axis.grid(axis="x", alpha=0.3)
    shown = {label: handles[label] for label in (paper, *own.values()) if label in handles}
    legend_below(figure, shown, "large: mean over seeds; small: every seed")
    return figure


@draws("results/runs", "results/paper")
def figures() -> dict[str, Figure]:
    """Return the figure of Table 1."""
    table1, records = load_experiment("table1"), published_records()
    tables = {p: make_table(table1, standard(records), p) for p in presets(records, "table1")}
    return {"figures/table1.png": table_figure(tables, standard(records))}
