"""The public face of the sampler: limits, kinds, reproducibility, `auto`, errors."""

import re
import warnings

import numpy as np
import pytest
import torch

from cmixup import PartnerSampler
from tests.sampling.goodness import exact_row, label_sets, typical_spread

ALGORITHMS = ("cells", "uniform", "kd", "sparse", "rows")
SETS = label_sets()


@pytest.mark.parametrize("name", SETS)
def test_probabilities_are_the_definition(name):
    labels = SETS[name]
    for width in (0.0, 0.3, 2.0, 1e12):
        bandwidth = width * typical_spread(labels)
        built = PartnerSampler(labels, bandwidth)
        anchor = len(labels) // 2
        row = built.probabilities(anchor)
        assert row.dtype == np.float64
        np.testing.assert_allclose(row, exact_row(labels, bandwidth, anchor), rtol=1e-6, atol=1e-12)
        assert row.sum() == pytest.approx(1, abs=1e-12)


@pytest.mark.parametrize("method", ALGORITHMS)
def test_bandwidth_zero_pairs_equal_labels_only(method):
    labels = np.array([3.0, 1.0, 3.0, 2.0, 3.0, 1.0])
    built = PartnerSampler(labels, 0, method=method)
    drawn = built.draw(np.repeat(np.arange(6), 200), np.random.default_rng(0)).reshape(6, 200)
    assert [sorted(set(row.tolist())) for row in drawn] == [[0, 2, 4], [1, 5], [0, 2, 4], [3], [0, 2, 4], [1, 5]]
    # With distinct labels every example is its own partner: ERM.
    distinct = PartnerSampler(np.arange(50.0), 1e-9, method=method)
    np.testing.assert_array_equal(distinct.epoch(np.random.default_rng(0)), np.arange(50))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("method", ALGORITHMS)
def test_the_extremes_of_float64_are_finite_and_silent(method):
    labels = np.array([0.0, 1e150, -1e150, 1.0, 1.0, 1e-140])
    for bandwidth in (0.0, 1e-150, 1e-140, 1.0, 1e150, 1e300):
        built = PartnerSampler(labels, bandwidth, method=method)
        row = built.probabilities(3)
        assert row.sum() == pytest.approx(1)
        drawn = built.draw(np.full(200, 3), np.random.default_rng(0))
        assert (row[drawn] > 0).all()
        if bandwidth == 1e-150:
            assert set(drawn.tolist()) == {3, 4}


@pytest.mark.parametrize("method", ALGORITHMS)
def test_same_generator_state_same_draws(method):
    labels = np.random.default_rng(0).normal(size=300)
    built = PartnerSampler(labels, 0.3, method=method)
    again = PartnerSampler(labels, 0.3, method=method)
    first = built.epoch(np.random.default_rng(5))
    np.testing.assert_array_equal(first, again.epoch(np.random.default_rng(5)))
    assert (first != built.epoch(np.random.default_rng(6))).any()
    generator = torch.Generator().manual_seed(5)
    second, third = built.epoch(generator), built.epoch(generator)
    np.testing.assert_array_equal(second, built.epoch(torch.Generator().manual_seed(5)))
    assert (second != third).any()


@pytest.mark.parametrize("method", ALGORITHMS)
def test_kind_and_type_of_the_result_follow_the_labels(method):
    labels = np.random.default_rng(0).normal(size=30)
    rng = np.random.default_rng(0)
    built = PartnerSampler(labels, 0.5, method=method)
    for drawn in (built.draw([1, 2], rng), built.draw(torch.tensor([1, 2]), rng)):
        assert isinstance(drawn, np.ndarray)
        assert drawn.dtype == np.int64
    assert built.draw([], rng).shape == (0,)
    assert built.draw(np.array([], dtype=int), rng).dtype == np.int64
    on_tensors = PartnerSampler(torch.as_tensor(labels, dtype=torch.float32), 0.5, method=method)
    for drawn in (on_tensors.draw(np.array([1, 2]), rng), on_tensors.epoch(rng)):
        assert drawn.dtype == torch.int64
    assert len(built) == 30


def test_float32_integer_half_and_column_labels_are_the_float64_ones():
    labels = np.random.default_rng(0).integers(-50, 50, 200) / 4
    wanted = PartnerSampler(labels, 0.5).epoch(np.random.default_rng(1))
    for given in (
        labels.astype(np.float32),
        labels.astype(np.float16),
        labels[:, None],
        torch.tensor(labels, dtype=torch.bfloat16),
        torch.tensor(labels[:, None], requires_grad=True),
    ):
        np.testing.assert_array_equal(PartnerSampler(given, 0.5).epoch(np.random.default_rng(1)), wanted)
    whole = (4 * labels).astype(np.int32)
    np.testing.assert_array_equal(PartnerSampler(whole, 2.0).epoch(np.random.default_rng(1)), wanted)


@pytest.mark.filterwarnings("ignore:bandwidth 0.5 leaves every row its own partner")
@pytest.mark.parametrize(
    ("method", "labels", "bandwidth", "budget"),
    [
        ("cells", lambda rng: rng.normal(size=500), 0.1, 1 << 30),
        ("uniform", lambda rng: rng.normal(size=(4000, 2)), 3.0, 1 << 30),
        # Uniform proposals are accepted at 0.08 on average, but the tails would read every label.
        ("kd", lambda rng: rng.normal(size=(20_000, 2)), 0.42, 1 << 30),
        ("sparse", lambda rng: rng.normal(size=(300, 20)), 0.5, 1 << 30),
        ("sparse", lambda rng: rng.normal(size=(300, 20)), 0.5, 200_000),
        ("rows", lambda rng: rng.normal(size=(300, 20)), 0.5, 5_000),
    ],
)
def test_auto_crosses_every_branch_and_says_why(method, labels, bandwidth, budget):
    built = PartnerSampler(labels(np.random.default_rng(0)), bandwidth, memory_budget=budget)
    assert built.method == method
    assert built.nbytes <= budget
    assert re.search(rf"method='{method}': \w+", repr(built))
    assert built.epoch(np.random.default_rng(0)).shape == (len(built),)


@pytest.mark.parametrize("draw", [lambda s, rng: s.epoch(rng), lambda s, rng: [s.draw([i], rng) for i in range(64)]])
def test_a_bandwidth_that_leaves_every_row_its_own_partner_warns_once(draw):
    labels = torch.arange(100.0) * 1000
    rng = np.random.default_rng(0)
    alone = PartnerSampler(labels, 0.3)
    with pytest.warns(UserWarning, match="bandwidth 0.3 leaves every row its own partner") as caught:
        [draw(alone, rng) for _ in range(2)]
    assert len(caught) == 1
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for bandwidth in (0.0, 500.0):  # 0 is asked for, and some rows have partners of 500
            draw(PartnerSampler(labels, bandwidth), rng)
