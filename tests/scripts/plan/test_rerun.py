"""Which cells differ by more than noise, of seeds made by hand."""

import math

import numpy as np
import pytest
from scipy import stats

from scripts.plan.rerun import Paired, beyond_noise

PUBLISHED = [2.0, 2.2, 1.9, 2.1, 2.05, 1.95, 2.15, 1.85, 2.12, 1.98]  # mean 2.03


def again(shift: float = 0.0, spread: float = 0.0, n: int = 10, seed: int = 0) -> Paired:
    """Seeds found again, whose differences have exactly this mean and standard deviation."""
    noise = np.random.default_rng(seed).normal(size=n)
    noise = (noise - noise.mean()) / noise.std(ddof=1) if spread else np.zeros(n)
    return Paired([(p, p + shift + spread * float(e)) for p, e in zip(PUBLISHED[:n], noise, strict=True)])


def test_the_p_value_is_scipys() -> None:
    cell = again(0.01, 0.02)
    published, retrained = zip(*cell.pairs, strict=True)
    assert cell.p == pytest.approx(stats.ttest_rel(retrained, published).pvalue)
    assert cell.difference.error == pytest.approx(0.02 / math.sqrt(10))


@pytest.mark.parametrize(
    ("cell", "differs"),
    [
        (again(), False),  # each seed as it was
        (again(1e-7), False),  # a rounding, the same for each seed
        (again(0.001, 0.02), False),  # tiny noise
        (again(0.039, 0.06), False),  # within 2 %, p = 0.07
        (again(0.042, 0.06), True),  # further, and by more than two standard errors
        (again(0.042, 0.08), False),  # further, within two standard errors
        (again(0.03, 0.01), True),  # within 2 %, but each seed is higher
        (again(0.3, 0.1), True),  # a shifted mean
        (again(-0.3, 0.1), True),
        (again(0.01), True),  # zero variance
        (Paired([(p, p) for p in PUBLISHED[1:]] + [(2.0, 9.0)]), False),  # an outlier: its own standard error
        (Paired([(p, p + 0.3) for p in PUBLISHED[1:]] + [(2.0, 2.0)]), True),  # an outlier among shifted seeds
        (Paired([(p, p) for p in PUBLISHED[1:]] + [(2.0, math.nan)]), True),
        (again(0.3, 0.1, n=2), False),  # too few seeds: not decided
        (again(0.3, 0.01, n=3), True),
    ],
)
def test_what_is_beyond_noise(cell: Paired, differs: bool) -> None:
    assert list(beyond_noise({"a": cell})) == (["a"] if differs else [])


def test_a_cell_is_printed_with_its_difference() -> None:
    assert str(again(0.0203, 0.02)) == "10 seeds, mean 2.03 -> 2.05, +1.00 ± 0.31 %"
    assert str(again(n=1)) == "1 seed, mean 2 -> 2, the same digits; not decided by fewer than 3 seeds"
    assert [again(n=n).decided for n in (1, 2, 3)] == [False, False, True]
    far = beyond_noise({"a": again(0.042, 0.06), "b": again(0.3, 0.1)})
    assert far["a"] == "10 seeds, mean 2.03 -> 2.072, +2.07 ± 0.93 %: further than 2 % and than 2 standard errors"
    assert far["b"] == "10 seeds, mean 2.03 -> 2.33, +14.78 ± 1.56 %: p = 5.5e-06 of the paired t test"


def test_more_cells_need_a_smaller_p_value() -> None:
    edge = again(0.02, 0.0123)
    assert 0.0004 < edge.p < 0.001
    assert list(beyond_noise({"edge": edge})) == ["edge"]
    others = {str(k): again() for k in range(11)}
    assert list(beyond_noise(others | {"edge": edge})) == []
    few = {str(k): again(0.3, 0.1, n=2) for k in range(11)}
    assert list(beyond_noise(few | {"edge": edge})) == ["edge"]  # of those that are decided
