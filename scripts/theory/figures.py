"""Figures of the simulations: what is measured over N, p and C-Mixup's bandwidth, mean and 95 % interval over seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from scripts.records.experiment import RESULTS
from scripts.records.stats import clustered
from scripts.report.figures import legend_below
from scripts.theory.numbers import BANDWIDTHS, BASE, FEATURES, SIZES, Numbers, read
from scripts.theory.simulations import METHODS
from scripts.theory.texts import names_of

TITLES = {
    "erm": "ERM", "mixup": "mixup", "feature_1": "feature kernel, f = 1", "feature_0.1": "feature kernel, f = 0.1",
    "cmixup": "C-Mixup", "erm_one_domain": "ERM, first domain", "exact": "exact pairing",
}  # fmt: skip
COLOURS = {
    "erm": "grey", "mixup": "C0", "feature_1": "C2", "feature_0.1": "C1", "cmixup": "C3", "erm_one_domain": "black",
}  # fmt: skip
MARKS = {"erm": "s", "mixup": "^", "feature_1": "v", "feature_0.1": "d", "cmixup": "o", "erm_one_domain": "P"}
#: Rows of a theorem's figure: metric, theta, label.
PANELS = {
    1: (("mse", "estimated", "test MSE, estimated theta"), ("mse", "true", "test MSE, true theta")),
    2: (("mse", "estimated", "MSE on new tasks, estimated theta"), ("mse", "true", "MSE on new tasks, true theta")),
    3: (
        ("mse", "estimated", "MSE in the test domain"),
        ("theta_error", "estimated", "||theta_hat - theta||²"),
        ("pairing_rate", "", "rows with their true partner"),
    ),
}


def methods_of(theorem: int) -> tuple[str, ...]:
    """Return the methods that are drawn: Theorem 3 has ERM on one domain, too."""
    return (*METHODS, "erm_one_domain") if theorem == 3 else METHODS


def points(
    numbers: Numbers, theorem: int, axis: str, method: str, quantity: tuple[str, str]
) -> dict[float, dict[int, float]]:
    """Return the values by seed at every place of an axis: "N", "p" or "bandwidth" (C-Mixup's alone).

    `quantity` is the metric and theta.
    """
    metric, theta = quantity
    base, given = numbers.base(theorem), BASE[theorem]
    places: dict[float, tuple[tuple[str, int, int], float | None]]
    if axis == "bandwidth":
        places = {b: (("bandwidth", given.n, given.p), b) for b in BANDWIDTHS[theorem]}
        places[given.bandwidth] = base, None
    elif axis == "N":
        places = {n: (("N", n, given.p), None) for n in SIZES[theorem]}
        places[given.n] = base, None
    else:
        places = {p: (("p", given.n, p), None) for p in FEATURES[theorem]}
        places[given.p] = base, None
    found = {
        at: numbers.values(theorem, place, method, metric, theta=theta, bandwidth=b)
        for at, (place, b) in places.items()
    }
    return {at: found[at] for at in sorted(found) if found[at]}


def interval(values: Mapping[int, float]) -> tuple[float, float]:
    """Return the mean and half the width of its 95 % t interval over seeds, 0 for one seed."""
    found = clustered(list(values.values()), list(values))
    mean = float(np.mean(list(values.values())))
    return mean, (found.high - found.mean if found else 0.0)


def figure(numbers: Numbers, theorem: int) -> Figure:
    """Draw a theorem's figure: a row a quantity, columns over N, p and the bandwidth."""
    panels = PANELS[theorem]
    drawn = Figure(figsize=(13, 3.3 * len(panels)))
    for axes, (metric, theta, label) in zip(drawn.subplots(len(panels), 3, squeeze=False), panels, strict=True):
        for axis, name in zip(axes, ("N", "p", "bandwidth"), strict=True):
            if name != "bandwidth":
                axis.set_xscale("log")
            for method in methods_of(theorem):
                _line(axis, numbers, (theorem, name), method, (metric, theta))
            axis.set_xlabel(_xlabel(theorem, name))
            axis.set_ylabel(label)
            axis.grid(alpha=0.3)
            if metric != "pairing_rate":
                axis.set_ylim(bottom=0)
    handles, labels = drawn.axes[0].get_legend_handles_labels()
    drawn.suptitle(f"Theorem {theorem}: mean and 95 % t interval over seeds", fontsize=11)
    legend_below(drawn, dict(zip(labels, handles, strict=True)))
    return drawn


def _line(axis: Any, numbers: Numbers, where: tuple[int, str], method: str, quantity: tuple[str, str]) -> None:
    """Draw a method's line; over the bandwidth, whose values stand side by side, all but C-Mixup are levels."""
    (theorem, name), (metric, theta) = where, quantity
    colour, title = COLOURS[method], names_of(theorem).get(method, TITLES[method])
    if name == "bandwidth" and method != "cmixup":
        level = numbers.values(theorem, numbers.base(theorem), method, metric, theta=theta)
        if level:
            axis.axhline(interval(level)[0], color=colour, linestyle="--", linewidth=1.2, label=title)
        return
    found = points(numbers, theorem, name, method, quantity)
    if not found:
        return
    means = [interval(values) for values in found.values()]
    x = list(range(len(found))) if name == "bandwidth" else list(found)
    axis.errorbar(x, [m for m, _ in means], yerr=[h for _, h in means], color=colour, marker=MARKS[method],
                  markersize=5, capsize=3, label=title, clip_on=False)  # fmt: skip
    axis.set_xticks(x, ["inf" if at == math.inf else f"{at:.3g}" if at < 1 else f"{at:g}" for at in found], fontsize=8)
    axis.minorticks_off()


def _xlabel(theorem: int, name: str) -> str:
    if name == "bandwidth":
        return "C-Mixup's bandwidth" + (" / median nearest other label" if theorem == 3 else " (label units)")
    if name == "N":
        return {1: "N", 2: "rows of all training tasks", 3: "n, rows of a domain"}[theorem]
    return "p = p1 + p2" if theorem == 3 else "p"


def figures(results: Path = RESULTS) -> dict[str, Figure]:
    """Return a figure a theorem from `results/theory.csv`, by its path below `results`; none without it."""
    numbers = read(results)
    return {f"figures/theory_{theorem}.png": figure(numbers, theorem) for theorem in BASE} if numbers else {}
