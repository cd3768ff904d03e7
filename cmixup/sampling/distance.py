"""Euclidean distances between labels: pairs, and blocks of rows, in label units."""

from __future__ import annotations

from typing import Any

import numpy as np

from cmixup.sampling.inputs import Floats, Ints
from cmixup.sampling.kernels import Kernel

# Entries of a temporary (rows x labels x dimensions) block: 16 MiB in float64.
BLOCK = 1 << 21
# Largest error that a matrix product may leave in an energy.
TOLERANCE = 1e-10


def pair_distance(a: Floats, b: Floats, d: int) -> Floats:
    """Distance of `a` and `b`, (..., d) or, with d = 1, (...) float64 each -> (...) float64."""
    difference = a - b
    if d == 1:
        return np.abs(difference, out=difference)
    # One summation order for pairs, rows and boxes alike: a tophat's edge must not depend on the method.
    return np.sqrt(np.einsum("...d,...d->...", difference, difference))


class Distances:
    """Distances from any points to blocks of the labels, accurate enough for `kernel`.

    A matrix product (centred, float64) is used where its cancellation error, eps * |y|^2 / s^2, is below
    1e-10 in the energy; else (outliers, tiny bandwidths, few dimensions, other kernels) differences.

    Args:
        labels: (N,) or (N, d) float32 or float64, maybe a memory map; read in blocks, never copied whole.
        kernel: decides how accurate distances have to be.
    """

    def __init__(self, labels: Any, kernel: Kernel) -> None:
        self.labels = labels
        self.d = 1 if labels.ndim == 1 else int(labels.shape[1])
        self._product = self.d > 3 and kernel.name == "gaussian" and kernel.bandwidth > 0
        self._largest = TOLERANCE / np.finfo(np.float64).eps * kernel.bandwidth**2 if self._product else 0.0
        if self._product:
            n, step = len(labels), max(1, BLOCK // self.d)
            starts = range(0, n, step)
            self._centre = sum(self.read(s, s + step).sum(axis=0) for s in starts) / n
            self._norms = np.concatenate(
                [_squared_norm(self.read(s, s + step) - self._centre) for s in starts], dtype=np.float64
            )
            self._product = bool(self._norms.max() <= self._largest)

    def read(self, start: int, stop: int) -> Floats:
        """Labels start..stop-1 as float64."""
        return np.asarray(self.labels[start:stop], dtype=np.float64)

    def at(self, index: Ints) -> Floats:
        """Labels at the given indices as float64."""
        return np.asarray(self.labels[index], dtype=np.float64)

    def to(self, points: Floats, start: int, stop: int, anchors: Ints | None = None) -> Floats:
        """Distances (B, stop - start) from `points` (B,) or (B, d) to labels start..stop-1.

        `anchors` (B,) are the points' own indices, where they have one: that distance is exactly 0.
        """
        block = self.read(start, stop)
        if self.d == 1:
            return pair_distance(points[:, None], block, 1)
        if self._product:
            centred = points - self._centre
            norms = _squared_norm(centred)
            if norms.max() <= self._largest:
                return self._by_product(centred, norms, block - self._centre, start, anchors)
        rows = max(1, BLOCK // block.size)
        return np.concatenate(
            [pair_distance(points[r : r + rows, None, :], block, self.d) for r in range(0, len(points), rows)]
        )

    def _by_product(self, points: Floats, norms: Floats, block: Floats, start: int, anchors: Ints | None) -> Floats:
        squared = points @ block.T
        squared *= -2.0
        squared += norms[:, None]
        squared += self._norms[start : start + len(block)]
        np.maximum(squared, 0.0, out=squared)
        if anchors is not None:
            own = np.flatnonzero((anchors >= start) & (anchors < start + len(block)))
            squared[own, anchors[own] - start] = 0.0
        return np.sqrt(squared, out=squared)


def _squared_norm(values: Floats) -> Floats:
    return np.einsum("nd,nd->n", values, values)
