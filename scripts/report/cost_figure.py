"""The picture of error and cost: a row a method, in a pair of panels a setting."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from typing import Any

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FormatStrFormatter, LogLocator, NullLocator
from mpl_toolkits.axes_grid1 import make_axes_locatable

from scripts.records.stats import Interval
from scripts.report.effect_figures import percent_axis
from scripts.report.figures import legend_below, new_subplots
from scripts.report.palette import BY_TITLE, COLOURS, GREY, PURPLE

Costs = Mapping[str, tuple[float, Interval]]  # seconds and change, by title
NETWORK, AVERAGE, OTHER = "one network", "average of networks", "no network"
KINDS: dict[str, dict[str, Any]] = {
    NETWORK: {"marker": "o"},
    AVERAGE: {"marker": "D", "markerfacecolor": "white", "markersize": 5},
    OTHER: {"marker": "s", "markersize": 5},
}


def cost_kind(name: str) -> str:
    """Return what a title is of: a network, several networks that are averaged, or a model of another kind."""
    if name in BY_TITLE:
        return NETWORK
    return AVERAGE if _parts(name) <= BY_TITLE.keys() else OTHER


def _parts(name: str) -> set[str]:
    """Return the titles of the networks that an average is of."""
    return {part.partition(" x ")[0] for part in name.split(" + ")}


def cost_look(name: str) -> dict[str, Any]:
    """Return the look of a row: the method's colour, filled for one network and hollow for an average, or grey.

    An average of two methods is purple.
    """
    kind = cost_kind(name)
    parts = {NETWORK: [name], AVERAGE: sorted(_parts(name)), OTHER: []}[kind]
    own = [BY_TITLE[part][0] for part in parts] or [GREY]
    return {"color": own[0] if len(own) == 1 else PURPLE, **KINDS[kind]}


def cost_title(panels: Mapping[str, Costs]) -> str:
    """Return the finding: which kind of model has the lowest mean error, in how many settings."""
    lowest = Counter(cost_kind(min(each, key=lambda name: each[name][1].mean)) for each in panels.values())
    kind, n = lowest.most_common(1)[0]
    return f"Lowest mean error: {kind}, in {n} of {len(panels)} settings"


def draw_costs(panels: Mapping[str, Costs], base: str) -> Figure:
    """Draw a row a method, the lowest error above: its mean change over tables with the interval, and its seconds.

    Args:
        panels: seconds and change by title, by the setting.
        base: what the changes are against, which has none.
    """
    across, longest = min(2, len(panels)), max(map(len, panels.values()))
    down = math.ceil(len(panels) / across)
    figure, axes = new_subplots(down, across, (5.4 * across, down * (1.0 + 0.21 * longest) + 0.5))
    for axis in axes.flatten()[len(panels) :]:
        axis.set_axis_off()
    for left, (title, each) in zip(axes.flatten(), panels.items(), strict=False):
        right = make_axes_locatable(left).append_axes("right", size="45%", pad=0.12)
        order = sorted(each, key=lambda name: each[name][1].mean)
        for place, name in enumerate(order):
            cost, change = each[name]
            look = cost_look(name) | {"gid": name, "label": f"_{name}", "linestyle": "none"}
            ends = [[change.mean - change.low], [change.high - change.mean]]
            left.errorbar(change.mean, place, xerr=ends, elinewidth=1.2, **look)
            right.plot(cost, place, **look)
        left.axvline(0, color=COLOURS["erm"], linewidth=0.8, zorder=0)
        percent_axis(left.xaxis, [end for _, change in each.values() for end in (change.low, change.high)])
        right.set_xscale("log")
        right.xaxis.set_major_locator(LogLocator(subs=(1.0,)))
        right.xaxis.set_major_formatter(FormatStrFormatter("%g"))
        right.xaxis.set_minor_locator(NullLocator())
        costs = [cost for cost, _ in each.values()]
        right.set_xlim(min(costs) / 2, 2 * max(costs))
        left.set_yticks(range(len(order)), order, fontsize=8)
        right.set_yticks(range(len(order)), [""] * len(order))
        for axis in (left, right):
            axis.set_ylim(len(order) - 0.4, -0.6)
            axis.grid(alpha=0.25)
            axis.tick_params("x", labelsize=8)
        left.set_title(title, fontsize=9.5)
        left.set_xlabel(f"error against {base}'s, %", fontsize=8.5)
        right.set_xlabel("CPU seconds", fontsize=8.5)
    figure.suptitle(cost_title(panels), fontsize=11)
    shown = [kind for kind in KINDS if any(kind == cost_kind(name) for each in panels.values() for name in each)]
    legend_below(figure, {kind: Line2D([], [], linestyle="", color="0.4", **KINDS[kind]) for kind in shown})
    return figure
