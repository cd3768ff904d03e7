"""Figures of sweeps; what is drawn is computed apart from the drawing, so that it can be tested as numbers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import FormatStrFormatter, LogLocator

from scripts.records import names
from scripts.records.register import draws
from scripts.records.stats import Interval
from scripts.report.figures import legend_below
from scripts.report.shown import published_sweeps
from scripts.report.sweep import Point, Sweep, interval, number, shown

#: The doctor's verdicts from ERM to mixup, with the colours of their strips.
SHADES = {
    "self-pairing only: this is ERM": "#969696", "equal labels only": "#9e9ac8", "local": "#74c476",
    "moderately local": "#fed976", "close to mixup": "#fd8d3c", "indistinguishable from mixup": "#e31a1c",
}  # fmt: skip
LINES = ("black", "C3", "C1", "C4", "C5", "C6", "C8", "C9")  # of the other methods; the swept one is C0


@dataclass(frozen=True)
class Panel:
    """What one panel shows.

    Attributes:
        x: ascending values, or places 0, 1, ... where they are no finite numbers.
        ticks: their labels then; empty for numbers.
        log: whether the axis is logarithmic.
        scores: mean and 95 % t interval over seeds of each value.
        lines: the same of every other method, by title.
        fractions: effective-partner fraction of each value; empty where they are all the same or not known.
        bands: left end, right end and verdict of ranges with one verdict; ranges meet in the (geometric) middle of two
            values.
        marks: values that are marked, by what they are.
    """

    x: list[float]
    ticks: list[str]
    log: bool
    scores: list[Interval]
    lines: dict[str, Interval]
    fractions: list[float]
    bands: list[tuple[float, float, str]]
    marks: dict[str, float] = field(default_factory=dict)


def panel(points: Sequence[Point], lines: dict[str, dict[int, float]] | None = None) -> Panel:
    """Return what a panel of these points and lines (scores by seed) shows."""
    values = [number(p.value) for p in points]
    numeric = all(v is not None and math.isfinite(v) for v in values)
    x = [float(v) for v in values if v is not None] if numeric else [float(k) for k in range(len(points))]
    log = numeric and x[0] > 0 and x[-1] >= 10 * x[0]
    fractions = [p.fraction for p in points]
    varies = not any(map(math.isnan, fractions)) and max(fractions) - min(fractions) > 0.02
    return Panel(
        x, [] if numeric else [shown(p.value) for p in points], log, [p.interval for p in points],
        {name: interval(scores) for name, scores in (lines or {}).items()}, fractions if varies else [],
        _bands(x, [p.verdict for p in points], log) if varies else [],
    )  # fmt: skip


def _bands(x: Sequence[float], verdicts: Sequence[str], log: bool) -> list[tuple[float, float, str]]:
    middles = [math.sqrt(a * b) if log else (a + b) / 2 for a, b in itertools.pairwise(x)]
    edges = [x[0], *middles, x[-1]]
    bands: list[tuple[float, float, str]] = []
    for left, right, verdict in zip(edges[:-1], edges[1:], verdicts, strict=True):
        begins = bands.pop()[0] if bands and bands[-1][2] == verdict else left
        bands.append((begins, right, verdict))
    return bands


def draw_panels(panels: dict[str, Panel], xlabel: str, ylabel: str, label: str) -> Figure:
    """Draw panels, by title; `label` is what the swept line is called."""
    across = len(panels) if len(panels) < 4 else 2
    down = math.ceil(len(panels) / across)
    figure = Figure(figsize=(5.6 * across, 1.0 + 3.4 * down))
    axes = figure.subplots(down, across, squeeze=False).flatten()
    for unused in axes[len(panels) :]:
        unused.set_axis_off()
    others = dict(zip(dict.fromkeys(name for p in panels.values() for name in p.lines), LINES, strict=False))
    lines: dict[str, Any] = {}
    strips: dict[str, Any] = {}
    for axis, (title, shows) in zip(axes, panels.items(), strict=False):
        for left, right, verdict in shows.bands:
            # A strip above the panel, where nothing else is drawn.
            strips[verdict] = axis.axvspan(left, right, 1.01, 1.05, color=SHADES.get(verdict, "white"), linewidth=0,
                                           clip_on=False, label=verdict)  # fmt: skip
        mean, low, high = (np.array([getattr(s, part) for s in shows.scores]) for part in ("mean", "low", "high"))
        if shows.ticks:
            lines[label] = axis.errorbar(shows.x, mean, yerr=(mean - low, high - mean), fmt="o", color="C0", capsize=4,
                                         label=label)  # fmt: skip
            axis.set_xticks(shows.x, shows.ticks, rotation=30, ha="right")
        else:
            axis.fill_between(shows.x, low, high, color="C0", alpha=0.25, linewidth=0)
            (lines[label],) = axis.plot(shows.x, mean, "o-", color="C0", markersize=4, label=label)
        for name, level in shows.lines.items():
            lines[name] = axis.axhline(level.mean, color=others[name], linestyle="--", linewidth=1.4, label=name)
            axis.axhspan(level.low, level.high, color=others[name], alpha=0.1, linewidth=0)
        for style, (name, at) in zip(itertools.cycle((":", "-.")), shows.marks.items(), strict=False):
            lines[name] = axis.axvline(at, color="grey", linestyle=style, linewidth=1.5, label=name)
        if shows.fractions:
            other = axis.twinx()
            (lines["effective partners"],) = other.plot(shows.x, shows.fractions, ":", color="black", linewidth=1.2)
            other.set_ylim(0, 1.02)
            other.set_ylabel("effective partners / N")
        if shows.log:
            _log(axis, shows.x)
        axis.set_title(title, fontsize=11, pad=14 if shows.bands else None)
        axis.set_xlabel(xlabel)
        axis.set_ylabel(ylabel)
        axis.grid(alpha=0.3)
    lines |= {verdict: strips[verdict] for verdict in sorted(strips, key=[*SHADES, *strips].index)}
    if len(lines) > 1:
        legend_below(figure, lines)
    else:
        figure.tight_layout()
    return figure


def _log(axis: Any, x: Sequence[float]) -> None:
    """Make an axis logarithmic; one of fewer than two decades has numbers between the powers of ten, too."""
    axis.set_xscale("log")
    if x[-1] < 100 * x[0]:
        axis.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.xaxis.set_major_formatter(FormatStrFormatter("%g"))
        axis.minorticks_off()


def draw_sweeps(sweeps: Sequence[Sweep], method: str) -> Figure:
    """Draw a panel a dataset: score over the option with its 95 % t band, the other methods as lines with theirs."""
    panels = {s.title: panel(s.points, {names.method_title(m): v for m, v in s.lines.items()}) for s in sweeps}
    (option,) = {s.option.rpartition(".")[2] for s in sweeps}
    units = ", in units of the label" if option == "bandwidth" else ""
    return draw_panels(panels, f"{option}{units}", f"test {names.metric_title(sweeps[0].metric)}, 95 % t band",
                       names.method_title(method))  # fmt: skip


@draws("results/runs", "results/paper")
def sweep_figures() -> dict[str, Figure]:
    """Return the figure of every sweep and preset that is published."""
    return {
        f"figures/{experiment.name}_{preset}.png": draw_sweeps(swept, experiment.sweep["method"])
        for experiment, preset, swept in published_sweeps()
    }
