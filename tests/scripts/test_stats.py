"""Summaries and paired intervals against values worked out by hand."""

import math

import numpy as np
import pytest

from cmixup.errors import InputError
from scripts.stats.intervals import (
    Interval,
    Summary,
    clustered_interval,
    paired_or_none,
    summarise_values,
    welch_interval,
)


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_value_that_is_not_finite_leaves_no_mean(bad: float) -> None:
    summary = summarise_values([1.0, bad, 3.0])
    assert np.isnan([summary.mean, summary.std]).all()
    interval = paired_or_none({0: 1.0, 1: bad}, {0: 2.0, 1: 3.0})
    assert interval is not None
    assert np.isnan([interval.mean, interval.low, interval.high]).all()


def test_summary_uses_n_minus_one():
    summary = summarise_values([1.0, 2.0, 4.0])
    assert summary.mean == pytest.approx(7 / 3)
    assert summary.std == pytest.approx(math.sqrt(((4 / 3) ** 2 + (1 / 3) ** 2 + (5 / 3) ** 2) / 2))
    assert summary.n == 3
    assert math.isnan(summarise_values([1.0]).std)
    with pytest.raises(InputError, match="values"):
        summarise_values([])


def test_clustered_interval_by_hand():
    interval = clustered_interval([1.0, 3.0, 2.0, 6.0], ["a", "a", "b", "c"])
    # Mean 3; sums about it -2, -1, 3: sqrt(3 / 2 * 14) / 4 = 1.145644; t(0.975, 2) = 4.302653.
    assert (interval.mean, interval.n) == (3.0, 3)
    assert interval.low == pytest.approx(3 - 4.302653 * 1.145644, abs=1e-5)
    assert interval.high == pytest.approx(3 + 4.302653 * 1.145644, abs=1e-5)


def test_clusters_must_fit_and_be_several():
    assert clustered_interval([1.0, 2.0], "aa") is None
    with pytest.raises(InputError, match="clusters must name one for each of 2 values, got 1"):
        clustered_interval([1.0, 2.0], "a")


def test_intervals_are_scipys() -> None:
    from scipy.stats import ttest_ind, ttest_rel

    first, second = np.random.default_rng(0).normal([[1.0], [0.5]], [[1.0], [2.0]], size=(2, 9))
    interval = paired_or_none(dict(enumerate(first)), dict(enumerate(second)))
    theirs = ttest_rel(first, second).confidence_interval()
    assert interval is not None
    assert (interval.low, interval.high) == pytest.approx((theirs.low, theirs.high))
    assert paired_or_none({0: 1.0, 1: 2.0}, {1: 3.0}) is None
    few = second[:5]
    free = welch_interval(summarise_values(first.tolist()), summarise_values(few.tolist()))
    theirs = ttest_ind(first, few, equal_var=False).confidence_interval()
    assert free is not None
    assert (free.low, free.high, free.n) == pytest.approx((theirs.low, theirs.high, 5))
    assert welch_interval(Summary(5.0, math.nan, 1), Summary(3.0, 0.6, 4)) is None
    assert welch_interval(Summary(5.0, 0.0, 4), Summary(5.0, 0.0, 4)).low == 0.0  # type: ignore[union-attr]


def test_power_is_the_share_of_intervals_that_exclude_zero() -> None:
    means = np.random.default_rng(0).normal(0.3, 0.1, 20_000)
    share = (means - 0.196 > 0).mean()
    assert Interval(0.1, -0.096, 0.296, 100_000).power(-0.3) == pytest.approx(share, abs=0.005)
