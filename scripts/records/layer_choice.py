"""Methods with an input and a hidden form: the one that is better on validation enters the table."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from cmixup.metrics import metric_of

Report = Mapping[str, Any]
LAYER = "method.layer"
VARIANTS = "_variants"  # ends the experiment of runs at the layer that was not chosen


def choose_variants(reports: Sequence[Report]) -> list[dict[str, Any]]:
    """Keep, of runs that differ in their layer alone, the layer with the best mean validation score on shared seeds.

    The others are recorded as `<experiment>_variants`. The layer has a column of its own, so it is no longer listed
    among the options that differ.

    Args:
        reports: reports of runs; where no seed has all variants, all seeds count.
    """
    groups: dict[tuple, dict[str, list[Report]]] = defaultdict(lambda: defaultdict(list))
    for report in reports:
        groups[_cell_key(report)][report["layer"]].append(report)
    chosen = []
    for variants in groups.values():
        best = _best_layer(variants)
        for layer, members in variants.items():
            suffix = "" if layer == best else VARIANTS
            for report in members:
                options = {key: value for key, value in report["options"].items() if key != LAYER}
                chosen.append({**report, "experiment": report["experiment"] + suffix, "options": options})
    return sorted(chosen, key=lambda report: str(report["run"]))


def _cell_key(report: Report) -> tuple:
    options = tuple(sorted((k, str(v)) for k, v in report["options"].items() if k != LAYER))
    return (report["experiment"], report["dataset"], report["model"], report["method"], report["preset"], options)


def validation_score(report: Report) -> float:
    """Return the validation score that a run's checkpoint was selected by."""
    return float(report["scores"]["val"][report["selection"]])


def _best_layer(variants: Mapping[str, Sequence[Report]]) -> str:
    shared = set.intersection(*({report["seed"] for report in members} for members in variants.values()))
    means = {
        layer: statistics.fmean(validation_score(r) for r in members if r["seed"] in shared or not shared)
        for layer, members in variants.items()
    }
    lower = metric_of(next(iter(variants.values()))[0]["selection"]).lower_is_better
    return min(means, key=lambda layer: means[layer] if lower else -means[layer])
