"""What a method changes: the mean over tables with its direction, on how many it is lower, and its rank."""

import math
from collections.abc import Mapping

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binomtest, ttest_1samp

from scripts.stats.effects import Effect, corrected_interval, errors_of, method_effect, rank_methods, sign_text
from scripts.stats.intervals import HIGHER, INCONCLUSIVE, LOWER, Interval, interval_text

SIDES = {"one": -1.0, "two": -1.2, "three": -0.8, "four": -1.1}  # means that are surely below 0
MIXED = {"one": -3.0, "two": 2.0, "three": -2.0, "four": 1.0}  # and such that are not


def effect(means: Mapping[str, float]) -> Effect:
    return Effect({table: Interval(mean, mean - 9, mean + 9, 5) for table, mean in means.items()})


@pytest.mark.parametrize(
    ("means", "way"),
    [
        (SIDES, LOWER), ({name: -mean for name, mean in SIDES.items()}, HIGHER), (MIXED, INCONCLUSIVE),
        ({"one": -1.0}, INCONCLUSIVE), ({"one": 0.0, "two": 0.0}, INCONCLUSIVE),
    ],
)  # fmt: skip
def test_a_direction_needs_the_interval_of_the_mean_on_one_side(means: Mapping[str, float], way: str) -> None:
    assert effect(means).direction() == way
    if mean := effect(means).mean:
        theirs = ttest_1samp(list(means.values()), 0).confidence_interval()
        assert (mean.low, mean.high) == pytest.approx(theirs)


@pytest.mark.parametrize(("lower", "higher", "text"), [(6, 24, "0.0014"), (5, 5, "1"), (30, 0, "<0.001")])
def test_the_sign_test_is_that_of_the_binomial_and_leaves_equal_errors_out(lower: int, higher: int, text: str) -> None:
    signs = [-0.1] * lower + [5.0] * higher
    for means in (signs, [*signs, 0.0, 0.0]):
        result = effect({str(k): mean for k, mean in enumerate(means)})
        assert result.chance == pytest.approx(binomtest(lower, lower + higher).pvalue)
        assert sign_text(result) == f"{lower} of {len(means)} ({text})"
    assert effect({"one": 0.0}).chance == 1


def test_an_interval_of_a_table_is_wider_by_what_splits_share() -> None:
    values = [0.3, -0.2, 1.1, 0.8, 0.1]
    plain, ours = ttest_1samp(values, 0).confidence_interval(), corrected_interval(values, 1 / 3)
    assert (ours.mean, ours.n) == (pytest.approx(np.mean(values)), 5)
    half = (plain.high - plain.low) / 2 * math.sqrt((1 / 5 + 1 / 3) * 5)
    assert (ours.low, ours.high) == pytest.approx((ours.mean - half, ours.mean + half))
    assert corrected_interval([1.0, 1.0]) == Interval(1.0, 1.0, 1.0, 2)


def test_what_rounds_to_zero_has_no_sign() -> None:
    assert interval_text(Interval(-0.04, -0.06, 0.04, 3), 1) == "0.0 [-0.1, 0.0]"


def errors_by(values: dict[str, dict[str, dict[int, float]]]) -> pd.DataFrame:
    rows = [{"table": table, "method": method, "trial": None, "seed": 10 * split, "split": split, "test_nrmse": value}
            for table, methods in values.items() for method, splits in methods.items()
            for split, value in splits.items()]  # fmt: skip
    return errors_of(pd.DataFrame(rows), "test_nrmse", 2)


def test_differences_are_in_percent_of_the_other_on_splits_of_both() -> None:
    errors = errors_by({
        "a": {"erm": {0: 1.0, 1: 3.0, 2: 2.0}, "x": {1: 3.2, 0: 0.9}, "y": {0: 2.0, 1: 2.0}},
        "b": {"erm": {0: 1.0, 1: 1.0}, "x": {0: 2.0}}, "c": {"x": {0: 1.0, 1: 1.0}},
    })  # fmt: skip
    for base, relative, differences in (("erm", True, [-5.0, 10.0]), ("y", True, [-55.0, 60.0]),
                                        ("y", False, [-1.1, 1.2])):  # fmt: skip
        result = method_effect(errors, "x", base=base, relative=relative)
        assert result is not None
        expected, one = corrected_interval(differences), result.tables["a"]
        assert (list(result.tables), one.n) == (["a"], 2)
        assert (one.mean, one.low, one.high) == pytest.approx((expected.mean, expected.low, expected.high))
        assert result.mean is None
    assert method_effect(errors, "z") is None


def test_a_split_counts_once_by_its_first_two_weights_and_failed_ones_not_at_all() -> None:
    rows = pd.DataFrame([
        {"table": "t", "method": "erm", "trial": None, "seed": 10 * split + k, "split": split, "test_nrmse": value}
        for k, (split, value) in enumerate([(0, 1.0), (0, 3.0), (0, 99.0), (1, math.inf), (1, 1.0)], start=1)
    ])  # fmt: skip
    for runs in (rows, rows[::-1]):  # whichever finished first
        assert errors_of(runs, "test_nrmse", 2)["erm"].dropna().to_dict() == {("t", 0): 2.0}
        assert errors_of(runs, "test_nrmse", 1)["erm"].dropna().to_dict() == {("t", 0): 1.0}
    assert errors_of(rows, "test_nrmse_worst", 2).isna().all(axis=None)


def test_methods_are_ranked_on_the_tables_that_they_share() -> None:
    errors = errors_by({"a": {"x": {0: 1.0}, "y": {0: 2.0}, "z": {0: 0.5}}, "b": {"x": {0: 3.0}, "y": {0: 1.0}}})
    assert rank_methods(errors, "x") == [("y", 1.5), ("x", 2.0)]  # z lacks a table
    assert [name for name, _ in rank_methods(errors, "z")] == ["z", "x", "y"]
