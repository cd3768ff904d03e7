"""Statistics of the study against SciPy's and by hand."""

import math

import numpy as np
import pytest

from scripts.effects.verdicts import against_erm, critical_difference, friedman_p, mean_ranks, sign_test, wilcoxon_p


def made(n_tables: int = 8, n_seeds: int = 10, shift: float = 0.0, seed: int = 0) -> dict:
    rng = np.random.default_rng(seed)
    found = {}
    for k in range(n_tables):
        base = rng.normal(0.5, 0.05, n_seeds)
        other = base + shift * (k + 1) + rng.normal(0, 0.01, n_seeds)
        found[f"t{k}"] = {"erm": dict(enumerate(base)), "cmixup": dict(enumerate(other))}
    return found


@pytest.mark.slow
def test_the_sign_test_is_scipys() -> None:
    from scipy.stats import binomtest

    for below in range(13):
        found = sign_test([-1.0] * below + [0.0] * 3 + [1.0] * (12 - below))
        assert found == (below, 12, pytest.approx(binomtest(below, 12).pvalue))


def test_the_sign_test_by_hand() -> None:
    assert sign_test([-1.0, -2.0, -0.1, 3.0]) == (3, 4, pytest.approx(2 * (1 + 4) / 16))
    assert sign_test([0.0, 0.0]) == (0, 0, 1.0)


@pytest.mark.slow
def test_the_critical_difference_is_demsars() -> None:
    """His Table 5 has 2.569 for 4 methods and 3.164 for 10; his example of 14 tables gives 1.25."""
    assert critical_difference(4, 14, 0.05) == pytest.approx(1.25, abs=0.005)
    assert critical_difference(10, 55 * 10, 0.05) / (110 / 3300) ** 0.5 == pytest.approx(3.164, abs=0.001)


@pytest.mark.slow
def test_ranks_and_friedman() -> None:
    from scipy.stats import f, friedmanchisquare

    rng = np.random.default_rng(1)
    values = rng.normal(size=(12, 4)) + np.array([0, 0.2, 0.9, 0.4])
    scores = {f"t{k}": {m: {0: v} for m, v in zip("abcd", row, strict=True)} for k, row in enumerate(values)}
    ranks, n = mean_ranks(scores, "abcd")
    assert n == 12
    assert sum(ranks.values()) == pytest.approx(10)
    chi = friedmanchisquare(*values.T).statistic
    expected = f.sf(11 * chi / (12 * 3 - chi), 3, 33)
    assert friedman_p(ranks, n) == pytest.approx(expected)
    tied, _ = mean_ranks({"t": {"a": {0: 1.0}, "b": {0: 1.0}, "c": {0: 0.5}}}, "abc")
    assert tied == {"a": 2.5, "b": 2.5, "c": 1.0}


def test_p_values_by_hand() -> None:
    """All of 5 on one side: 2 / 2^5; ranks that all agree."""
    assert wilcoxon_p([0.1, 0.2, 0.3, 0.4, 0.5]) == pytest.approx(2 / 32)
    assert wilcoxon_p([-0.1, 0.2, 0.3, 0.4, 0.5]) == pytest.approx(4 / 32)
    ranks, n = mean_ranks({f"t{k}": {"a": {0: 0.1}, "b": {0: 0.2}, "c": {0: 0.2}} for k in range(4)}, "abc")
    assert (ranks, n) == ({"a": 1.0, "b": 2.5, "c": 2.5}, 4)


def test_friedman_and_ties_by_hand() -> None:
    """Two methods on three tables, one of which is first twice: chi 1 / 3, F = 1 / 4 = t^2 with 2 degrees of freedom.

    Four equal differences, one of them below 0: ranks 2.5, variance 7.5 - (4^3 - 4) / 48 = 2.5^2, z = -0.8.
    """
    assert friedman_p({"a": 4 / 3, "b": 5 / 3}, 3) == pytest.approx(1 - 0.5 / 2.25**0.5)
    assert wilcoxon_p([1.0, 1.0, 1.0, -1.0]) == pytest.approx(math.erfc(0.8 / 2**0.5))
    assert wilcoxon_p([0.0, 0.0]) == 1.0
    n = 60  # too many to count: the sum of ranks on one side, 1 for the only negative difference, less continuity
    z = (n * (n + 1) / 4 - 1 - 0.5) / math.sqrt(n * (n + 1) * (2 * n + 1) / 24)
    assert wilcoxon_p([-0.1, *(0.1 * k for k in range(2, n + 1))]) == pytest.approx(math.erfc(z / 2**0.5), rel=1e-6)


def test_a_method_that_is_always_worse_differs_over_tables() -> None:
    assert against_erm(made(shift=0.02), ["erm", "cmixup"])["cmixup"] < 0.01
    assert against_erm(made(shift=0.0), ["erm", "cmixup"])["cmixup"] > 0.05


@pytest.mark.slow
def test_ranks_tests_and_the_critical_difference_are_autoranks() -> None:
    autorank = pytest.importorskip("autorank")
    pd = pytest.importorskip("pandas")
    values = np.random.default_rng(4).normal(size=(20, 4)) ** 3 + np.array([0, 0.1, 2.0, 0.4])
    scores = {f"t{k}": {m: {0: v} for m, v in zip("abcd", row, strict=True)} for k, row in enumerate(values)}
    ranks, n = mean_ranks(scores, "abcd")
    found = autorank.autorank(pd.DataFrame(values, columns=list("abcd")), order="ascending", approach="frequentist")
    assert found.omnibus == "friedman"
    assert ranks == pytest.approx(found.rankdf["meanrank"].to_dict())
    assert critical_difference(4, n, 0.05) == pytest.approx(found.cd, abs=2e-3)
