"""Slot tables imply the exact row, without a single draw; rows in blocks and memory maps give the dense row."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cmixup import PartnerSampler
from cmixup.sampling import stream
from cmixup.sampling.cells import Cells, KDCells
from cmixup.sampling.distance import Kernel
from tests.sampling.goodness import exact_row, label_sets, p_value, typical_spread

SETS = label_sets()
MOST = 12  # anchors of a label set whose whole row is worked out


def implied_row(table, row, order, point):
    """P(.) (N,) of one round that accepts: slot probability / count * acceptance, by index."""
    first, last = table.row_start[row], table.row_start[row + 1]
    proposed = table.stay[first:last].copy()
    np.add.at(proposed, table.move[first:last] - first, 1 - table.stay[first:last])
    accepted = np.full(len(order), np.nan)
    for share, s in zip(proposed, range(first, last), strict=True):
        run = slice(table.start[s], table.start[s] + table.count[s])
        assert np.isnan(accepted[run]).all(), "slots overlap"
        values = table.values[run].astype(np.float64).reshape(table.count[s], -1)
        distance = np.sqrt(((values - point) ** 2).sum(axis=1))
        excess = table.kernel.excess(distance, table.gap[s])
        assert (excess >= -1e-9).all(), "a point is nearer than its slot's gap"
        accepted[run] = share / table.count[s] * np.exp(-excess)
    assert not np.isnan(accepted).any(), "slots leave points out"
    by_index = np.empty(len(order))
    by_index[order] = accepted
    return by_index / by_index.sum()


def check(build, labels, kernel):
    built = build(labels, kernel, 1 << 26)
    rows = built._cells
    for anchor in range(0, len(labels), 1 + len(labels) // MOST):
        got = implied_row(built.table, rows[anchor], built.order, np.asarray(labels[anchor], np.float64))
        wanted = exact_row(labels, kernel.bandwidth, anchor)
        np.testing.assert_allclose(got, wanted, rtol=1e-7, atol=1e-12)


@pytest.mark.parametrize("name", SETS)
def test_tables_imply_the_exact_row(name):
    labels = SETS[name]
    labels = labels.astype(np.float64) if labels.dtype.kind == "i" else labels
    builds = (Cells, KDCells) if labels.ndim == 1 else (KDCells,)
    for build in builds:
        for width in (0.0, 0.02, 0.5, 1e12):
            check(build, labels, Kernel(width * typical_spread(labels)))


@settings(max_examples=60, deadline=None, derandomize=True)
@given(
    labels=st.lists(st.floats(-1e9, 1e9, width=32) | st.integers(-3, 3).map(float), min_size=1, max_size=25),
    bandwidth=st.sampled_from([0.0, 1e-6, 0.3, 1.0, 1e3, 1e8, np.inf]),
)
def test_tables_imply_the_exact_row_for_any_labels(labels, bandwidth):
    for build in (Cells, KDCells):
        check(build, np.array(labels), Kernel(bandwidth))


@pytest.mark.parametrize("bandwidth", [1e-5, 1e-4, 2e-3])
def test_coarser_cells_are_taken_where_memory_is_short(bandwidth):
    labels = np.random.default_rng(0).random(20_000)
    fine, coarse = (Cells(labels, Kernel(bandwidth), budget) for budget in (1 << 30, 1 << 20))
    assert coarse.nbytes < fine.nbytes
    assert coarse.table is None or coarse.table.nbytes <= 1.1 * (1 << 20)
    for built in (fine, coarse):
        if built.table is not None:
            row = built._cells[77]
            got = implied_row(built.table, row, built.order, labels[77])
            np.testing.assert_allclose(got, exact_row(labels, bandwidth, 77), rtol=1e-7, atol=1e-12)


def test_blocks_merge_to_the_dense_row(monkeypatch):
    # Blocks of one to three labels, so that every merge is exercised.
    monkeypatch.setattr(stream, "DISTANCES_PER_BLOCK", 500)
    for labels in (np.random.default_rng(0).normal(size=40), np.random.default_rng(0).normal(size=(40, 6))):
        built = PartnerSampler(labels, 0.7, method="rows")
        np.testing.assert_allclose(built.probabilities(11), exact_row(labels, 0.7, 11), rtol=1e-9)
        drawn = built.draw(np.full(5000, 11), np.random.default_rng(2))
        assert p_value(drawn, exact_row(labels, 0.7, 11)) > 1e-3


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("method", ["cells", "uniform", "kd", "sparse", "rows"])
def test_memory_maps_draw_as_arrays_do(tmp_path, dtype, method):
    """They are read alone, so that labels are seen not to change."""
    labels = np.random.default_rng(0).normal(size=500 if method == "cells" else (500, 7)).astype(dtype)
    np.save(tmp_path / "labels.npy", labels)
    mapped = np.load(tmp_path / "labels.npy", mmap_mode="r")
    a, b = (PartnerSampler(given, 0.6, method=method) for given in (labels, mapped))
    assert isinstance(b._labels.base, np.memmap) or isinstance(b._labels, np.memmap)
    np.testing.assert_array_equal(a.epoch(np.random.default_rng(1)), b.epoch(np.random.default_rng(1)))
    np.testing.assert_array_equal(a.probabilities(9), b.probabilities(9))
    np.testing.assert_allclose(b.probabilities(9), exact_row(labels, 0.6, 9), rtol=1e-9)
