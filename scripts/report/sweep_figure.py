"""Figures of sweeps: paired differences from ERM over an option, or scores where no run of ERM belongs to them.

What is drawn is computed apart from the drawing, so that it can be tested as numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FormatStrFormatter, LogLocator

from scripts.records import names
from scripts.report.figures import COLOURS, legend_below, method_look
from scripts.report.register import draws
from scripts.report.sweep import Point, Sweep, option_number, seed_interval, value_text
from scripts.report.tables import published_sweeps
from scripts.stats.intervals import Interval, paired_or_none

ERM, ERM_TITLE = "erm", "ERM"
MOST_NAMED = 3  # values that a title names
FEWEST_SEEDS, FEWEST_VALUES = 5, 4  # a published sweep with fewer has a table and no figure


@dataclass(frozen=True)
class Panel:
    """What one panel shows.

    Attributes:
        x: ascending values, or places 0, 1, ... where they are no finite numbers.
        ticks: their labels then; empty for numbers.
        log: whether the axis is logarithmic.
        scores: of each value the mean and 95 % t interval over seeds, of paired differences where there is a base.
        lines: means of every other method, less the base's where there is one, by title.
        base: title of the method from which differences are taken, or "".
        finding: at which values the interval excludes 0, in words; "" without a base.
    """

    x: list[float]
    ticks: list[str]
    log: bool
    scores: list[Interval]
    lines: dict[str, float]
    base: str = ""
    finding: str = ""


def make_panel(points: Sequence[Point], lines: Mapping[str, Mapping[int, float]] | None = None) -> Panel:
    """Return what a panel shows of points and of other methods' scores by seed, by title.

    With scores of ERM among them, and of two seeds or more, everything is a paired difference from these.
    """
    values = [option_number(p.value) for p in points]
    numeric = all(v is not None and math.isfinite(v) for v in values)
    x = [float(v) for v in values if v is not None] if numeric else [float(k) for k in range(len(points))]
    log = numeric and x[0] > 0 and x[-1] >= 10 * x[0]
    others = {name: scores for name, scores in (lines or {}).items() if scores}
    erm = others.get(ERM_TITLE, {})
    differences = [paired_or_none(p.scores, erm) for p in points]
    ticks = [] if numeric else [value_text(p.value) for p in points]
    if not all(differences):
        means = {name: seed_interval(scores).mean for name, scores in others.items()}
        return Panel(x, ticks, log, [p.interval for p in points], means)
    paired = [pair for pair in differences if pair]
    pairs = {name: paired_or_none(scores, erm) for name, scores in others.items() if name != ERM_TITLE}
    less = {name: pair.mean for name, pair in pairs.items() if pair}
    return Panel(x, ticks, log, paired, less, ERM_TITLE, finding_words([p.value for p in points], paired))


def finding_words(values: Sequence[Any], differences: Sequence[Interval]) -> str:
    """Return at which values of an option a difference's interval excludes 0, in words."""
    parts = []
    for word, outside in (
        ("lower", [v for v, d in zip(values, differences, strict=True) if d.high < 0]),
        ("higher", [v for v, d in zip(values, differences, strict=True) if d.low > 0]),
    ):
        if outside:
            some = (
                ", ".join(map(value_text, outside))
                if len(outside) <= MOST_NAMED
                else f"{len(outside)} of {len(values)}"
            )
            parts.append(f"{word} at {some}")
    return "; ".join(parts) or f"no clear difference at any of {len(values)}"


def draw_panels(panels: Mapping[str, Panel], xlabel: str, score: str, label: str) -> Figure:
    """Draw panels, by title.

    Args:
        panels: by title, which their finding follows.
        xlabel: of every panel.
        score: what is measured, such as "test RMSE".
        label: title of the swept method, which gives its colour.
    """
    across = len(panels) if len(panels) < 4 else 2
    down = math.ceil(len(panels) / across)
    figure = Figure(figsize=(5.6 * across, 1.0 + 3.2 * down))
    axes = figure.subplots(down, across, squeeze=False).flatten()
    for unused in axes[len(panels) :]:
        unused.set_axis_off()
    handles: dict[str, Any] = {}
    for axis, (title, shows) in zip(axes, panels.items(), strict=False):
        handles |= _draw_panel(axis, shows, label)
        axis.set_title(f"{title}: {shows.finding}" if shows.finding else title, fontsize=10)
        axis.set_xlabel(xlabel)
        axis.set_ylabel(f"{score} minus {shows.base}'s" if shows.base else f"{score}, 95 % t band")
    if len(handles) > 1:
        legend_below(figure, handles)
    else:
        figure.tight_layout()
    return figure


