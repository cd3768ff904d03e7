"""Weighted rows against repetition, formulas and exact probabilities."""

import numpy as np
import pytest

from cmixup.order import EpochBatches
from cmixup.sklearn import rows as rows_module
from cmixup.sklearn.rows import WeightedLabels, epoch_batches, merged, moments

RNG = np.random.default_rng(0)


def test_equal_rows_become_one() -> None:
    x, y = RNG.integers(-1, 2, (50, 2)).astype(float), RNG.integers(0, 2, (50, 1)).astype(float)
    weight = RNG.integers(0, 3, 50).astype(float)
    x[x == 0] *= RNG.choice([-1.0, 1.0], (x == 0).sum())  # zeros of both signs are equal
    found = merged(x, y, weight)
    expected: dict[tuple[float, ...], float] = {}
    for row, w in zip(np.column_stack([x, y]), weight, strict=True):
        if w:
            expected[tuple(row)] = expected.get(tuple(row), 0) + w
    assert {tuple(r): w for r, w in zip(np.column_stack([found.x, found.y]), found.weight, strict=True)} == expected
    order = RNG.permutation(50)
    again = merged(x[order], y[order], weight[order])
    assert np.array_equal(found.x, again.x)
    assert np.array_equal(found.weight, again.weight)


def test_moments_are_those_of_repeated_rows() -> None:
    values, weight = RNG.normal(3, 2, (20, 2)), RNG.integers(1, 5, 20)
    mean, deviation = moments(values, weight.astype(float))
    repeated = np.repeat(values, weight, axis=0)
    np.testing.assert_allclose(mean, repeated.mean(axis=0))
    np.testing.assert_allclose(deviation, repeated.std(axis=0))
    assert moments(np.full((7, 1), 0.1), RNG.random(7))[1] == 0
    assert moments(1e9 + np.arange(4.0)[:, None], np.ones(4))[1] == pytest.approx(np.sqrt(1.25))


def test_rows_come_by_their_share() -> None:
    weight = np.array([1.0, 1.0, 2.0, 0.5, 5.5])
    share, count = weight / 2, np.zeros(5)
    rng = np.random.default_rng(0)
    for _ in range(2000):
        epoch = epoch_batches(weight, 2, rng)
        assert epoch.sizes.tolist() == [2, 2, 1]
        times = np.bincount(epoch.index, minlength=5)
        assert ((np.floor(share) <= times) & (times <= np.ceil(share))).all()
        count += times
    np.testing.assert_allclose(count / 2000, share, atol=0.05)
    assert sorted(epoch_batches(np.full(7, 0.1), 3, rng).index) == list(range(7))
    first = [epoch_batches(weight, 2, rng).index[0] for _ in range(500)]
    assert np.bincount(first, minlength=5).min() > 15  # in random order


@pytest.mark.parametrize("refusals", [64, 1, 0])
def test_partners_follow_weight_and_distance(monkeypatch: pytest.MonkeyPatch, refusals: int) -> None:
    """Chi-square against w_j exp(-d^2 / 2 s^2), by refusal, by exact rows and by both."""
    monkeypatch.setattr(rows_module, "REFUSALS", refusals)
    labels, weight = np.array([[0.0], [0.2], [0.3], [1.0]]), np.array([1.0, 3.0, 0.2, 10.0])
    pairing = WeightedLabels(labels, weight, 0.5)
    draws = 4000 if refusals == 64 else 1500
    drawn = pairing.draw(EpochBatches(np.full(draws, 1), np.array([draws])), np.random.default_rng(0))
    share = weight * np.exp(-((labels[:, 0] - 0.2) ** 2) / (2 * 0.5**2))
    expected = draws * share / share.sum()
    assert ((np.bincount(drawn, minlength=4) - expected) ** 2 / expected).sum() < 16.3  # 0.999, 3 degrees of freedom


def test_bandwidth_0_draws_the_row_itself() -> None:
    order = EpochBatches(np.array([2, 0, 1]), np.array([3]))
    assert WeightedLabels(np.zeros((3, 1)), np.ones(3), 0.0).draw(order, RNG).tolist() == [2, 0, 1]
