"""The parts of the page results/theory.md that come from numbers, and its figures; its prose stands in the page.

Figures show what is measured over N, p and C-Mixup's bandwidth, mean and 95 % interval over seeds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from scripts.claims.prose import splice_page
from scripts.records.experiment import RESULTS
from scripts.records.register import draws, writes
from scripts.records.tables import interval_text, markdown_rows, mean_text
from scripts.report.figures import legend_below
from scripts.report.palette import COLOURS, GREEN, GREY, SKY
from scripts.report.sweep import seed_interval
from scripts.theory.numbers import (
    BASE,
    COMPARED,
    QUANTITIES,
    THIRD,
    Numbers,
    Quantity,
    Setting,
    base_setting,
    method_title,
    methods_of,
    noisy_settings,
    read_numbers,
    standing_word,
    swept_settings,
)

PAGE = "theory.md"
#: Colour and marker of each method.
LOOKS = {
    "erm": (COLOURS["erm"], "o"), "mixup": (COLOURS["mixup"], "s"), "feature_1": (GREEN, "v"),
    "feature_0.1": (SKY, "^"), "cmixup": (COLOURS["cmixup"], "D"), "erm_one_domain": (GREY, "P"),
}  # fmt: skip
#: What a theorem's figure shows, a row each: the first of its quantities.
LABELS = {
    1: ("test MSE, estimated θ", "test MSE, true θ"),
    2: ("MSE on new tasks, estimated θ", "MSE on new tasks, true θ"),
    3: ("MSE in the test domain", "‖θ\N{COMBINING CIRCUMFLEX ACCENT} - θ‖²", "rows with their true partner"),
}


def median_text(values: Mapping[int, float]) -> str:
    """Return the median over seeds, or a dash."""
    return f"{np.median(list(values.values())):.2g}" if values else "—"


def errors_of(theorem: int) -> tuple[Quantity, ...]:
    """Return the errors that a theorem orders."""
    return QUANTITIES[theorem][:2]


def short_word(theorem: int, q: Quantity) -> str:
    """Return the word by which a row of a table tells the errors of a theorem apart."""
    return q.theta if theorem != 3 else "MSE" if q.metric == "mse" else q.title


def base_table(numbers: Numbers, theorem: int) -> list[str]:
    """Return the table of all methods at the base."""
    body = [
        [
            method_title(theorem, m),
            *(mean_text(numbers.values(base_setting(theorem), m, *q[:2])) for q in QUANTITIES[theorem]),
        ]
        for m in (*methods_of(theorem), *(("exact",) if theorem == 3 else ()))
    ]
    return markdown_rows(["method", *(q.title for q in QUANTITIES[theorem])], body)


def ordering_rows(theorem: int) -> list[tuple[Quantity, Setting]]:
    """Return every stated ordering over N and p, by p / N, and over Theorem 3's noise."""
    by_ratio = sorted(
        [base_setting(theorem), *(at for name in "Np" for at in swept_settings(theorem, name) if at.name == name)],
        key=lambda at: at.simulation.p / at.simulation.n,
    )
    return [
        (q, at)
        for q in errors_of(theorem)
        for at in [*by_ratio, *(noisy_settings() if theorem == 3 else [])]
        if (theorem, q.theta, at.name) != (2, "true", "N")  # with true theta the training tasks are not used
    ]


def compared_cells(numbers: Numbers, at: Setting, q: Quantity) -> list[str]:
    """Return the last cells of a row: the differences from all that C-Mixup is compared with, and the verdict."""
    found = numbers.differences(at, q.metric, q.theta)
    return [short_word(at.theorem, q), *(interval_text(found.get(m)) for m in COMPARED), standing_word(found)]


def compared_head(theorem: int) -> list[str]:
    """Return the heads of these cells."""
    minus = [f"minus {method_title(theorem, m)}" for m in COMPARED]
    return ["of" if theorem == 3 else "theta", *minus, "C-Mixup lowest"]


def ordering_table(numbers: Numbers, theorem: int) -> list[str]:
    """Return the paired differences over N and p with the verdicts."""
    head = ["changed", "N", "p", "p / N", *(["noise", "gap"] if theorem == 3 else []), *compared_head(theorem)]
    body = []
    for q, at in ordering_rows(theorem):
        n, p, changed = at.simulation.n, at.simulation.p, at.name.partition(" ")[0]
        line = [changed, str(n), str(p), f"{p / n:.3g}"]
        if theorem == 3:
            noise = at.name.removeprefix("noise ") if changed == "noise" else f"{THIRD.noise:g}"
            line += [noise, median_text(numbers.values(at, "", "gap"))]
        body.append([*line, *compared_cells(numbers, at, q)])
    return markdown_rows(head, body)


