"""The three verdicts by intervals: planted effects come out as they were planted, and intervals are those of scipy."""

import math

import numpy as np
import pytest
from scipy import stats

from scripts.report.verdicts import EQUIVALENT, INCOMPATIBLE, SAME, UNKNOWN, equivalence_verdict, gain_verdict
from scripts.stats.intervals import Difference, Summary, of_interval, paired_or_none, unpaired_difference

PAPER = unpaired_difference(Summary(2.717, 0.067, 3), Summary(2.901, 0.067, 3))  # C-Mixup and ERM of Table 1 on Airfoil


def effect(mean: float, error: float, df: float = 9) -> Difference:
    return Difference(mean, ((error**2, df),))


def test_ours_minus_the_papers_has_the_degrees_of_freedom_of_all_three_terms():
    ours = effect(0.119, 0.0805)
    both = ours.minus(PAPER)
    terms = [(0.0805**2, 9), (0.067**2 / 3, 2), (0.067**2 / 3, 2)]
    freedom = sum(v for v, _ in terms) ** 2 / sum(v**2 / df for v, df in terms)
    half = stats.t(freedom).ppf(0.975) * math.sqrt(sum(v for v, _ in terms))
    assert both.ends() == pytest.approx((0.303 - half, 0.303 + half))
    assert 12 < freedom < 14
    unknown = unpaired_difference(Summary(1, 0.3, 9), Summary(2, math.nan, 3))  # a spread that is not printed is none
    assert unknown.parts == ((0.3**2 / 9, 8),)
    assert unpaired_difference(Summary(0.1, math.nan, 3), Summary(0.2, math.nan, 3)).ends() == pytest.approx(
        (-0.1, -0.1)
    )


@pytest.mark.parametrize(
    ("mean", "error", "paper", "lower", "verdict"),
    [
        (-0.2, 0.05, PAPER, True, SAME),  # the paper's effect, seen
        (-0.05, 0.01, PAPER, True, SAME),  # smaller than the paper's, and on its side
        (0.2, 0.05, None, False, SAME),
        (0.0, 0.01, PAPER, True, INCOMPATIBLE),  # no effect, and the paper's is excluded
        (0.2, 0.05, PAPER, True, INCOMPATIBLE),
        (0.2, 0.05, None, True, INCOMPATIBLE),  # the other side, without a number
        (-0.05, 0.1, PAPER, True, UNKNOWN),  # 0 and the paper's effect in one interval
        (0.0, 10.0, PAPER, True, UNKNOWN),  # so wide that it says nothing
        (0.0, 0.001, None, True, UNKNOWN),  # narrow around 0, but nothing printed to differ from
    ],
)
def test_planted_effects_of_a_gain(mean, error, paper, lower, verdict):
    assert gain_verdict(effect(mean, error), paper, lower=lower) == verdict


@pytest.mark.parametrize(
    ("mean", "error", "paper", "verdict"),
    [
        (0.0, 0.02, Difference(0.01), EQUIVALENT),  # 1.833 x 0.02 lies within 0.092
        (0.06, 0.02, Difference(0.06), UNKNOWN),  # 0.06 + 0.037 does not
        (0.0, 10.0, Difference(0.0), UNKNOWN),  # width alone is no equivalence
        (0.15, 0.02, Difference(0.01), INCOMPATIBLE),
        (0.15, 0.02, None, INCOMPATIBLE),
        (0.15, 0.02, Difference(0.15), UNKNOWN),  # what the paper has, which is not equivalent
    ],
)
def test_planted_effects_of_equivalence(mean, error, paper, verdict):
    assert equivalence_verdict(effect(mean, error), paper, 0.092) == verdict
    assert equivalence_verdict(effect(-mean, error), paper and Difference(-paper.mean), 0.092) == verdict


def test_equivalence_is_two_one_sided_tests_of_five_percent():
    """At the margin where the larger of both p values is 0.05 the verdict turns."""
    values = np.random.default_rng(2).normal(0.1, 1, 10)
    ours = of_interval(paired_or_none(dict(enumerate(values)), dict.fromkeys(range(10), 0.0)))
    edge = abs(values.mean()) + stats.t(9).ppf(0.95) * stats.sem(values)
    p = max(stats.ttest_1samp(values, s * edge, alternative=a).pvalue for s, a in ((1, "less"), (-1, "greater")))
    assert p == pytest.approx(0.05)
    assert equivalence_verdict(ours, Difference(values.mean()), edge * 1.001) == EQUIVALENT
    assert equivalence_verdict(ours, Difference(values.mean()), edge * 0.999) == UNKNOWN
