"""The pictures of who is mixed with whom: the probabilities that they show, not their pixels."""

from pathlib import Path

import numpy as np
import pytest

from cmixup.errors import InputError
from datasets.common.pose.views import Views
from datasets.rcf_mnist import RCFMNIST
from scripts.measure.__main__ import main
from scripts.measure.pairs import (
    PICTURES,
    Pool,
    anchor_of,
    colour_pool,
    expected_value,
    make_samplers,
    object_pool,
    pairs_figure,
    paper_bandwidth,
    partner_candidates,
    partner_probabilities,
)


@pytest.fixture(scope="module")
def pool() -> Pool:
    return colour_pool(RCFMNIST(scaling="unit", synthetic=True).load(0).train)


def test_probabilities_are_those_of_the_kernel(pool: Pool) -> None:
    label, feature, uniform = make_samplers(pool, 0.2).values()
    shown = np.array([3, 7, 20])
    weight = np.exp(-np.square(pool.y[shown].astype(float) - pool.y[5]) / (2 * 0.2**2))
    np.testing.assert_allclose(partner_probabilities(label, 5, shown), weight / weight.sum())
    np.testing.assert_allclose(partner_probabilities(uniform, 5, shown), 1 / 3)
    x = pool.images.reshape(len(pool.y), -1).astype(float)
    energy = np.square(x[shown] - x[5]).sum(axis=1) / (2 * feature.bandwidth**2)
    np.testing.assert_allclose(
        partner_probabilities(feature, 5, shown), np.exp(-energy) / np.exp(-energy).sum(), rtol=1e-4
    )
    for sampler in (label, feature, uniform):
        assert sampler.probabilities(5).sum() == pytest.approx(1)
        assert partner_probabilities(sampler, 5, shown).sum() == pytest.approx(1)


def test_labels_prefer_the_same_angle_to_a_far_one_whatever_the_domain(pool: Pool) -> None:
    anchor = anchor_of(pool, 0)
    near, far = partner_candidates(pool, anchor, (0.0,), [[1]])[0], partner_candidates(pool, anchor, (200.0,), [[0]])[0]
    label, _, uniform = make_samplers(pool, 0.2).values()
    p_near, p_far = partner_probabilities(label, anchor, np.array([near, far]))
    assert p_near > 0.9 > p_far
    assert pool.group[near] != pool.group[anchor] == pool.group[far]
    gap = np.abs(pool.degrees - pool.degrees[anchor])
    assert expected_value(label, anchor, gap) < expected_value(uniform, anchor, gap)
    others = np.arange(len(pool.y)) != anchor
    assert expected_value(uniform, anchor, pool.group != 0) == pytest.approx(np.mean(pool.group[others] != 0))


def test_candidates_are_the_nearest_to_the_angles_sorted_and_all_different(pool: Pool) -> None:
    anchor = anchor_of(pool, 0)
    assert abs(pool.degrees[anchor] - 60) == np.abs(pool.degrees[pool.group == 0] - 60).min()
    shown = partner_candidates(pool, anchor, (0.0, 0.0, 90.0), [[0], [1, 0]])
    assert len({anchor, *shown}) == 7
    assert (np.diff(pool.degrees[shown]) >= 0).all()
    with pytest.raises(InputError, match="group 9 has no example"):
        partner_candidates(pool, anchor, (0.0,), [[9]])


def test_the_bars_are_the_probabilities(pool: Pool) -> None:
    anchor = anchor_of(pool, 0)
    shown = partner_candidates(pool, anchor, (-20.0, 100.0), [[0], [1]])
    samplers = make_samplers(pool, 0.2)
    drawn = pairs_figure(pool, anchor, shown, samplers, group="domain", title_of_all="x")
    images, bars = drawn.axes[:5], drawn.axes[5:]
    assert images[0].get_title().startswith("anchor, ")
    np.testing.assert_array_equal(images[2].images[0].get_array(), pool.images[shown[1]])
    for axis, sampler in zip(bars, samplers.values(), strict=True):
        assert [b.get_height() for b in axis.patches] == pytest.approx(
            list(partner_probabilities(sampler, anchor, shown))
        )


def test_views_of_objects_become_one_pool() -> None:
    x = np.random.default_rng(0).integers(0, 256, (3, 4, 6, 8), dtype=np.uint8)
    y = np.linspace(0, 0.9, 12, dtype=np.float32).reshape(3, 4)
    pool = object_pool(Views(x, y, ("a", "b", "c"), {}))
    assert pool.images.shape == (12, 3, 4)
    assert pool.images[5, 0, 0] == pytest.approx(x[1, 1, :2, :2].mean() / 255)
    assert pool.degrees[5] == pytest.approx(360 * y[1, 1])
    assert pool.group.tolist() == [0] * 4 + [1] * 4 + [2] * 4


def test_bandwidths_are_those_of_the_presets() -> None:
    assert (paper_bandwidth("rcf_mnist"), paper_bandwidth("pascal1d_rendered")) == (0.2, 1.0)


def test_absent_renderings_are_one_line_that_says_how_to_get_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("CMIXUP_DATA", str(tmp_path))
    monkeypatch.delitem(PICTURES, "rcf_mnist")
    with pytest.raises(SystemExit):
        main(["pairs", f"results={tmp_path}"])
    (line,) = capsys.readouterr().err.splitlines()
    assert "make render-pascal1d" in line
    assert not (tmp_path / "figures").exists()
