"""Figures of sweeps: paired differences from ERM over an option, or scores where no run of ERM belongs to them.

What is drawn is computed apart from the drawing, so that it can be tested as numbers.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FormatStrFormatter, LogLocator

from scripts.plan.selection import swept_option
from scripts.records import names
from scripts.records.rescored import table_runs
from scripts.report.ablation import find_sweeps, published_ablations
from scripts.report.figures import COLOURS, legend_below, method_looks, new_subplots
from scripts.report.rendering import draws
from scripts.report.sweep import ERM, Point, Sweep, option_number, seed_interval, value_text
from scripts.stats.intervals import Interval, paired_or_none

FEWEST_SEEDS, FEWEST_VALUES = 5, 4  # a published sweep with fewer has a table and no figure


@dataclass(frozen=True)
class Panel:
    """What one panel shows: scores, or paired differences from ERM's."""

    x: list[float]  # ascending values, or places 0, 1, ... where they are no finite numbers
    ticks: list[str]  # their labels then; empty for numbers
    scores: list[Interval]  # of each value the mean and 95 % t interval over seeds
    lines: dict[str, float]  # means of every other method, by name
    paired: bool = False

    @property
    def log(self) -> bool:
        """Whether the axis is logarithmic."""
        return not self.ticks and self.x[0] > 0 and self.x[-1] >= 10 * self.x[0]


def make_panel(points: Sequence[Point], lines: Mapping[str, Mapping[int, float]]) -> Panel:
    """Return what a panel shows of points and of other methods' scores by seed, by name.

    With scores of ERM among them, and of two seeds or more, everything is a paired difference from these.
    """
    values = [number for p in points if (number := option_number(p.value)) is not None and math.isfinite(number)]
    numeric = len(values) == len(points)
    x = values if numeric else [float(k) for k in range(len(points))]
    ticks = [] if numeric else [value_text(p.value) for p in points]
    erm = lines.get(ERM, {})
    paired = [pair for p in points if (pair := paired_or_none(p.scores, erm))]
    if len(paired) < len(points):
        means = {name: seed_interval(scores).mean for name, scores in lines.items() if scores}
        return Panel(x, ticks, [p.interval for p in points], means)
    gaps = {name: pair.mean for name, scores in lines.items() if name != ERM and (pair := paired_or_none(scores, erm))}
    return Panel(x, ticks, paired, gaps, paired=True)


def draw_sweeps(sweeps: Sequence[Sweep], method: str) -> Figure:
    """Draw a panel a sweep over one option, with its title, and `method`, the swept one, in its colour."""
    option = sweeps[0].option.rpartition(".")[2]
    xlabel = f"{option}, in units of the label" if option == "bandwidth" else option
    n_columns = len(sweeps) if len(sweeps) < 4 else 2
    n_rows = math.ceil(len(sweeps) / n_columns)
    figure, axes = new_subplots(n_rows, n_columns, (5.6 * n_columns, 1.0 + 3.2 * n_rows))
    for unused in axes.flat[len(sweeps) :]:
        unused.set_axis_off()
    looks, handles = method_looks([method, *(name for sweep in sweeps for name in sweep.lines)]), dict[str, Any]()
    for axis, sweep in zip(axes.flat, sweeps, strict=False):
        panel, score = make_panel(sweep.points, sweep.lines), f"test {names.metric_title(sweep.metric)}"
        handles |= _draw_panel(axis, panel, method, {name: look["color"] for name, look in looks.items()})
        axis.set_title(sweep.title.replace("$", r"\$"), fontsize=10)
        axis.set(xlabel=xlabel, ylabel=f"{score} minus ERM's" if panel.paired else f"{score}, 95 % t band")
    if len(handles) > 1:
        legend_below(figure, handles)
    else:
        figure.tight_layout()
    return figure


def _draw_panel(axis: Any, panel: Panel, method: str, colours: Mapping[str, str]) -> dict[str, Any]:
    """Draw one panel, and return what its legend shows."""
    colour, handles, minus = colours[method], dict[str, Any](), " minus ERM" if panel.paired else ""
    if panel.paired:
        handles["ERM"] = axis.axhline(0, color=COLOURS[ERM], linewidth=1, label="ERM")
    mean, low, high = (np.array([getattr(s, part) for s in panel.scores]) for part in ("mean", "low", "high"))
    name = f"{names.method_title(method)}{minus and f'{minus}, paired over seeds'}"
    if panel.ticks:
        handles[name] = axis.errorbar(panel.x, mean, yerr=(mean - low, high - mean), fmt="o", color=colour, capsize=4)
        axis.set_xticks(panel.x, panel.ticks, rotation=30, ha="right")
    else:
        axis.fill_between(panel.x, low, high, color=colour, alpha=0.2, linewidth=0)
        (handles[name],) = axis.plot(panel.x, mean, "o-", color=colour, markersize=5, markerfacecolor="white")
    excludes_zero = (low > 0) | (high < 0)
    if panel.paired and excludes_zero.any():
        (handles["95 % interval excludes 0 (uncorrected)"],) = axis.plot(
            np.array(panel.x)[excludes_zero], mean[excludes_zero], "o", color=colour, markersize=7
        )
    for rival, level in panel.lines.items():
        line = axis.axhline(level, color=colours[rival], linestyle="--", linewidth=1.4)
        handles[f"{names.method_title(rival)}{minus}"] = line
    if panel.log:
        axis.set_xscale("log")
    if panel.log and panel.x[-1] < 100 * panel.x[0]:  # fewer than two decades: numbers between the powers of ten, too
        axis.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.xaxis.set_major_formatter(FormatStrFormatter("%g"))
        axis.minorticks_off()
    axis.grid(alpha=0.3)
    return handles


@draws
def sweep_figures() -> dict[str, Figure]:
    """Return the figure of every sweep and preset that is published with values and seeds enough."""
    return {
        f"figures/{experiment.name}_{preset}.png": draw_sweeps(swept, swept_option(experiment)[0])
        for experiment, preset in published_ablations()
        if (swept := find_sweeps(experiment, table_runs(), preset))
        and all(len(s.points) >= FEWEST_VALUES and len(p.scores) >= FEWEST_SEEDS for s in swept for p in s.points)
    }
