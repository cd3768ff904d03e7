"""Sparse rows: the heaviest partners stored, all others behind one uniform slot with a tight envelope."""

from __future__ import annotations

from typing import Any

import numpy as np

from cmixup.errors import InputError
from cmixup.sampling.cdf import ROWS_AT_ONCE, search_rows
from cmixup.sampling.distance import pair_distance
from cmixup.sampling.inputs import Floats, Ints
from cmixup.sampling.kernels import Kernel
from cmixup.sampling.stream import Rows, round_limit

ENTRY_BYTES = 12


class SparseRows:
    """Exact partner draws from the m heaviest partners of each row, m as the budget allows.

    With tau the largest weight left out, the others share a slot of mass tau * N: propose j uniformly, refuse
    it if it is stored, accept with K_ij / tau. Anchors still rejected after `round_limit` rounds take their
    exact row.

    Args:
        labels: (N,) or (N, d) float32 or float64; held, not copied.
        kernel: weights.
        memory_budget: bytes.

    Raises:
        InputError: the budget does not allow one stored partner a row.
    """

    name = "sparse"

    def __init__(self, labels: Any, kernel: Kernel, memory_budget: int) -> None:
        n = len(labels)
        m = kept(n, memory_budget)
        if m < 1:
            raise InputError(f"method sparse needs {n * (ENTRY_BYTES + 8)} bytes, above {memory_budget=}")
        self.kernel = kernel
        self.rows = Rows(labels, kernel)
        self._index = np.empty((n, m), dtype=np.int32)
        self._cumulative = np.empty((n, m))
        self._tau = np.empty(n)
        for s in range(0, n, ROWS_AT_ONCE):
            part = slice(s, s + ROWS_AT_ONCE)
            weight = self.rows.weights(np.arange(s, min(s + ROWS_AT_ONCE, n)))
            index, self._tau[part] = heaviest(weight, m)
            self._index[part] = index
            self._cumulative[part] = np.cumsum(np.take_along_axis(weight, index, axis=1), axis=1)

    @property
    def nbytes(self) -> int:
        """Bytes held beside the labels."""
        return int(self._index.nbytes + self._cumulative.nbytes + self._tau.nbytes)

    def draw(self, anchors: Ints, rng: np.random.Generator) -> Ints:
        """Partners (B,) int64 of anchors (B,) that are indices of labels."""
        n, m = self._index.shape
        distances = self.rows.distances
        partners = np.empty(len(anchors), dtype=np.int64)
        pending = np.arange(len(anchors))
        for _ in range(round_limit(distances.labels)):
            row = anchors[pending]
            mass, tau = self._cumulative[row, -1], self._tau[row]
            level = rng.random(len(row)) * (mass + n * tau)
            stored = np.flatnonzero(level < mass)
            entry = search_rows(self._cumulative.reshape(-1), row[stored] * m, m, level[stored])
            partners[pending[stored]] = self._index[row[stored], entry]
            other = np.flatnonzero(level >= mass)
            row, tau = row[other], tau[other]
            proposal = rng.integers(n, size=len(other))
            partners[pending[other]] = proposal
            distance = pair_distance(distances.at(proposal), distances.at(row), distances.d)
            weight = np.exp(-self.kernel.excess(distance, 0.0))
            refused = rng.random(len(other)) * tau >= weight
            # Membership by index: comparing K with tau would depend on rounding where distances tie.
            index = search_rows(self._index.reshape(-1), row * m, m, proposal - 1)
            refused |= self._index[row, index] == proposal
            pending = pending[other[refused]]
            if not pending.size:
                return partners
        partners[pending] = self.rows.draw(anchors[pending], rng)
        return partners

    def draw_points(self, points: Floats, rng: np.random.Generator) -> Ints:
        """Partners (B,) int64 of labels (B,) or (B, d) float64 outside the data."""
        return self.rows.draw_points(points, rng)


def kept(n: int, memory_budget: int) -> int:
    """Partners a row that the budget allows, at most all of them."""
    return min(n, (memory_budget // n - 8) // ENTRY_BYTES)


def heaviest(weight: Floats, m: int) -> tuple[Ints, Floats]:
    """Indices (B, m), ascending, of the m heaviest of each row (B, N), and a bound (B,) on the rest."""
    n = weight.shape[1]
    if m == n:
        return np.tile(np.arange(n), (len(weight), 1)), np.zeros(len(weight))
    order = np.argpartition(weight, n - m - 1, axis=1)
    edge = np.take_along_axis(weight, order[:, n - m - 1 : n - m], axis=1)[:, 0]
    # A matrix product leaves about 1e-10 of error: the envelope has to cover it.
    return np.sort(order[:, n - m :], axis=1), edge * (1 + 1e-8)


def pilot(labels: Any, kernel: Kernel, memory_budget: int, anchors: int = 64) -> float:
    """Mean acceptance over a fixed choice of rows."""
    m = kept(len(labels), memory_budget)
    if m < 1:
        return 0.0
    rng = np.random.default_rng(0)  # fixed: the method chosen must not vary
    chosen = np.sort(rng.choice(len(labels), size=min(anchors, len(labels)), replace=False))
    weight = Rows(labels, kernel).weights(chosen)
    index, tau = heaviest(weight, m)
    stored = np.take_along_axis(weight, index, axis=1).sum(axis=1)
    return float((weight.sum(axis=1) / (stored + len(labels) * tau)).mean())
