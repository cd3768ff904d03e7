"""Scales, circles and ranks: every exact sampler against enumeration."""

import numpy as np
import pytest
import torch

from cmixup import LabelSpace, PartnerSampler, bandwidth_for_fraction, diagnose
from tests.sampling.goodness import p_value

ANGLES = np.append(np.random.default_rng(0).random(40) * 360, [0.0, 360.0, 180.0, 180.0, -90.0, 270.0, 1e-9, 359.999])
MIXED = np.random.default_rng(1).normal(size=(40, 2)) * [8, 1] % [24, 9]


def chord(gap: np.ndarray | float, period: float) -> np.ndarray:
    """Return the distance of two points of a circle of this circumference, by the way between them."""
    return period / np.pi * np.abs(np.sin(np.pi * np.asarray(gap) / period))


def weights(d: np.ndarray, s: float) -> np.ndarray:
    if s == 0:
        return (d <= s).astype(float)
    return np.exp(-(d**2) / (2 * s**2))


def draws_agree(sampler: PartnerSampler, expected: np.ndarray, anchors: list[int]) -> None:
    for anchor in anchors:
        drawn = sampler.draw(np.full(4000, anchor), np.random.default_rng(anchor))
        p = p_value(drawn, expected[anchor] / expected[anchor].sum())
        assert p is None or p > 1e-4


@pytest.mark.parametrize("s", [0.0, 5.0, 40.0, 1e4])
def test_circular_probabilities(s: float) -> None:
    sampler = PartnerSampler(ANGLES, s, space=LabelSpace(period=360))
    gap = np.round(np.mod(ANGLES, 360)[:, None] - np.mod(ANGLES, 360), 12)
    expected = weights(chord(gap, 360), s)
    for anchor in (0, 40, 41, 42, 44, 47):
        computed = sampler.probabilities(anchor)
        np.testing.assert_allclose(computed, expected[anchor] / expected[anchor].sum(), rtol=1e-9, atol=1e-12)
    if s == 40:
        kappa = (180 / np.pi / s) ** 2  # von Mises: the law of angles in the place of the normal one
        law = np.exp(kappa * np.cos(np.deg2rad(gap[0])))
        np.testing.assert_allclose(sampler.probabilities(0), law / law.sum(), rtol=1e-9)


def test_a_clock_beside_a_straight_output() -> None:
    """Hours of period 24 and a temperature, each with its scale."""
    space = LabelSpace(scale=[2.0, 0.5], period=[24, None])
    hours, degrees = (column[:, None] - column for column in MIXED.T)
    expected = weights(np.hypot(chord(hours, 24) / 2, degrees / 0.5), 0.8)
    sampler = PartnerSampler(MIXED, 0.8, space=space)
    np.testing.assert_allclose(sampler.probabilities(3), expected[3] / expected[3].sum(), rtol=1e-9)
    draws_agree(sampler, expected, [0, 7])


def test_std_is_each_outputs_own() -> None:
    labels = np.random.default_rng(0).normal(size=(50, 3)) * [100, 1, 0]
    scale = [*labels.std(0)[:2], 1.0]
    one, other = (PartnerSampler(labels, 0.4, space=LabelSpace(scale=s)) for s in ("std", scale))
    assert np.array_equal(one.probabilities(0), other.probabilities(0))


def test_ranks_against_scipys_definition() -> None:
    labels = np.array([3.0, 1.0, 3.0, 100.0, -5.0])
    ranks = np.array([3.5, 2.0, 3.5, 5.0, 1.0])  # mean ranks of ties
    expected = weights(np.abs(ranks[:, None] - ranks[None]) / 5, 0.2)
    sampler = PartnerSampler(labels, 0.2, space=LabelSpace(ranks=True))
    for anchor in range(5):
        np.testing.assert_allclose(sampler.probabilities(anchor), expected[anchor] / expected[anchor].sum(), rtol=1e-9)
    draws_agree(sampler, expected, [0, 3])
    same = PartnerSampler(np.exp(labels / 10), 0.2, space=LabelSpace(ranks=True))
    np.testing.assert_allclose(same.probabilities(2), sampler.probabilities(2))


def test_tensors_stay_tensors() -> None:
    sampler = PartnerSampler(torch.from_numpy(ANGLES), 5.0, space=LabelSpace(period=360))
    assert isinstance(sampler.draw(torch.tensor([0, 1]), torch.Generator().manual_seed(0)), torch.Tensor)
    scaled = PartnerSampler(torch.rand(9, 2), 1.0, space=LabelSpace(scale=2.0))
    assert isinstance(scaled.epoch(torch.Generator()), torch.Tensor)


def test_auto_and_the_diagnostic_go_round() -> None:
    """Angles at both ends of the range are neighbours, so they need a narrower bandwidth than on a line."""
    angles = np.concatenate([np.linspace(0, 10, 50), np.linspace(350, 359, 50)])
    circle = LabelSpace(period=360)
    s = bandwidth_for_fraction(angles, 0.2, space=circle)
    assert s == PartnerSampler(angles, "auto", space=circle).bandwidth
    distance = chord(angles[:, None] - angles, 360)
    weight = weights(distance, s)
    assert np.median(weight.sum(1) ** 2 / (weight**2).sum(1)) == pytest.approx(20, rel=1e-3)
    report = diagnose(angles, s, space=circle)
    assert report.pair_gap == pytest.approx(float(((weight * distance).sum(1) / weight.sum(1)).mean()))
    assert report.uniform_gap == pytest.approx(float(distance.mean()))
