"""Summaries and paired intervals against values worked out by hand."""

import math

import pytest

from cmixup.errors import InputError
from scripts.records.stats import clustered, paired, summarise


@pytest.mark.parametrize("bad", [math.nan, math.inf])
def test_a_value_that_is_not_finite_leaves_no_mean(bad: float) -> None:
    found = summarise([1.0, bad, 3.0])
    assert math.isnan(found.mean)
    assert math.isnan(found.std)
    assert found.n == 3
    interval = paired({0: 1.0, 1: bad}, {0: 2.0, 1: 3.0})
    assert interval is not None
    assert math.isnan(interval.mean)
    assert math.isnan(interval.low)
    assert math.isnan(interval.high)


def test_summary_uses_n_minus_one():
    found = summarise([1.0, 2.0, 4.0])
    assert found.mean == pytest.approx(7 / 3)
    assert found.std == pytest.approx(math.sqrt(((4 / 3) ** 2 + (1 / 3) ** 2 + (5 / 3) ** 2) / 2))
    assert found.n == 3
    assert math.isnan(summarise([1.0]).std)
    with pytest.raises(InputError, match="values"):
        summarise([])


def test_paired_interval_takes_shared_seeds_only():
    first = {0: 1.0, 1: 3.0, 2: 5.0, 9: 100.0}
    second = {0: 0.5, 1: 2.0, 2: 3.5, 8: -100.0}
    found = paired(first, second)
    # Differences 0.5, 1.0, 1.5: mean 1, std 0.5; t(0.975, 2) = 4.302653.
    half = 4.302653 * 0.5 / math.sqrt(3)
    assert (found.mean, found.n) == (1.0, 3)
    assert found.low == pytest.approx(1 - half, abs=1e-5)
    assert found.high == pytest.approx(1 + half, abs=1e-5)


def test_paired_interval_needs_two_seeds():
    assert paired({0: 1.0, 1: 2.0}, {1: 3.0}) is None


def test_clustered_interval_by_hand():
    found = clustered([1.0, 3.0, 2.0, 6.0], ["a", "a", "b", "c"])
    # Mean 3; sums about it -2, -1, 3: sqrt(3 / 2 * 14) / 4 = 1.145644; t(0.975, 2) = 4.302653.
    assert (found.mean, found.n) == (3.0, 3)
    assert found.low == pytest.approx(3 - 4.302653 * 1.145644, abs=1e-5)
    assert found.high == pytest.approx(3 + 4.302653 * 1.145644, abs=1e-5)


def test_copies_of_a_value_in_its_cluster_narrow_nothing():
    once = clustered([1.0, 2.0, 4.0], "abc")
    many = clustered([1.0, 2.0, 4.0] * 5, "abc" * 5)
    assert (many.low, many.high) == pytest.approx((once.low, once.high))
    assert once == paired({0: 1.0, 1: 2.0, 2: 4.0}, {0: 0.0, 1: 0.0, 2: 0.0})


def test_clusters_must_fit_and_be_several():
    assert clustered([1.0, 2.0], "aa") is None
    with pytest.raises(InputError, match="clusters must name one for each of 2 values, got 1"):
        clustered([1.0, 2.0], "a")
