"""Pictures of three seeds' results, of every choice of options, and of the order of rows."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from scripts.records import names
from scripts.report.figures import BLUE, COLOURS, GREY, ORANGE, legend_below, new_subplots
from scripts.report.paper.shuffling import METHODS, METRICS, ORDERS, gains, order_sample
from scripts.report.paper.specifications import DATASETS, choices_of, specifications
from scripts.report.paper.statements import PAPER, published_statements, triple_differences
from scripts.report.rendering import draws
from scripts.stats.intervals import HIGHER, LOWER, summarise_values

PRESETS = {
    "paper": ("printed hyperparameters; dot: all seeds, 95 %", BLUE),
    "released": ("the authors' code's; dot: all seeds, 95 %", ORANGE),
}


@draws
def triples_picture() -> dict[str, Figure]:
    """Return the distribution of the difference over three seeds a method, unpaired as the paper's."""
    rows = [one for one in published_statements() if one.network == PAPER and one.established]
    places = list(dict.fromkeys(one.name for one in rows))
    figure, axes = new_subplots(1, len(places), (3.1 * len(places), 3.1))
    for axis, place in zip(axes[0], places, strict=True):
        for k, one in enumerate(one for one in rows if one.name == place):
            label, colour = PRESETS[one.preset]
            assert one.ours
            values = triple_differences(*one.samples, paired=False)
            axis.hist(values, bins=80, histtype="step", density=True, color=colour, label=label)
            ours, height = one.ours, -0.05 * (k + 1)
            axis.errorbar(ours.mean, height, xerr=ours.bar, fmt="o", color=colour, markersize=4,
                          transform=axis.get_xaxis_transform(), clip_on=False)  # fmt: skip
            if not k:
                axis.axvline(one.paper.mean, color="black", linestyle="--", label="the paper's difference")
        axis.axvline(0, color=GREY, linewidth=0.8)
        axis.set(title=place, yticks=[])
        axis.tick_params(axis="x", pad=14)
    axes[0][0].set_ylabel("C-Mixup minus ERM,\nmeans of three runs", fontsize=9)
    legend_below(figure)
    return {"figures/three_seeds.png": figure}


@draws
def specification_picture() -> dict[str, Figure]:
    """Return the specification curves: sorted differences from ERM with intervals, and which choice each is."""
    figure, axes = new_subplots(2, len(DATASETS), (3.1 * len(DATASETS), 6.4), sharex="col",
                                gridspec_kw={"height_ratios": [1, 1.6]})  # fmt: skip
    for (top, strip), dataset in zip(axes.T, DATASETS, strict=True):
        every = sorted(specifications(dataset), key=lambda one: one.difference.mean)
        for place, one in enumerate(every):
            d = one.difference
            colour = {LOWER: COLOURS["cmixup"], HIGHER: BLUE}.get(d.side, GREY)
            top.plot([place, place], [d.low, d.high], color=colour, linewidth=1)
            top.plot(place, d.mean, ".", color=colour, markersize=4)
        top.axhline(0, color="black", linewidth=0.8)
        top.axhline(every[0].published, color="black", linestyle="--", linewidth=0.8)
        ends = np.quantile([end for one in every for end in (one.difference.low, one.difference.high)], [0.02, 0.98])
        low = min(ends[0], every[0].published)
        top.set_ylim(low - 0.1 * (ends[1] - low), ends[1] + 0.1 * (ends[1] - low))
        top.set_title(f"{names.dataset_title(dataset)}, {len(every)} settings", fontsize=10)
        choices = choices_of(every)
        for row, holds in enumerate(choices.values()):
            at = [k for k, held in enumerate(holds) if held]
            strip.plot(at, [row] * len(at), "|", color="black", markersize=4)
        strip.set_yticks(range(len(choices)), list(choices), fontsize=7)
        strip.set_ylim(len(choices) - 0.5, -0.5)
        strip.set_xticks([])
    axes[0][0].set_ylabel("C-Mixup minus ERM, RMSE")
    colours = {"C-Mixup is better": COLOURS["cmixup"], "ERM is better": BLUE, "the interval holds 0": GREY}
    handles = {title: Line2D([], [], color=colour) for title, colour in colours.items()}
    legend_below(figure, {**handles, "the paper's difference": Line2D([], [], color="black", linestyle="--")})
    return {"figures/specifications.png": figure}


@draws
def shuffling_picture() -> dict[str, Figure]:
    """Return each method's error with rows in one order and reshuffled, a panel a dataset and score."""
    panels = [(d, m) for d, metrics in METRICS.items() for m in metrics if gains(d, m)]
    figure, axes = new_subplots(1, len(panels), (2.9 * len(panels), 3.2))
    for axis, (dataset, metric) in zip(axes[0], panels, strict=True):
        for k, method in enumerate(METHODS):
            samples = [order_sample(dataset, order, method, metric) for order in ORDERS]
            values = [summarise_values(list(one.values.values())) for one in samples if one]
            if len(values) < len(ORDERS):
                continue
            x, error = [place + 0.03 * (k - 1.5) for place in range(2)], [1.96 * v.std / v.n**0.5 for v in values]
            axis.errorbar(x, [v.mean for v in values], yerr=error, marker="o", markersize=4, color=COLOURS[method],
                          label=names.method_title(method))  # fmt: skip
        worst = ", worst domain" * metric.startswith("worst")
        axis.set_title(f"{names.dataset_title(dataset)}{worst}", fontsize=10)
        axis.set_xticks(range(2), ["one order", "reshuffled"])
        axis.set_xlim(-0.25, 1.25)
    axes[0][0].set_ylabel("test RMSE, 95 % intervals")
    handles, labels = axes[0][0].get_legend_handles_labels()
    legend_below(figure, dict(zip(labels, [h[0] for h in handles], strict=True)))
    return {"figures/shuffling.png": figure}
