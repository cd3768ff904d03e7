"""What is concluded of a method: the direction of its mean effect, the size of its effect on each table, its rank."""

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd
import pytest

from scripts.stats.effects import (
    EQUIVALENT,
    HIGHER,
    IMPROVES,
    INCONCLUSIVE,
    LOWER,
    VERDICTS,
    WORSENS,
    Effect,
    errors_of,
    method_effect,
    percent_differences,
    rank_methods,
)
from scripts.stats.hierarchical import Marginal, Posterior

SPLITS = range(5)
SIDES = {"one": -1.0, "two": -1.2, "three": -0.8, "four": -1.1}  # means that are surely below 0
MIXED = {"one": -3.0, "two": 2.0, "three": -2.0, "four": 1.0}  # and such that are not


def made(shift: float, spread: float = 0.0, seed: int = 0, base: float = 0.5) -> dict[str, dict[int, float]]:
    rng = np.random.default_rng(seed)
    erm = {s: base + 0.1 * s for s in SPLITS}
    return {"erm": erm, "mixup": {s: erm[s] + shift + spread * float(rng.normal()) for s in SPLITS}}


def estimate(mean: float = 0.0, gain: float = 0.0, within: float = 1.0) -> Marginal:
    return Marginal(mean, mean - 1, mean + 1, gain, within, round(1 - gain - within, 9))


def effect(mean: float, means: Mapping[str, float], tables: Mapping[str, Marginal] | None = None) -> Effect:
    """Return an effect whose mean is, by the model, within 1 of this one."""
    every = tables or dict.fromkeys(means, estimate())
    return Effect(Posterior(estimate(mean), every, estimate()), means, 0.95)


def negative(means: Mapping[str, float]) -> dict[str, float]:
    return {table: -mean for table, mean in means.items()}


@pytest.mark.parametrize(
    ("mean", "means", "way"),
    [
        (-1.1, SIDES, LOWER), (1.1, negative(SIDES), HIGHER), (-0.9, SIDES, INCONCLUSIVE),
        (0.9, negative(SIDES), INCONCLUSIVE), (-2.0, MIXED, INCONCLUSIVE), (-2.0, negative(SIDES), INCONCLUSIVE),
        (2.0, SIDES, INCONCLUSIVE), (-1.1, {"one": -1.0}, LOWER), (-1.1, {"one": -1.0, "two": -1.0}, LOWER),
        (0.0, {"one": 0.0, "two": 0.0}, INCONCLUSIVE),
    ],
)  # fmt: skip
def test_a_direction_needs_both_intervals_on_one_side(mean: float, means: Mapping[str, float], way: str) -> None:
    assert effect(mean, means).direction() == way


def test_a_size_needs_the_probability() -> None:
    for gain, within, verdict in (
        (0.95, 0.05, IMPROVES), (0.94, 0.06, INCONCLUSIVE), (0.0, 0.05, WORSENS), (0.0, 0.06, INCONCLUSIVE),
        (0.05, 0.95, EQUIVALENT), (0.06, 0.94, INCONCLUSIVE),
    ):  # fmt: skip
        assert effect(0.5, {"t": 0.0}, {"t": estimate(0.5, gain, within)}).tables["t"][1] == verdict


@pytest.mark.parametrize(
    ("shift", "spread", "verdict", "way"),
    [
        (-0.05, 0.002, IMPROVES, LOWER), (0.05, 0.002, WORSENS, HIGHER), (0.0, 0.0005, EQUIVALENT, INCONCLUSIVE),
        (0.005, 0.05, INCONCLUSIVE, INCONCLUSIVE), (0.0, 0.0, EQUIVALENT, INCONCLUSIVE), (-0.05, 0.0, IMPROVES, LOWER),
    ],
)  # fmt: skip
def test_tables_that_agree_have_each_verdict(shift: float, spread: float, verdict: str, way: str) -> None:
    result = method_effect({f"t{k}": made(shift, spread, seed=k) for k in range(5)}, "mixup", 0.05, 1.0)
    assert result is not None
    assert result.counts() == {word: 5 * (word == verdict) for word in VERDICTS}
    assert result.direction() == way


def test_differences_are_in_percent_of_the_other_on_splits_of_both() -> None:
    errors = {
        "a": {"erm": {0: 1.0, 1: 3.0, 2: 2.0}, "x": {1: 3.2, 0: 0.9}, "y": {0: 2.0, 1: 2.0}},
        "b": {"erm": {0: 1.0, 1: 1.0}, "x": {0: 2.0}}, "c": {"x": {0: 1.0, 1: 1.0}},
    }  # fmt: skip
    assert percent_differences(errors, "x") == {"a": {0: pytest.approx(-5.0), 1: pytest.approx(10.0)}}
    assert percent_differences(errors, "x", "y") == {"a": {0: pytest.approx(-55.0), 1: pytest.approx(60.0)}}
    assert method_effect(errors, "z", 0.05, 1.0) is None
    result = method_effect(errors, "x", 0.05, 1.0)
    assert result is not None
    assert result.means == {"a": pytest.approx(2.5)}
    assert result.unweighted is None


def test_a_split_counts_once_by_its_first_two_weights_and_failed_ones_not_at_all() -> None:
    rows = pd.DataFrame([
        {"table": "t", "method": "erm", "trial": None, "seed": 10 * split + k, "split": split, "test_nrmse": value}
        for k, (split, value) in enumerate([(0, 1.0), (0, 3.0), (0, 99.0), (1, math.inf), (1, 1.0)], start=1)
    ])  # fmt: skip
    for runs in (rows, rows[::-1]):  # whichever finished first
        assert errors_of(runs) == {"t": {"erm": {0: 2.0}}}
        assert errors_of(runs, weights=1) == {"t": {"erm": {0: 1.0}}}
    assert errors_of(rows, "test_nrmse_worst") == {}


def test_methods_are_ranked_on_the_tables_that_they_share() -> None:
    errors = {"a": {"x": {0: 1.0}, "y": {0: 2.0}, "z": {0: 0.5}}, "b": {"x": {0: 3.0}, "y": {0: 1.0}}}
    assert rank_methods(errors, "x") == [("y", 1.5), ("x", 2.0)]  # z lacks a table
    assert [name for name, _ in rank_methods(errors, "z")] == ["z", "x", "y"]
