"""Labels with gaps: partners are compared by the outputs that both rows have, in every place that draws them."""

from typing import Any

import numpy as np
import pytest
import torch
from sklearn.metrics.pairwise import nan_euclidean_distances

from cmixup import CMixup, InputError, PartnerSampler
from cmixup.sampling.bandwidth import median_squared_distance, resolve_bandwidth
from cmixup.sampling.distance import Kernel
from cmixup.sampling.sampler import BatchPartnerSampler
from cmixup.sampling.stream import UniformRejection
from cmixup.training.losses import known_squared_error, squared_error


def with_gaps(n: int, d: int, share: float, seed: int = 0) -> np.ndarray:
    """Return labels (n, d) with this share missing, but of each row at most d - 1."""
    rng = np.random.default_rng(seed)
    labels = rng.normal(size=(n, d))
    gaps = rng.random((n, d)) < share
    gaps[np.arange(n), rng.integers(0, d, n)] = False
    labels[gaps] = np.nan
    return labels


#: The two tables of the issue: few rows, and one in the shape of chemistry.
SMALL, CHEMISTRY = with_gaps(10, 3, 0.3), with_gaps(600, 12, 0.7)


def law(labels: np.ndarray, bandwidth: float) -> np.ndarray:
    """Return P (N, N) by scikit-learn's distances; rows without a common output never meet."""
    distance = nan_euclidean_distances(labels)
    alone = np.isnan(distance)
    weight = np.where(alone, 0.0, np.exp(-(np.where(alone, 0, distance) ** 2) / (2 * bandwidth**2)))
    return weight / weight.sum(axis=1, keepdims=True)


@pytest.mark.parametrize("labels", [SMALL, CHEMISTRY[:30]], ids=["small", "chemistry"])
@pytest.mark.parametrize("bandwidth", [0.5, np.inf])
@pytest.mark.parametrize("method", ["auto", "rows", "uniform", "sparse"])
def test_probabilities_and_draws_are_those_of_the_law(labels: np.ndarray, bandwidth: float, method: str) -> None:
    budget = 44 * len(labels) if method == "sparse" else 1 << 30  # three partners a row, or all
    sampler = PartnerSampler(labels, bandwidth, method=method, memory_budget=budget)
    expected = law(labels, bandwidth)
    ours = np.stack([sampler.probabilities(row) for row in range(len(labels))])
    np.testing.assert_allclose(ours, expected, atol=1e-12)
    rng, repeats = np.random.default_rng(0), 400
    drawn = np.concatenate([sampler.epoch(rng) for _ in range(repeats)]).reshape(repeats, -1)
    counts = np.stack([np.bincount(column, minlength=len(labels)) for column in drawn.T]) / repeats
    assert not counts[expected == 0].any()
    np.testing.assert_allclose(counts, expected, atol=5.5 * 0.5 / np.sqrt(repeats))


def test_a_batch_draws_by_the_same_law() -> None:
    expected = law(SMALL, 0.5)
    np.testing.assert_allclose(BatchPartnerSampler(0.5).probabilities(SMALL, SMALL), expected, atol=1e-12)
    wide = BatchPartnerSampler(np.inf).probabilities(SMALL, SMALL)
    np.testing.assert_allclose(wide, law(SMALL, np.inf), atol=1e-12)
    sampler, rng = UniformRejection(SMALL, Kernel(0.5)), np.random.default_rng(0)
    drawn = sampler.draw(np.tile(np.arange(10), 1500), rng).reshape(1500, 10)
    counts = np.stack([np.bincount(column, minlength=10) for column in drawn.T]) / 1500
    np.testing.assert_allclose(counts, expected, atol=0.065)


