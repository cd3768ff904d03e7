"""Streamed and memory-mapped forms give the dense row."""

import numpy as np
import pytest

from cmixup import PartnerSampler
from cmixup.sampling import stream
from cmixup.sampling.distance import Distances
from cmixup.sampling.kernels import Kernel
from cmixup.sampling.slots import alias_rows
from tests.sampling.goodness import exact_row, p_value


def test_blocks_merge_to_the_dense_row(monkeypatch):
    # Blocks of one to three labels, so that every merge is exercised.
    monkeypatch.setattr(stream, "DISTANCES_PER_BLOCK", 500)
    for labels in (np.random.default_rng(0).normal(size=40), np.random.default_rng(0).normal(size=(40, 6))):
        built = PartnerSampler(labels, 0.7, method="rows")
        np.testing.assert_allclose(built.probabilities(11), exact_row(labels, 0.7, 11), rtol=1e-9)
        drawn = built.draw(np.full(5000, 11), np.random.default_rng(2))
        assert p_value(drawn, exact_row(labels, 0.7, 11)) > 1e-3


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(
    ("shape", "method"), [((500,), "cells"), ((500,), "rows"), ((500, 7), "rows"), ((500, 7), "kd")]
)
def test_memory_maps_draw_as_arrays_do(tmp_path, dtype, shape, method):
    labels = np.random.default_rng(0).normal(size=shape).astype(dtype)
    np.save(tmp_path / "labels.npy", labels)
    mapped = np.load(tmp_path / "labels.npy", mmap_mode="r")
    a, b = (PartnerSampler(given, 0.6, method=method) for given in (labels, mapped))
    assert isinstance(b._given.base, np.memmap) or isinstance(b._given, np.memmap)
    np.testing.assert_array_equal(a.epoch(np.random.default_rng(1)), b.epoch(np.random.default_rng(1)))
    np.testing.assert_array_equal(a.probabilities(9), b.probabilities(9))
    np.testing.assert_allclose(b.probabilities(9), exact_row(labels, 0.6, 9), rtol=1e-9)


def test_matrix_product_is_used_only_where_it_is_accurate():
    wide = np.random.default_rng(0).normal(size=(50, 8))
    assert Distances(wide, Kernel("gaussian", 0.5))._product
    for labels, kernel in (
        (wide * 1e3, Kernel("gaussian", 0.5)),
        (np.append(wide, np.full((1, 8), 1e6), axis=0), Kernel("gaussian", 0.5)),
        (wide, Kernel("laplace", 0.5)),
        (wide, Kernel("gaussian", 0.0)),
        (wide[:, :2], Kernel("gaussian", 0.5)),
    ):
        assert not Distances(labels, kernel)._product
    # An offset costs nothing: labels are centred.
    near = Distances(wide + 1e4, Kernel("gaussian", 0.5))
    assert near._product
    got = near.to(near.at(np.arange(50)), 0, 50, np.arange(50))
    np.testing.assert_allclose(got, np.linalg.norm(wide[:, None] - wide, axis=2), atol=1e-7)
    assert (np.diag(got) == 0).all()
    # Points far outside the data are measured by differences.
    far = near.to(np.full((1, 8), 1e9), 0, 50)
    np.testing.assert_allclose(far[0], np.linalg.norm(wide + 1e4 - 1e9, axis=1), rtol=1e-15)


def test_alias_rows_hold_exactly_the_masses():
    rng = np.random.default_rng(0)
    width = rng.integers(1, 40, 200)
    row_start = np.concatenate([[0], np.cumsum(width)])
    mass = np.exp(rng.normal(size=row_start[-1]) * rng.choice([0, 1, 10], row_start[-1]))
    mass[rng.random(len(mass)) < 0.1] = 1e-300
    mass[row_start[3] : row_start[4]] = 1.0
    stay, move = alias_rows(mass, row_start)
    got = stay.copy()
    np.add.at(got, move, 1 - stay)
    row = np.repeat(np.arange(200), width)
    assert (row[move] == row).all()
    wanted = mass / np.add.reduceat(mass, row_start[:-1])[row] * width[row]
    np.testing.assert_allclose(got, wanted, atol=1e-12)
