"""Pictures of what C-Mixup changes on many tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from matplotlib.figure import Figure
from matplotlib.ticker import FixedFormatter, FixedLocator, NullLocator

from cmixup import CMixup
from scripts.report.figures import COLOURS, GREEN, PURPLE, legend_below, method_look, new_subplots
from scripts.stats.intervals import Interval

# Of verdicts, in their order: no method's.
OF_VERDICTS = (GREEN, PURPLE, "#4d4d4d", "#b0b0b0")
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
    ticks = [tick for tick in PERCENT if 1.5 * low <= tick <= 1.5 * high and not (wide and abs(tick) == 3)]
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_major_formatter(FixedFormatter([f"{tick}".replace("-", "\N{MINUS SIGN}") for tick in ticks]))
    axis.set_minor_locator(NullLocator())


def _draw_rows(axis: Any, rows: Rows, verdicts: Sequence[str], equal: float, method: str) -> dict[str, Any]:
    """Draw an interval a row, from above, and the band within which an effect is no gain and no loss.

    The mean and what a new table may expect have the method's colour. Returns what stands for each in the legend.
    """
    axis.axvspan(-equal, equal, color="0.92", linewidth=0, zorder=0)
    axis.axvline(0, color="black", linewidth=0.8, zorder=1)
    axis.grid(axis="x", alpha=0.25)
    own = method_look(method)["color"]
    look = zip((*MARKS, "D", "*"), (*OF_VERDICTS, own, own), strict=True)
    looks_of, handles = dict(zip((*verdicts, OVERALL, NEW), look, strict=True)), dict[str, Any]()
    for place, (table, (found, verdict)) in enumerate(rows.items()):
        mark, colour = looks_of[verdict]
        ends = [[found.mean - found.low], [found.high - found.mean]]
        whole = verdict in (OVERALL, NEW)
        handles[verdict] = axis.errorbar(found.mean, place, xerr=ends, fmt=mark, color=colour, gid=table,
                                         markersize=6.5 if whole else 4.5, linewidth=2 if whole else 1.2,
                                         label=f"_{verdict}" if whole else verdict)  # fmt: skip
    return handles


def spoken_name(table: str) -> str:
    """Return how pictures spell a table's name."""
    return table.replace("_", " ")


def draw_ordered(
    rows: Rows, more: Mapping[str, Interval], verdicts: Sequence[str], equal: float, *, method: str, title: str
) -> Figure:
    """Draw one method's change on every table, a row each from the lowest to the highest, to be read on a phone.

    Args:
        rows: changes in percent of the other's error, by table.
        more: rows below: `OVERALL` and `NEW`.
        verdicts: all that there are, in the order of the legend.
        equal: the band within which an effect is neither a gain nor a loss, in percent.
        method: title of the method, which gives the colour of the mean.
        title: of the figure: its finding.
    """
    figure, axes = new_subplots(1, 1, (4.9, 1.5 + 0.165 * (len(rows) + len(more))))
    axis = axes[0][0]
    order = sorted(rows, key=lambda table: rows[table][0].mean)
    drawn = {spoken_name(table): rows[table] for table in order} | {k: (own, k) for k, own in more.items()}
    handles = _draw_rows(axis, drawn, verdicts, equal, method)
    percent_axis(axis.xaxis, [end for found, _ in drawn.values() for end in (found.low, found.high)])
    axis.set_yticks(range(len(drawn)), list(drawn), fontsize=9)
    axis.set_ylim(len(drawn) - 0.4, -0.6)
    axis.set_xlabel(f"{method}'s test error against ERM's, %", fontsize=9)
    figure.suptitle(title, fontsize=10)
    legend_below(figure, {name: handles[name] for name in (*verdicts, *more) if name in handles})
    return figure


def draw_first(rows: Rows, more: Mapping[str, Interval], equal: float, method: str, title: str) -> Figure:
    """Draw what C-Mixup does, on rows of a curve, and what it changes on real tables: the project's first picture.

    Args:
        rows: changes in percent of the other's error, by table.
        more: of the mean and of a new table, in the colour of the method.
        equal: the band within which an effect is neither a gain nor a loss, in percent.
        method: title of the method.
        title: of the right panel: its finding.
    """
    figure, ((left, right),) = new_subplots(1, 2, (10.4, 3.9))
    rng = np.random.default_rng(0)
    x = np.sort(3 * rng.random((60, 1), dtype=np.float32), axis=0)
    data = torch.from_numpy(x), torch.from_numpy(np.exp(x))
    left.plot(x, np.exp(x), ".", color="0.45", markersize=5, label="rows", zorder=3)
    for name, bandwidth in (("mixup", math.inf), ("C-Mixup", 1.0)):
        mixed = CMixup(bandwidth, alpha=1.0, seed=0)(*data)
        look = method_look(name) | {"markersize": 5, "alpha": 0.8, "linestyle": ""}
        left.plot(mixed[0][:, 0], mixed[1][:, 0], label=f"mixed by {name}", **look)
    left.set(xlabel="input", ylabel="label")
    left.set_title("mixup leaves the curve, C-Mixup stays on it", fontsize=11)
    left.legend(frameon=False, fontsize=9)
    order = [*sorted((own for own, _ in rows.values()), key=lambda own: own.mean), *more.values()]
    right.axvspan(-equal, equal, color="0.92", linewidth=0, zorder=0)
    right.axvline(0, color=COLOURS["erm"], linewidth=1)
    for k, own in enumerate(order):
        whole = k >= len(rows)
        place = k + 2 * (k - len(rows) + 1) * whole  # more room below the tables
        look = {"color": method_look(method)["color"], "linewidth": 2.2} if whole else {"color": "0.6", "linewidth": 1}
        ends = [[own.mean - own.low], [own.high - own.mean]]
        right.errorbar(own.mean, place, xerr=ends, markersize=6 if whole else 3, fmt="D" if whole else "o", **look)
        if whole:
            name = list(more)[k - len(rows)]
            name = f"for {name}" if name == NEW else name
            right.annotate(name, (own.high, place), (5, 0), textcoords="offset points", va="center", fontsize=9)
    right.text(-0.5 * equal, -2.4, f"within\n{equal:g} %", ha="center", va="center", fontsize=8, color="0.35")
    right.set_yticks([])
    right.set_ylim(len(order) + 2 * len(more) + 1, -4.5)
    right.set_ylabel(f"{len(rows)} tables, one row each")
    right.set_xlim(left=min(-1.4 * equal, right.get_xlim()[0]))
    right.set_xlabel(f"← better          worse →\n{method}'s error against training without mixing, %")
    right.set_title(title, fontsize=11)
    figure.tight_layout()
    return figure