def bandwidth_table(numbers: Numbers, theorem: int) -> list[str]:
    """Return the paired differences over C-Mixup's bandwidth with the verdicts."""
    rate = QUANTITIES[theorem][-1]
    bound = ["bandwidth / bound"] if theorem == 3 else []
    body = []
    for q in errors_of(theorem):
        for at in swept_settings(theorem, "bandwidth"):
            share = numbers.values(at, "cmixup", rate.metric)
            over = [median_text(numbers.values(at, "cmixup", "bandwidth_over_bound")) for _ in bound]
            mean = f"{np.mean(list(share.values())):.3f}" if share else "—"
            body.append([f"{at.simulation.bandwidth:.3g}", *over, mean, *compared_cells(numbers, at, q)])
    return markdown_rows(["bandwidth", *bound, rate.title, *compared_head(theorem)], body)


def theory_parts(numbers: Numbers) -> dict[str, str]:
    """Return the content of every place of the page."""
    found = {"seeds": str(len(numbers.values(base_setting(1), "cmixup", "mse", "true")))}
    for part in (base_table, ordering_table, bandwidth_table):
        found |= {f"{part.__name__}_{theorem}": "\n".join(part(numbers, theorem)) for theorem in BASE}
    return found


@writes("results/theory.*")
def render_theory(results: Path = RESULTS) -> dict[str, str]:
    """Return the page with the numbers of `results/theory.csv`, by its path below results/; nothing without numbers.

    Where `results` has no page yet, the prose is that of the project's own.
    """
    numbers = read_numbers(results)
    page = results / PAGE if (results / PAGE).is_file() else RESULTS / PAGE
    return {PAGE: splice_page(page.read_text(), theory_parts(numbers))} if numbers else {}


def axis_points(numbers: Numbers, theorem: int, axis: str, method: str, q: Quantity) -> dict[float, dict[int, float]]:
    """Return the values by seed at every place of an axis: "N", "p" or "bandwidth" (C-Mixup's alone)."""
    found = {
        float(getattr(at.simulation, axis.lower())): numbers.values(at, method, q.metric, q.theta)
        for at in swept_settings(theorem, axis)
    }
    return {place: values for place, values in found.items() if values}


def theorem_figure(numbers: Numbers, theorem: int) -> Figure:
    """Draw a theorem's figure: a row a quantity, columns over N, p and the bandwidth."""
    labels = LABELS[theorem]
    drawn = Figure(figsize=(13, 3.3 * len(labels)))
    rows = drawn.subplots(len(labels), 3, squeeze=False)
    for axes, label, q in zip(rows, labels, QUANTITIES[theorem], strict=False):
        for axis, name in zip(axes, ("N", "p", "bandwidth"), strict=True):
            if q.metric == "pairing_rate" and name != "bandwidth":  # the same at every N and p
                axis.set_axis_off()
                continue
            if name != "bandwidth":
                axis.set_xscale("log")
            for method in methods_of(theorem):
                _draw_line(axis, numbers, (theorem, name), method, q)
            axis.set_xlabel(_axis_label(theorem, name))
            axis.set_ylabel(label)
            axis.grid(alpha=0.3)
            if q.metric != "pairing_rate":
                axis.set_ylim(bottom=0)
    handles, methods = drawn.axes[0].get_legend_handles_labels()
    drawn.suptitle(
        f"Theorem {theorem} orders C-Mixup below mixup and the feature kernels; it says nothing of ERM. "
        "Mean and 95 % t interval over seeds", fontsize=11,
    )  # fmt: skip
    legend_below(drawn, dict(zip(methods, handles, strict=True)))
    return drawn


def _draw_line(axis: Any, numbers: Numbers, where: tuple[int, str], method: str, q: Quantity) -> None:
    """Draw a method's line; over the bandwidth, whose values stand side by side, all but C-Mixup are levels."""
    theorem, name = where
    (colour, marker), shown = LOOKS[method], method_title(theorem, method)
    if name == "bandwidth" and method != "cmixup":
        level = numbers.values(base_setting(theorem), method, q.metric, q.theta)
        if level:
            axis.axhline(seed_interval(level).mean, color=colour, linestyle="--", linewidth=1.2, label=shown)
        return
    found = axis_points(numbers, theorem, name, method, q)
    if not found:
        return
    means = [seed_interval(values) for values in found.values()]
    x = list(range(len(found))) if name == "bandwidth" else list(found)
    axis.errorbar(x, [m.mean for m in means], yerr=[m.high - m.mean for m in means], color=colour, marker=marker,
                  markersize=5, capsize=3, label=shown, clip_on=False)  # fmt: skip
    axis.set_xticks(x, ["inf" if at == math.inf else f"{at:.3g}" if at < 1 else f"{at:g}" for at in found], fontsize=8)
    axis.minorticks_off()


def _axis_label(theorem: int, name: str) -> str:
    if name == "bandwidth":
        return "C-Mixup's bandwidth" + (" / median nearest other label" if theorem == 3 else " (label units)")
    if name == "N":
        return {1: "N", 2: "rows of all training tasks", 3: "n, rows of a domain"}[theorem]
    return "p = p1 + p2" if theorem == 3 else "p"


@draws("results/theory.csv")
def theory_figures(results: Path = RESULTS) -> dict[str, Figure]:
    """Return a figure a theorem from `results/theory.csv`, by its path below `results`; none without it."""
    numbers = read_numbers(results)
    return {f"figures/theory_{theorem}.png": theorem_figure(numbers, theorem) for theorem in BASE} if numbers else {}
