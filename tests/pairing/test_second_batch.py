"""Partners by label distance inside a second batch."""

import numpy as np
import pytest

from cmixup.order import EpochBatches, shuffled
from cmixup.pairing.second_batch import SecondBatch
from tests.helpers import make_split, refuses
from tests.sampling.goodness import exact_row, p_value

INF = float("inf")


def fitted(n: int, *given: object, **options: object) -> SecondBatch:
    pairing = SecondBatch(*given, **options)  # type: ignore[arg-type]
    pairing.fit(make_split(n))
    return pairing


def drawn(pairing: SecondBatch, n: int, seed: int = 1) -> tuple[EpochBatches, np.ndarray]:
    order = shuffled(n, 16, np.random.default_rng(seed))
    return order, pairing.draw(order, np.random.default_rng([seed, 1]))


@pytest.mark.parametrize("factor", [1.0, 1.5, 3.0])
@pytest.mark.parametrize("bandwidth", [0.0, 0.2, INF])
def test_partners_never_come_from_the_first_batch(bandwidth: float, factor: float) -> None:
    pairing = fitted(60, bandwidth, factor=factor)
    for seed in range(20):
        order, partner = drawn(pairing, 60, seed)
        assert partner.shape == (60,)
        assert partner.dtype == np.int64
        starts = np.cumsum(order.sizes) - order.sizes
        for start, first in zip(starts, order.batches(), strict=True):
            assert not set(partner[start : start + len(first)].tolist()) & set(first.tolist())


@pytest.mark.parametrize(
    ("size", "expected"), [(16, 16), (23.5, 24), (40, 40), (50, 44), (59, 44), (60, 60), (INF, 60)]
)
def test_the_second_batch_has_distinct_rows_outside_the_first_until_it_is_everything(
    size: float, expected: int
) -> None:
    pairing, first = fitted(60, 0.3), np.arange(10, 26)
    second = pairing.second(first, size, np.random.default_rng(0))
    assert len(set(second.tolist())) == len(second) == expected
    assert bool(np.isin(second, first).any()) is (expected == 60)


@pytest.mark.parametrize("row", [0, 5, 11])
def test_all_data_as_second_batch_gives_the_full_rows(row: int) -> None:
    labels = make_split(24).y.numpy()[:, 0]
    order = EpochBatches(np.full(8000, row), np.array([8000]))
    partner = fitted(24, 0.4, factor=INF).draw(order, np.random.default_rng(0))
    p = p_value(partner, exact_row(labels, 0.4, row, "gaussian"))
    assert p is not None
    assert p > 1e-3
    other = p_value(partner, exact_row(labels, 0.5, row, "gaussian"))
    assert other is not None
    assert other < 1e-3


def test_candidates_of_both_batches_hold_the_row_itself() -> None:
    """At bandwidth 0 and distinct labels the row itself is the only candidate with weight."""
    order, partner = drawn(fitted(60, 0.0, candidates="b1+b2"), 60)
    assert partner.tolist() == order.index.tolist()
    order, partner = drawn(fitted(60, INF, candidates="b1+b2"), 60)
    inside = [
        np.isin(p, b) for b, p in zip(order.batches(), np.split(partner, np.cumsum(order.sizes)[:-1]), strict=True)
    ]
    assert 0.25 < np.concatenate(inside).mean() < 0.75


def test_the_released_second_batch_is_drawn_with_replacement_from_all_rows() -> None:
    """`np.random.choice(arange(N))` for each row of B1 (src/algorithm.py): repeated rows and those of B1 occur."""
    pairing, first, rng = fitted(20, 0.3, candidates="b1+b2"), np.arange(16), np.random.default_rng(0)
    each = [pairing.second(first, 16, rng) for _ in range(500)]
    assert {len(second) for second in each} == {16}
    different = np.mean([len(set(second.tolist())) for second in each])
    assert different == pytest.approx(20 * (1 - (19 / 20) ** 16), rel=0.03)
    p = p_value(np.concatenate(each), np.full(20, 1 / 20))
    assert p is not None
    assert p > 1e-3


test_bad_values_are_refused_by_name = refuses(
    [
        (lambda: SecondBatch(-1.0), "bandwidth must be 0 or more .*got -1.0"),
        (lambda: SecondBatch(1.0, "b1"), r"candidates must be one of b2, b1\+b2, got 'b1'"),
        (lambda: SecondBatch(1.0, factor=0.5), "factor must be 1 or more .*got 0.5"),
        (lambda: SecondBatch(1.0, factor="two"), "factor must be a number, got 'two'"),
    ]
)
