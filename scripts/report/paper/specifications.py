"""Every specification that has C-Mixup and ERM with all else equal: does any reading of the paper give its gain?"""

import functools
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from scripts.config.compose import TUNED_PRESETS, tuned_values
from scripts.records import names
from scripts.records.run_tables import option_words
from scripts.report.evidence import Sample, published_evidence
from scripts.report.figures import BLUE, COLOURS, GREY, legend_below, new_subplots
from scripts.report.rendering import draws, fills
from scripts.report.result_table import markdown_table
from scripts.stats.intervals import HIGHER, LOWER, Interval, paired_or_none

DATASETS = {"airfoil": "table1", "no2": "table1", "crime": "table3", "skillcraft": "table3"}  # and their tables
METHODS = ("cmixup", "cmixup_batch")
#: Options that leave training as it is, or that change the labels and so the question.
IGNORED, OTHER_QUESTIONS = ("train.track",), ("dataset.label_noise",)
Options = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Specification:
    """One choice of all options: C-Mixup minus ERM with all else equal."""

    method: str
    preset: str
    layer: str
    options: dict[str, str]  # what differs from the preset, as text by key
    difference: Interval
    published: float  # the paper's difference


@functools.cache
def specifications(dataset: str) -> list[Specification]:
    """Return all of a dataset; where several experiments trained the same one, that with the most seeds."""
    e = published_evidence()
    erm: dict[tuple[str, Options], list[tuple[str, Sample]]] = {}
    for cell, sample in e.cells(dataset=dataset, method="erm"):
        erm.setdefault((cell["preset"], _options(cell)), []).append((cell["experiment"], sample))
    ours, base = (e.paper(DATASETS[dataset], dataset, method) for method in ("cmixup", "erm"))
    published = ours.mean - base.mean
    specs: dict[tuple[str, str, str, Options], Specification] = {}
    for method in METHODS:
        for cell, sample in e.cells(dataset=dataset, method=method):
            options = _options(cell)
            shared = tuple(one for one in options if not one[0].startswith("method."))
            if any(key in OTHER_QUESTIONS for key, _ in options) or not _tuned_alike(dataset, method, cell["preset"]):
                continue
            rivals = erm.get((cell["preset"], shared), [])
            differences = [paired_or_none(sample.values, other.values) for _, other in rivals]
            best = max(filter(None, differences), key=lambda d: d.n, default=None)
            key = method, cell["preset"], cell["layer"], options
            if best and (key not in specs or best.n > specs[key].difference.n):
                specs[key] = Specification(method, cell["preset"], cell["layer"], dict(options), best, published)
    return list(specs.values())


def _tuned_alike(dataset: str, method: str, preset: str) -> bool:
    """Return whether a preset trains a method and ERM alike: tuned ones may have rates of each."""
    both = [(preset in TUNED_PRESETS and tuned_values(dataset, one, preset)) or {} for one in (method, "erm")]
    mine, other = ({key: v for key, v in values.items() if not key.startswith("method.")} for values in both)
    return mine == other


def _options(cell: dict[str, str]) -> Options:
    return tuple((key, value) for key, value in option_words(cell["options"]).items() if key not in IGNORED)


#: Options whose change is a choice, and its words.
CHOICES = {
    "method.bandwidth": "another bandwidth", "method.alpha": "another alpha",
    "method.lam_per": "lambda per batch or row", "train.label_scaling": "labels scaled",
    "train.epochs": "other epochs", "train.lr": "another rate",
    "train.shuffle": "another order of rows", "dataset.scaling": "other scaling of features",
}  # fmt: skip


def choices_of(specs: Sequence[Specification]) -> dict[str, list[bool]]:
    """Return which of some specifications make each choice; choices that all or none make are left out."""
    presets = dict.fromkeys(spec.preset for spec in specs)
    choices = {f"preset {name}": [spec.preset == name for spec in specs] for name in presets}
    choices["mixes inputs"] = [spec.layer == "input" for spec in specs]
    choices["partners within the batch"] = [spec.method == "cmixup_batch" for spec in specs]
    choices |= {title: [key in spec.options for spec in specs] for key, title in CHOICES.items()}
    return {title: flags for title, flags in choices.items() if 0 < sum(flags) < len(flags)}


@fills
def specification_counts() -> dict[str, dict[str, str]]:
    """Return the table of specifications in which C-Mixup is better, worse, and may be as much better as published."""
    body = []
    for dataset in DATASETS:
        specs = specifications(dataset)
        below, above = (sum(spec.difference.side == side for spec in specs) for side in (LOWER, HIGHER))
        reached = sum(spec.difference.low <= spec.published for spec in specs)
        body.append([names.dataset_title(dataset), *map(str, (len(specs), below, above, reached))])
    head = ("C-Mixup against ERM", "settings", "C-Mixup better", "ERM better", "interval reaches the paper's gain")
    return {"results/README.md": {"specifications": markdown_table(head, body)}}


@draws
def specification_picture() -> dict[str, Figure]:
    """Return the specification curves: sorted differences from ERM with intervals, and which choice each is."""
    figure, axes = new_subplots(2, len(DATASETS), (3.1 * len(DATASETS), 6.4), sharex="col",
                                gridspec_kw={"height_ratios": [1, 1.6]})  # fmt: skip
    for (top, strip), dataset in zip(axes.T, DATASETS, strict=True):
        specs = sorted(specifications(dataset), key=lambda spec: spec.difference.mean)
        for place, spec in enumerate(specs):
            d = spec.difference
            colour = {LOWER: COLOURS["cmixup"], HIGHER: BLUE}.get(d.side, GREY)
            top.plot([place, place], [d.low, d.high], color=colour, linewidth=1)
            top.plot(place, d.mean, ".", color=colour, markersize=4)
        top.axhline(0, color="black", linewidth=0.8)
        top.axhline(specs[0].published, color="black", linestyle="--", linewidth=0.8)
        ends = np.quantile([end for spec in specs for end in (spec.difference.low, spec.difference.high)], [0.02, 0.98])
        low = min(ends[0], specs[0].published)
        top.set_ylim(low - 0.1 * (ends[1] - low), ends[1] + 0.1 * (ends[1] - low))
        top.set_title(f"{names.dataset_title(dataset)}, {len(specs)} settings", fontsize=10)
        choices = choices_of(specs)
        for row, holds in enumerate(choices.values()):
            places = [k for k, held in enumerate(holds) if held]
            strip.plot(places, [row] * len(places), "|", color="black", markersize=4)
        strip.set_yticks(range(len(choices)), list(choices), fontsize=7)
        strip.set_ylim(len(choices) - 0.5, -0.5)
        strip.set_xticks([])
    axes[0][0].set_ylabel("C-Mixup minus ERM, RMSE")
    colours = {"C-Mixup is better": COLOURS["cmixup"], "ERM is better": BLUE, "the interval holds 0": GREY}
    handles = {title: Line2D([], [], color=colour) for title, colour in colours.items()}
    legend_below(figure, {**handles, "the paper's difference": Line2D([], [], color="black", linestyle="--")})
    return {"figures/specifications.png": figure}