def _draw_panel(axis: Any, shows: Panel, label: str) -> dict[str, Any]:
    """Draw one panel, and return what its legend shows."""
    colour, handles = method_look(label)["color"], dict[str, Any]()
    if shows.base:
        handles[shows.base] = axis.axhline(0, color=COLOURS[ERM], linewidth=1, label=shows.base)
    mean, low, high = (np.array([getattr(s, part) for s in shows.scores]) for part in ("mean", "low", "high"))
    name = f"{label} minus {shows.base}, paired over seeds" if shows.base else label
    if shows.ticks:
        handles[name] = axis.errorbar(shows.x, mean, yerr=(mean - low, high - mean), fmt="o", color=colour, capsize=4,
                                      label=name)  # fmt: skip
        axis.set_xticks(shows.x, shows.ticks, rotation=30, ha="right")
    else:
        axis.fill_between(shows.x, low, high, color=colour, alpha=0.2, linewidth=0)
        (handles[name],) = axis.plot(shows.x, mean, "o-", color=colour, markersize=5, markerfacecolor="white",
                                     label=name)  # fmt: skip
    apart = (low > 0) | (high < 0)
    if shows.base and apart.any():
        sure = "95 % interval excludes 0 (uncorrected)"
        (handles[sure],) = axis.plot(np.array(shows.x)[apart], mean[apart], "o", color=colour, markersize=7, label=sure)
    for other, level in shows.lines.items():
        whole = f"{other} minus {shows.base}" if shows.base else other
        handles[whole] = axis.axhline(level, color=method_look(other)["color"], linestyle="--", linewidth=1.4,
                                      label=whole)  # fmt: skip
    if shows.log:
        _log_axis(axis, shows.x)
    axis.grid(alpha=0.3)
    return handles


def _log_axis(axis: Any, x: Sequence[float]) -> None:
    """Make an axis logarithmic; one of fewer than two decades has numbers between the powers of ten, too."""
    axis.set_xscale("log")
    if x[-1] < 100 * x[0]:
        axis.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.xaxis.set_major_formatter(FormatStrFormatter("%g"))
        axis.minorticks_off()


def sweep_panels(sweeps: Sequence[Sweep]) -> dict[str, Panel]:
    """Return a panel for each sweep, by its title."""
    return {s.title: make_panel(s.points, {names.method_title(m): v for m, v in s.lines.items()}) for s in sweeps}


def draw_sweeps(sweeps: Sequence[Sweep], method: str) -> Figure:
    """Draw a panel a dataset: the method's score less ERM's over the option, with its paired 95 % t interval."""
    (option,) = {s.option.rpartition(".")[2] for s in sweeps}
    units = ", in units of the label" if option == "bandwidth" else ""
    return draw_panels(sweep_panels(sweeps), f"{option}{units}", f"test {names.metric_title(sweeps[0].metric)}",
                       names.method_title(method))  # fmt: skip


def is_drawn(sweeps: Sequence[Sweep]) -> bool:
    """Return whether a published sweep has values and seeds enough for a figure."""
    return all(len(s.points) >= FEWEST_VALUES and min(len(p.scores) for p in s.points) >= FEWEST_SEEDS for s in sweeps)


@draws
def sweep_figures() -> dict[str, Figure]:
    """Return the figure of every sweep and preset that is published with values and seeds enough."""
    return {
        f"figures/{experiment.name}_{preset}.png": draw_sweeps(swept, experiment.sweep["method"])
        for experiment, preset, swept in published_sweeps()
        if is_drawn(swept)
    }
