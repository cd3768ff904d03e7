"""A draw for a whole batch without a set-up follows the same rows as every algorithm."""

import numpy as np
import pytest

from cmixup import BatchPartnerSampler
from cmixup.sampling import rejection
from cmixup.sampling.kernels import make_kernel
from tests.sampling.goodness import exact_row, label_sets, p_value, typical_spread

SETS = label_sets()


@pytest.mark.parametrize("seconds_a_weight", [rejection.SECONDS_A_WEIGHT, 0.0, 1.0], ids=["measured", "1 round", "all"])
@pytest.mark.parametrize("name", SETS)
def test_every_row_is_drawn_exactly_whether_by_rounds_or_by_its_weights(
    name: str, seconds_a_weight: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rejection, "SECONDS_A_WEIGHT", seconds_a_weight)
    labels, rng = SETS[name], np.random.default_rng(0)
    for width in (0.1, 0.7, 3.0):
        bandwidth = width * typical_spread(labels)
        kernel = make_kernel("gaussian", bandwidth)
        drawn = np.stack([rejection.draw_once(labels, kernel, rng) for _ in range(300)])
        for anchor in (0, len(labels) // 2):
            found = p_value(drawn[:, anchor], exact_row(labels, bandwidth, anchor))
            assert found is None or found > 1e-5


def test_circles_are_gone_round() -> None:
    angles, period = np.random.default_rng(0).random((30, 2)) * [360.0, 2.0], np.array([360.0, 0.0])
    rng, kernel = np.random.default_rng(1), make_kernel("gaussian", 40.0)
    drawn = np.stack([rejection.draw_once(angles, kernel, rng, period) for _ in range(2000)])
    rows = BatchPartnerSampler(40.0, period=period).probabilities(angles, angles)
    assert all(p_value(drawn[:, i], rows[i]) > 1e-4 for i in (0, 7, int(angles[:, 0].argmax())))


def test_bandwidth_zero_pairs_equal_labels_only() -> None:
    labels = np.repeat(np.random.default_rng(0).normal(size=(20, 3)), 10, axis=0)
    drawn = rejection.draw_once(labels, make_kernel("gaussian", 0.0), np.random.default_rng(0))
    assert (labels[drawn] == labels).all()
    assert (drawn != np.arange(200)).any()
