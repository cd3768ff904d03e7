"""Partners inside a batch: from a second one (C-Mixup-batch), or from the batch itself."""

import numpy as np
import pytest
import torch

from cmixup import BatchPartnerSampler, PartnerSampler
from cmixup.sampling import within as batches
from cmixup.sampling.within import draw_within
from tests.sampling.goodness import anchors_of, exact_row, label_sets, p_of_rows, p_value, typical_spread

SETS = label_sets()


@pytest.mark.parametrize("shape", [(16,), (16, 1), (16, 3)])
@pytest.mark.parametrize("as_tensor", [False, True])
def test_second_batch_holding_all_data_gives_the_full_rows(shape, as_tensor):
    labels = np.random.default_rng(0).normal(size=shape)
    given = torch.as_tensor(labels) if as_tensor else labels
    batch = BatchPartnerSampler(0.8)
    rows = np.asarray(batch.probabilities(given[:5], given))
    for i in range(5):
        np.testing.assert_allclose(rows[i], exact_row(labels, 0.8, i), rtol=1e-9)
        np.testing.assert_allclose(rows[i], PartnerSampler(labels, 0.8).probabilities(i), rtol=1e-9)
    repeated = given[[2] * 4000]
    drawn = batch.draw(repeated, given, np.random.default_rng(1))
    p = p_value(drawn, rows[2])
    assert p is None or p > 1e-3
    assert str(drawn.dtype).endswith("int64")
    assert isinstance(drawn, torch.Tensor) is as_tensor


def test_candidates_are_the_second_batch_or_both():
    first, second = np.zeros(4), np.array([5.0, 6.0])
    rng = np.random.default_rng(0)
    assert (BatchPartnerSampler(0.1).draw(first, second, rng) == 0).all()  # nearest of B2, however far
    both = BatchPartnerSampler(0.1, candidates="b1+b2")
    assert both.probabilities(first, second).shape == (4, 6)
    assert set(both.draw(first[[0] * 300], second, rng)[:300].tolist()) <= set(range(300))
    np.testing.assert_allclose(both.probabilities(first, second)[0], [0.25] * 4 + [0, 0])


def test_limits_and_reproducibility():
    first, second = np.array([0.0, 1.0]), np.array([0.0, 1.0, 1.0, 7.0])
    np.testing.assert_allclose(BatchPartnerSampler(np.inf).probabilities(first, second), 0.25)
    np.testing.assert_allclose(BatchPartnerSampler(0).probabilities(first, second), [[1, 0, 0, 0], [0, 0.5, 0.5, 0]])
    batch = BatchPartnerSampler(1.0)
    tensors = torch.as_tensor(first).repeat(50), torch.as_tensor(second)
    a, b = (batch.draw(*tensors, torch.Generator().manual_seed(3)) for _ in range(2))
    assert torch.equal(a, b)
    assert not torch.equal(a, batch.draw(*tensors, torch.Generator().manual_seed(4)))


def within(labels, bandwidth, rng):
    return draw_within(np.asarray(labels, dtype=np.float64).reshape(len(labels), -1), bandwidth, rng)


@pytest.mark.parametrize(
    ("way", "name"),
    [
        (way, name)
        for way in ("rows", "rejection", "sorted")
        for name in SETS
        if way != "sorted" or SETS[name].ndim == 1
    ],
)
def test_every_way_within_a_batch_draws_from_the_exact_row(monkeypatch, name, way):
    """Narrow kernels, too; rows in chunks, and with rejection and sorted labels at sizes where rows are cheaper."""
    labels = SETS[name]
    monkeypatch.setattr(batches, "REJECTION_FROM", 1 if way == "rejection" else 10**9)
    monkeypatch.setattr(batches, "SORTED_FROM", 1 if way == "sorted" else 10**9)
    monkeypatch.setattr(batches, "WEIGHTS_A_ROUND", 0)
    monkeypatch.setattr(batches, "WEIGHTS_AT_ONCE", 30 * len(labels))
    rng = np.random.default_rng(3)
    for width in (0.0, 0.1, 1.0, np.inf):
        bandwidth = width * typical_spread(labels)
        wide = width >= 1  # where partners of one row are too many to count
        drawn = np.stack([within(labels, bandwidth, rng) for _ in range(40 if wide else 120)])
        for anchor in () if wide else anchors_of(labels):
            p = p_value(drawn[:, anchor], exact_row(labels, bandwidth, anchor))
            assert p is None or p > 1e-4, (width, anchor)
        assert p_of_rows(drawn, np.stack([exact_row(labels, bandwidth, k) for k in range(len(labels))])) > 1e-4, width


@pytest.mark.parametrize("rejection_from", [256, 1])
def test_gaps_within_a_batch(monkeypatch, rejection_from) -> None:
    """Small batches take their rows at once; larger ones are refused some rounds before."""
    monkeypatch.setattr(batches, "REJECTION_FROM", rejection_from)
    monkeypatch.setattr(batches, "WEIGHTS_A_ROUND", 0)
    rng, size = np.random.default_rng(0), 60
    labels = np.where(rng.random((size, 2)) < 0.3, np.nan, rng.random((size, 2)) * [360.0, 2.0])
    labels[:, 0] = np.where(np.isnan(labels).all(axis=1), 7.0, labels[:, 0])
    drawn = np.stack([within(labels, 40.0, rng) for _ in range(1000)])
    rows = BatchPartnerSampler(40.0).probabilities(labels, labels)
    assert p_of_rows(drawn, np.asarray(rows)) > 1e-4
    assert all(p_value(drawn[:, i], rows[i]) > 1e-4 for i in (0, 7, int(np.nanargmax(labels[:, 0]))))
