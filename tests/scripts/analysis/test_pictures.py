"""The pictures of pairs and of RCF-MNIST: the probabilities and images that they show."""

from pathlib import Path

import numpy as np
import pytest
import torch

from cmixup.data import RegressionData
from cmixup.errors import InputError
from datasets.rcf_mnist import RCFMNIST
from scripts.analysis import pairs
from scripts.analysis.__main__ import main
from scripts.analysis.pairs import (
    Pool,
    colour_pool,
    expected_value,
    make_samplers,
    pairs_figure,
    partner_candidates,
    partner_probabilities,
)
from scripts.analysis.rcf_mnist import N_ANGLES, image_mosaic, nearest_rows


@pytest.fixture(scope="module")
def data() -> RegressionData:
    return RCFMNIST(scaling="unit", synthetic=True).load(0)


@pytest.fixture(scope="module")
def pool(data: RegressionData) -> Pool:
    return colour_pool(data.train)


def test_probabilities_are_those_of_the_kernel(pool: Pool) -> None:
    assert pool.bandwidth == 0.2
    label, feature, uniform = make_samplers(pool).values()
    candidates = np.array([3, 7, 20])
    weight = np.exp(-np.square(pool.y[candidates].astype(float) - pool.y[5]) / (2 * 0.2**2))
    np.testing.assert_allclose(partner_probabilities(label, 5, candidates), weight / weight.sum())
    np.testing.assert_allclose(partner_probabilities(uniform, 5, candidates), 1 / 3)
    x = pool.images.reshape(len(pool.y), -1).astype(float)
    weight = np.exp(-np.square(x[candidates] - x[5]).sum(axis=1) / (2 * feature.bandwidth**2))
    np.testing.assert_allclose(partner_probabilities(feature, 5, candidates), weight / weight.sum(), rtol=1e-4)
    others = np.arange(len(pool.y)) != 5
    assert expected_value(uniform, 5, pool.group != 0) == pytest.approx(np.mean(pool.group[others] != 0))


def test_candidates_are_the_nearest_to_the_angles_sorted_and_all_different(pool: Pool) -> None:
    candidates = partner_candidates(pool, 5, (0.0, 0.0, 90.0), [[0], [1, 0]])
    assert len({5, *candidates}) == 7
    assert (np.diff(pool.degrees[candidates]) >= 0).all()
    (nearest,) = partner_candidates(pool, 5, (90.0,), [[1]])
    away = np.abs(pool.degrees - pool.degrees[5] - 90)
    assert away[nearest] == away[(pool.group == 1) & (np.arange(len(pool.y)) != 5)].min()
    with pytest.raises(InputError, match="group 9 has no example"):
        partner_candidates(pool, 5, (0.0,), [[9]])


def test_the_bars_are_the_probabilities_of_the_images_above(pool: Pool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pairs, "TURNS", (-20.0, 100.0))
    axes = pairs_figure(pool, [[0], [1]]).axes
    images, bars = axes[:5], axes[5:]
    anchor, *candidates = (
        int(np.flatnonzero((pool.images == a.images[0].get_array()).all(axis=(1, 2, 3)))[0]) for a in images
    )
    assert abs(pool.degrees[anchor] - 60) == np.abs(pool.degrees[pool.group == 0] - 60).min()
    assert images[0].get_title().startswith("anchor, ")
    for axis, sampler in zip(bars, make_samplers(pool).values(), strict=True):
        expected = partner_probabilities(sampler, anchor, np.array(candidates))
        assert [bar.get_height() for bar in axis.patches] == pytest.approx(list(expected))


def test_absent_renderings_are_one_line_that_says_how_to_get_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CMIXUP_DATA", str(tmp_path))
    monkeypatch.setattr(pairs, "draw_colours", pairs.draw_objects)
    with pytest.raises(SystemExit):
        main(["pairs", f"results={tmp_path}"])
    (line,) = capsys.readouterr().err.splitlines()
    assert "python -m scripts.data render" in line


def test_a_column_of_rcf_mnist_holds_the_images_nearest_to_its_angle(data: RegressionData) -> None:
    angles = (np.arange(N_ANGLES) + 0.5) / N_ANGLES
    rows = nearest_rows(data.train, angles, 4)
    y = data.train.y[:, 0].numpy()
    for angle, chosen in zip(angles, rows, strict=True):
        assert np.abs(y[chosen] - angle).max() <= np.abs(np.delete(y, chosen) - angle).min()
    picture = image_mosaic(data.train, rows)
    assert picture.shape == (4 * 28, N_ANGLES * 28, 3)
    expected = data.train.x[torch.tensor([rows[5, 1]])][0].permute(1, 2, 0)
    np.testing.assert_array_equal(picture[28:56, 140:168], expected)
