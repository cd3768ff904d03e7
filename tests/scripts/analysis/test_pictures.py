"""The pictures of pairs and of RCF-MNIST: the probabilities and images that they show."""

import numpy as np
import pytest
import torch

from cmixup.data import RegressionData
from datasets.rcf_mnist import RCFMNIST
from scripts.analysis import pictures
from scripts.analysis.pictures import N_ANGLES, Pool, colour_pool, image_mosaic, make_samplers, pairs_figure


@pytest.fixture(scope="module")
def data() -> RegressionData:
    return RCFMNIST(scaling="unit", synthetic=True).load(0)


@pytest.fixture(scope="module")
def pool(data: RegressionData) -> Pool:
    return colour_pool(data.train)


def test_probabilities_are_those_of_the_kernel(pool: Pool) -> None:
    label, feature, uniform = make_samplers(pool).values()
    assert label.bandwidth == 0.2
    some, x = np.array([3, 7, 20]), pool.images.reshape(len(pool.y), -1).astype(float)
    near = np.exp(-np.square(pool.y[some].astype(float) - pool.y[5]) / (2 * 0.2**2))
    alike = np.exp(-np.square(x[some] - x[5]).sum(axis=1) / (2 * feature.bandwidth**2))
    for sampler, weight in ((label, near), (feature, alike), (uniform, np.ones(3))):
        share = sampler.probabilities(5)[some]
        np.testing.assert_allclose(share / share.sum(), weight / weight.sum(), rtol=1e-4)


def test_the_bars_are_the_probabilities_of_the_images_above(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "TURNS", (-20.0, 100.0))
    axes = pairs_figure(pool, [[0], [1]]).axes
    images, bars = axes[:5], axes[5:]
    anchor, *chosen = (
        int(np.flatnonzero((pool.images == a.images[0].get_array()).all(axis=(1, 2, 3)))[0]) for a in images
    )
    assert abs(pool.degrees[anchor] - 60) == np.abs(pool.degrees[pool.group == 0] - 60).min()
    assert images[0].get_title().startswith("anchor, ")
    for axis, sampler in zip(bars, make_samplers(pool).values(), strict=True):
        expected = sampler.probabilities(anchor)[chosen]
        assert [bar.get_height() for bar in axis.patches] == pytest.approx(list(expected / expected.sum()))
    others = np.arange(len(pool.y)) != anchor
    away = 100 * np.mean(pool.group[others] != pool.group[anchor])
    assert f"{away:.0f} % of the probability is of another domain" in bars[-1].get_title(loc="left")  # uniform


def test_a_column_of_rcf_mnist_holds_the_images_nearest_to_its_angle(data: RegressionData) -> None:
    angles, y = (np.arange(N_ANGLES) + 0.5) / N_ANGLES, data.train.y[:, 0].numpy()
    picture = image_mosaic(data.train, angles)
    assert picture.shape == (4 * 28, N_ANGLES * 28, 3)
    nearest = np.sort(np.argsort(np.abs(y - angles[5]), kind="stable")[:4])
    expected = data.train.x[torch.tensor([nearest[1]])][0].permute(1, 2, 0)
    np.testing.assert_array_equal(picture[28:56, 140:168], expected)
