"""Direction and magnitude by intervals: planted effects come out as they were planted."""

import math

import pytest
from scipy import stats

from scripts.report.paper.verdicts import (
    COMPATIBLE,
    LARGER,
    OPPOSITE,
    SAME,
    SMALLER,
    UNKNOWN,
    Finding,
    judge_gain,
)
from scripts.stats.intervals import Difference, Summary, unpaired_difference

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
    ("mean", "error", "paper", "judged", "outcome"),
    [
        (-0.2, 0.03, PAPER, (SAME, COMPATIBLE), "reproduces"),  # the paper's effect, seen
        (-0.02, 0.005, PAPER, (SAME, SMALLER), "same direction, smaller"),
        (-0.6, 0.05, PAPER, (SAME, LARGER), "same direction, larger"),
        (-0.1, 0.04, PAPER, (SAME, UNKNOWN), "same direction, size inconclusive"),
        (0.2, 0.05, PAPER, (OPPOSITE, SMALLER), "opposite direction"),
        (0.0, 0.01, PAPER, (UNKNOWN, SMALLER), "direction inconclusive, smaller"),  # none, and not the paper's
        (-0.05, 0.1, PAPER, (UNKNOWN, UNKNOWN), "inconclusive"),  # 0 and the paper's effect in one interval
        (0.0, 10.0, PAPER, (UNKNOWN, UNKNOWN), "inconclusive"),  # so wide that it says nothing
    ],
)
def test_planted_effects_of_a_gain(mean, error, paper, judged, outcome):
    for sign, other in ((1, paper), (-1, paper and Difference(-paper.mean, paper.parts))):  # either score, mirrored
        assert judge_gain(effect(sign * mean, error), other, lower=sign > 0) == judged
    assert Finding("x", *judged).outcome == outcome
