"""Pictures of what methods change on many tables: a forest, wins by pairs, and error against cost."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, FormatStrFormatter, LogLocator, NullLocator

from scripts.records.stats import Interval
from scripts.report.figures import legend_below, looks, subplots

# Of verdicts, in their order; blue and orange for the blind to red.
COLOURS = ("#0072B2", "#D55E00", "#222222", "#9a9a9a")
MARKS = ("v", "^", "s", "o")
OVERALL, NEW = "mean over tables", "a new table"
PERCENT = (-1000, -100, -10, -3, -1, 0, 1, 3, 10, 100, 1000)  # that an axis may name; those of 3 where it is short
Rows = Mapping[str, tuple[Interval, str]]  # by table, with the verdict


def percent_axis(axis: Any, values: Sequence[float]) -> None:
    """Make an axis (`Axes.xaxis` or `yaxis`) linear within 1 % and logarithmic beyond, wide enough for all values."""
    which = axis.axis_name
    getattr(axis.axes, f"set_{which}scale")("symlog", linthresh=1.0, linscale=0.7)
    low, high = min(*values, -1.0), max(*values, 1.0)
    getattr(axis.axes, f"set_{which}lim")(1.5 * low, 1.5 * high)
    wide = max(-low, high) > 30
    shown = [tick for tick in PERCENT if 1.5 * low <= tick <= 1.5 * high and not (wide and abs(tick) == 3)]
    axis.set_major_locator(FixedLocator(shown))
    axis.set_major_formatter(FixedFormatter([f"{tick}".replace("-", "\N{MINUS SIGN}") for tick in shown]))
    axis.set_minor_locator(NullLocator())


def _draw_rows(axis: Any, rows: Rows, verdicts: Sequence[str], equal: float) -> dict[str, Any]:
    """Draw an interval a row, from above, and the band within which an effect is no gain and no loss.

    Returns what stands for each verdict in the legend.
    """
    axis.axvspan(-equal, equal, color="0.9", linewidth=0, zorder=0)
    axis.axvline(0, color="0.5", linewidth=0.8, zorder=1)
    axis.grid(axis="x", alpha=0.25)
    look = zip((*MARKS, "D", "*"), (*COLOURS, "#7b3294", "#7b3294"), strict=True)
    looks_of, handles = dict(zip((*verdicts, OVERALL, NEW), look, strict=True)), dict[str, Any]()
    for place, (table, (found, verdict)) in enumerate(rows.items()):
        mark, colour = looks_of[verdict]
        ends = [[found.mean - found.low], [found.high - found.mean]]
        handles[verdict] = axis.errorbar(found.mean, place, xerr=ends, fmt=mark, color=colour, markersize=4.5,
                                         linewidth=1.2, gid=table, label=verdict)  # fmt: skip
    return handles


def draw_forest(
    methods: Mapping[str, Rows], means: Mapping[str, Interval], verdicts: Sequence[str], equal: float, title: str
) -> Figure:
    """Draw a panel a method and a row a table: the change in percent of the other's error, with its interval.

    Tables stand in the order of their intervals' mean width, the narrowest above.

    Args:
        methods: changes by title and table; every method has the same tables.
        means: of each over tables, the last row.
        verdicts: all that there are, in the order of the legend.
        equal: the band within which an effect is neither a gain nor a loss, in percent.
        title: of the figure.
    """
    tables = list(next(iter(methods.values())))
    width = {table: np.mean([math.log(rows[table][0].high - rows[table][0].low + 1e-9) for rows in methods.values()])
             for table in tables}  # fmt: skip
    order = [*sorted(tables, key=lambda table: width[table]), OVERALL]
    across = min(4, len(methods))
    down = math.ceil(len(methods) / across)
    figure, axes = subplots(down, across, (2.2 + 1.75 * across, 0.7 + down * (0.9 + 0.2 * len(order))), sharey=True)
    every = [*means.values(), *(found for rows in methods.values() for found, _ in rows.values())]
    handles: dict[str, Any] = {}
    for axis in axes.flatten()[len(methods) :]:
        axis.set_axis_off()
    for axis, (name, rows) in zip(axes.flatten(), methods.items(), strict=False):
        drawn = {table: rows[table] for table in tables} | {OVERALL: (means[name], OVERALL)}
        handles |= _draw_rows(axis, {table: drawn[table] for table in order}, verdicts, equal)
        percent_axis(axis.xaxis, [end for found in every for end in (found.low, found.high)])
        axis.tick_params("x", labelsize=6.5)
        axis.tick_params("y", labelsize=8)
        axis.set_title(name, fontsize=10)
    axes[0][0].set_yticks(range(len(order)), order, fontsize=8)
    axes[0][0].set_ylim(len(order) - 0.4, -0.6)
    figure.suptitle(title, fontsize=11)
    legend_below(figure, {name: handles[name] for name in (*verdicts, OVERALL) if name in handles})
    return figure


def draw_ordered(rows: Rows, more: Mapping[str, Interval], verdicts: Sequence[str], equal: float, title: str) -> Figure:
    """Draw one method's change on every table, a row each from the lowest to the highest, to be read on a phone.

    Args:
        rows: changes in percent of the other's error, by table.
        more: rows below: `OVERALL` and `NEW`.
        verdicts: all that there are, in the order of the legend.
        equal: the band within which an effect is neither a gain nor a loss, in percent.
        title: of the axis.
    """
    figure, axes = subplots(1, 1, (4.9, 1.1 + 0.165 * (len(rows) + len(more))))
    axis = axes[0][0]
    order = sorted(rows, key=lambda table: rows[table][0].mean)
    drawn = {table.replace("_", " "): rows[table] for table in order} | {k: (own, k) for k, own in more.items()}
    handles = _draw_rows(axis, drawn, verdicts, equal)
    percent_axis(axis.xaxis, [end for found, _ in drawn.values() for end in (found.low, found.high)])
    order = list(drawn)
    axis.set_yticks(range(len(order)), order, fontsize=9)
    axis.set_ylim(len(order) - 0.4, -0.6)
    axis.set_xlabel(title, fontsize=9)
    legend_below(figure, {name: handles[name] for name in (*verdicts, *more) if name in handles})
    return figure


def draw_wins(panels: Mapping[str, tuple[Sequence[str], Mapping[tuple[str, str], float]]]) -> Figure:
    """Draw on how many percent of tables the method of a row has the lower error than that of a column.

    Args:
        panels: titles of methods, and the share of each pair, by the panel's title.
    """
    across = min(2, len(panels))
    down = math.ceil(len(panels) / across)
    size = max(len(names) for names, _ in panels.values())
    figure, axes = subplots(down, across, (across * (1.9 + 0.37 * size), down * (1.9 + 0.3 * size)))
    for axis in axes.flatten()[len(panels) :]:
        axis.set_axis_off()
    for axis, (title, (names, shares)) in zip(axes.flatten(), panels.items(), strict=False):
        values = np.array([[100 * shares.get((one, other), math.nan) for other in names] for one in names])
        axis.imshow(values, cmap="PuOr_r", vmin=0, vmax=100, aspect="auto")
        for (i, j), value in np.ndenumerate(values):
            if np.isfinite(value):
                colour = "white" if abs(value - 50) > 35 else "black"
                axis.text(j, i, f"{value:.0f}", ha="center", va="center", fontsize=8, color=colour)
        axis.set_xticks(range(len(names)), names, rotation=40, ha="right", rotation_mode="anchor", fontsize=8)
        axis.set_yticks(range(len(names)), names, fontsize=8)
        axis.set_title(title, fontsize=10)
    figure.tight_layout()
    return figure


def draw_costs(panels: Mapping[str, Mapping[str, tuple[float, Interval]]], base: str) -> Figure:
    """Draw the mean change over tables, with its interval, against seconds; a panel a setting.

    Args:
        panels: seconds and change by title, by the panel's title.
        base: what the changes are against, which has none.
    """
    across = min(2, len(panels))
    names = list(dict.fromkeys(name for each in panels.values() for name in each))
    look = dict(zip(names, looks(len(names)), strict=True))
    figure, axes = subplots(
        math.ceil(len(panels) / across), across, (4.4 * across, 3.4 * math.ceil(len(panels) / across))
    )
    for axis in axes.flatten()[len(panels) :]:
        axis.set_axis_off()
    handles: dict[str, Any] = {}
    for axis, (title, each) in zip(axes.flatten(), panels.items(), strict=False):
        axis.axhline(0, color="0.5", linewidth=0.8)
        for name, (cost, change) in each.items():
            ends = [[change.mean - change.low], [change.high - change.mean]]
            own = look[name] | {"label": name, "markersize": 6, "linewidth": 1, "linestyle": "none"}
            handles[name] = axis.errorbar(cost, change.mean, yerr=ends, **own)
        percent_axis(axis.yaxis, [end for _, change in each.values() for end in (change.low, change.high)])
        axis.set_xscale("log")
        axis.xaxis.set_major_locator(LogLocator(subs=(1.0, 3.0)))
        axis.xaxis.set_major_formatter(FormatStrFormatter("%g"))
        axis.xaxis.set_minor_locator(NullLocator())
        costs = [cost for cost, _ in each.values()]
        axis.set_xlim(min(costs) / 2, 2 * max(costs))
        axis.set_title(title, fontsize=10)
        axis.set_xlabel("seconds of a core for a model")
        axis.set_ylabel(f"error against {base}, %")
        axis.grid(alpha=0.25)
    legend_below(figure, handles)
    return figure
