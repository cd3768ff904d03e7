"""What others found: their comparisons with numbers and sources, counted by one rule for all.

They are `results/study/elsewhere.yaml`, typed from public files: no run of this project.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from scripts.records.experiment import RESULTS
from scripts.records.stats import Interval, clustered_interval
from scripts.stats.effects import HIGHER, INCONCLUSIVE, LOWER

NUMBERS = RESULTS / "study" / "elsewhere.yaml"
FEWEST = 3  # controls that an interval is made of

Comparison = Mapping[str, Any]


def read_comparisons() -> list[Comparison]:
    """Return every comparison that is written down."""
    comparisons: list[Comparison] = yaml.safe_load(NUMBERS.read_text())
    return comparisons


def change_of(comparison: Comparison) -> Interval | None:
    """Return the change of the error in percent, the geometric mean over pairs, or None of too few controls.

    The 95 % t interval takes pairs as independent but for those that share their control. Where the source gives an
    interval of its own, of the difference of errors, that one stands in percent of the control.
    """
    pairs = comparison["pairs"]
    if "interval" in comparison:
        ((control, mixed),) = pairs
        low, high = (100 * value / control for value in comparison["interval"])
        return Interval(100 * (mixed / control - 1), low, high, 1)
    controls = [control for control, _ in pairs]
    ratios = [math.log(mixed / control) for control, mixed in pairs]
    if len(set(controls)) < FEWEST or (change := clustered_interval(ratios, controls)) is None:
        return None
    mean, low, high = (100 * math.expm1(value) for value in (change.mean, change.low, change.high))
    return Interval(mean, low, high, change.n)


def state_of(comparison: Comparison) -> str:
    """Return whether mixing has the lower or the higher error, or that this is inconclusive."""
    change = change_of(comparison)
    if change is None or change.low <= 0 <= change.high:
        return INCONCLUSIVE
    return LOWER if change.high < 0 else HIGHER


def counts_text(comparisons: Sequence[Comparison]) -> str:
    """Return how many comparisons there are and in how many the error is lower, pair by pair and by the rule."""
    pairs = [pair for comparison in comparisons for pair in comparison["pairs"]]
    states = [state_of(comparison) for comparison in comparisons]
    n = {state: states.count(state) for state in (LOWER, HIGHER, INCONCLUSIVE)}
    below = sum(mixed < control for control, mixed in pairs)
    return (
        f"In {below} of {len(pairs)} pairs mixing has the lower error. By the rule the error is lower in "
        f"{n[LOWER]}, higher in {n[HIGHER]} and inconclusive in {n[INCONCLUSIVE]} of "
        f"{len(comparisons)} comparisons."
    )
