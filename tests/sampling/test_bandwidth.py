"""The diagnostic of a bandwidth, and bandwidths by their effect."""

import numpy as np
import pytest
import torch

from cmixup import PartnerSampler
from cmixup.errors import InputError
from cmixup.sampling import bandwidth as bandwidth_module
from cmixup.sampling.bandwidth import bandwidth_for_fraction, diagnose, parse_bandwidth, resolve_bandwidth


def test_report_matches_the_exact_rows():
    labels = np.random.default_rng(0).integers(0, 40, 200) / 10
    report = diagnose(labels, 0.5)
    rows = np.array([PartnerSampler(labels, 0.5).probabilities(i) for i in range(200)])
    gap = np.abs(labels[:, None] - labels)
    assert report.effective_fraction == pytest.approx(np.median(1 / (rows**2).sum(1)) / 200)
    assert report.self_probability == pytest.approx(np.median(np.diag(rows)))
    assert report.equal_label_probability == pytest.approx(np.median((rows * (gap == 0)).sum(1)))
    assert report.pair_gap == pytest.approx((rows * gap).sum() / 200)
    assert report.uniform_gap == pytest.approx(gap.mean())
    assert (report.n, report.rows, report.bandwidth) == (200, 200, 0.5)


@pytest.mark.parametrize(
    ("labels", "bandwidth", "words"),
    [
        (np.arange(100.0), 1e-6, "self-pairing only: this is ERM"),
        (np.repeat(np.arange(20.0), 5), 1e-6, "equal labels only"),
        (np.arange(100.0), 1e6, "indistinguishable from mixup"),
        (np.full(50, 2.0), 1.0, "indistinguishable from mixup"),
        (np.arange(100.0), 60.0, "close to mixup"),
        (np.arange(100.0), 20.0, "moderately local"),
        (np.arange(100.0), 5.0, "local"),
    ],
)
def test_verdicts(labels, bandwidth, words):
    assert diagnose(labels, bandwidth).verdict == words


@pytest.mark.parametrize("width", [3, 8, 20])
def test_equal_labels_of_several_outputs_are_equal(width):
    labels = np.random.default_rng(0).random((5, width))[np.arange(300) % 5]
    report = diagnose(labels, 0.02 * width**0.5)
    assert (report.equal_label_probability, report.verdict) == (1.0, "equal labels only")


def test_large_data_is_looked_at_in_even_steps_of_its_labels(monkeypatch):
    """What is said of labels that are one number depends on neither the seed nor the order of the rows."""
    labels = np.random.default_rng(0).normal(size=40_000)
    report = diagnose(labels, 0.5, seed=1)
    assert report.rows == 500
    assert report == diagnose(torch.as_tensor(labels), 0.5, seed=1) == diagnose(labels, 0.5, seed=2)
    ascending = diagnose(np.sort(labels)[:, None], 0.5)
    assert ascending.effective_fraction == pytest.approx(report.effective_fraction, rel=1e-9)
    assert bandwidth_for_fraction(np.sort(labels), 0.2) == bandwidth_for_fraction(labels, 0.2, seed=1)
    # Standard normal labels, anchor y: sum K = N s / sqrt(1 + s^2) * exp(-y^2 / 2(1 + s^2)), and with
    # s / sqrt 2 for s sum K^2; the median anchor has y^2 = 0.455.
    wanted = 0.5 * np.sqrt(2.25) / 1.25 * np.exp(-0.455 / 1.25 + 0.455 / 2.25)
    assert report.effective_fraction == pytest.approx(wanted, rel=0.02)
    monkeypatch.setattr(bandwidth_module, "MAX_SORTED", 16_000)  # more labels than are sorted
    assert diagnose(labels, 0.5).effective_fraction == pytest.approx(wanted, rel=0.02)


@pytest.mark.parametrize("fraction", [0.05, 0.3, 0.9])
def test_fraction_is_reached(fraction):
    labels = np.random.default_rng(0).normal(size=(600, 3))
    diagnosis = diagnose(labels, ("fraction", fraction))
    assert diagnosis.effective_fraction == pytest.approx(fraction, abs=0.005)


def test_bandwidth_in_standard_deviations_of_the_labels():
    labels = np.array([[0.0, 2.0], [4.0, 10.0]])  # pooled: mean 4, deviations 4, 2, 0, 6
    assert diagnose(labels, ("std", 0.5)).bandwidth == pytest.approx(0.5 * np.sqrt(14))
    assert diagnose(np.array([0.0, 0.0, 3.0, 3.0]), ["std", 2]).bandwidth == 3
    assert diagnose(np.ones(3), ("std", 1.0)).bandwidth == 0


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (1e-200, "bandwidth must be 0 or at least 1e-150"),
        (None, "bandwidth must be a number"),
        (("fraction", 0.5, 1), 'bandwidth must be a number, "auto"'),
        (("std", 0), "c must be a finite number above 0"),
    ],
)
def test_bad_forms_are_refused_alike_with_and_without_labels(given, message):
    for call in (lambda: parse_bandwidth(given), lambda: resolve_bandwidth(np.arange(9.0), given)):
        with pytest.raises(InputError, match=message):
            call()


def test_fraction_limits():
    labels = np.random.default_rng(0).normal(size=100)
    assert bandwidth_for_fraction(labels, 1.0) == np.inf
    wide = bandwidth_for_fraction(labels, 0.9999)  # wider than any two labels lie apart
    assert wide > np.ptp(labels)
    assert diagnose(labels, wide).effective_fraction == pytest.approx(0.9999, abs=1e-6)
    assert bandwidth_for_fraction(labels, 0.01) == 0.0  # one partner of a hundred: itself
    assert bandwidth_for_fraction(np.ones(10), 0.5) == 0.0
    assert bandwidth_for_fraction(labels[:, None], 0.1) == bandwidth_for_fraction(labels, 0.1)
    small, large = bandwidth_for_fraction(labels, 0.1), bandwidth_for_fraction(labels * 1e6, 0.1)
    assert large == pytest.approx(small * 1e6, rel=1e-3)