def test_bandwidths_look_at_what_is_there() -> None:
    assert resolve_bandwidth(SMALL, ("std", 2.0)) == pytest.approx(2 * np.nanstd(SMALL))
    distance = nan_euclidean_distances(SMALL)[np.triu_indices(10, 1)]
    assert median_squared_distance(SMALL) == pytest.approx(np.nanmedian(distance**2))
    labels = CHEMISTRY[:300]
    rows = law(labels, resolve_bandwidth(labels, ("fraction", 0.2)))
    assert np.median(1 / (rows**2).sum(axis=1)) == pytest.approx(60, rel=0.05)


@pytest.mark.parametrize("bandwidth", ["auto", ("median", 1.0)])
def test_a_batch_whose_rows_share_no_output_stays_as_it_is(bandwidth: Any) -> None:
    """The search for a bandwidth ends, as it does where all labels that can be compared are equal."""
    x, y = torch.randn(8, 3), torch.where(torch.eye(8, dtype=torch.bool), torch.randn(8, 8), torch.nan)
    for ours, given in zip(CMixup(bandwidth, seed=0)(x, y), (x, y), strict=True):
        torch.testing.assert_close(ours, given, equal_nan=True)
    y[7, 0], y[7, 7] = y[0, 0], torch.nan
    assert resolve_bandwidth(y, bandwidth) in (np.inf, 0.0)


def test_the_loss_and_its_gradient_leave_out_what_is_missing() -> None:
    prediction = torch.randn(2, 5, 3, requires_grad=True)
    target, weight = torch.randn(2, 5, 3), torch.rand(2, 5)
    torch.testing.assert_close(known_squared_error(prediction, target), squared_error(prediction, target))
    torch.testing.assert_close(
        known_squared_error(prediction, target, weight), squared_error(prediction, target, weight)
    )
    target[0, 1, 2] = target[1, :, 0] = torch.nan
    loss = known_squared_error(prediction, target)
    for model in range(2):
        known = ~target[model].isnan()
        torch.testing.assert_close(loss[model], (prediction[model] - target[model])[known].square().mean())
    (slope,) = torch.autograd.grad(loss.sum(), prediction)
    assert torch.isfinite(slope).all()
    assert not slope[target.isnan()].any()
    assert known_squared_error(torch.ones(4, 2), torch.full((4, 2), torch.nan)) == 0


BAD: list[tuple[Any, str]] = [
    ([[1.0, np.nan], [np.nan, np.nan]], "labels must have an output in each row, got only NaN in row 1"),
    ([[1.0, np.nan, np.nan], [np.nan, 2.0, np.nan], [np.nan, np.nan, 3.0]], "labels must have an output that two rows"),
    ([1.0, np.nan], r"labels must be finite \(and within .*\), got nan in row 1"),
    ([[1.0], [np.nan]], r"labels must be finite \(and within .*\), got nan in row 1"),
    ([[1.0, np.inf], [np.nan, 1.0]], "got inf in row 0"),
]


@pytest.mark.parametrize(("labels", "message"), BAD)
def test_labels_that_cannot_be_compared_are_refused(labels: Any, message: str) -> None:
    labels = np.array(labels)
    for refused in (lambda: PartnerSampler(labels, 0.3), lambda: CMixup(labels=labels)):
        with pytest.raises(InputError, match=message):
            refused()


def test_what_else_is_refused() -> None:
    with pytest.raises(InputError, match="auto, uniform, sparse or rows for labels with gaps"):
        PartnerSampler(SMALL, 0.3, method="kd")
    with pytest.raises(InputError, match="labels must have an output in each row, got only NaN in row 1"):
        CMixup(0.3)(torch.zeros(2, 1), torch.tensor([[1.0, torch.nan], [torch.nan, torch.nan]]))


def test_rows_of_a_batch_that_share_no_output_stay_as_they_are() -> None:
    """A last batch of few rows may be such; the whole table is not."""
    y = torch.tensor([[1.0, torch.nan], [torch.nan, 2.0]])
    x, mixed = CMixup(np.inf, seed=0)(torch.eye(2), y)
    assert torch.equal(x, torch.eye(2))
    assert torch.equal(mixed.nan_to_num(), y.nan_to_num())
