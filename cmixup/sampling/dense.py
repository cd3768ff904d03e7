"""The whole N x N table: the reference that the other methods are tested against, for small N."""

from __future__ import annotations

from typing import Any

import numpy as np

from cmixup.errors import InputError
from cmixup.sampling.inputs import Floats, Ints
from cmixup.sampling.kernels import Kernel
from cmixup.sampling.stream import Rows


class Dense:
    """Exact partner draws by inverse CDF over stored rows (paper Algorithm 1 as written).

    Args:
        labels: (N,) or (N, d) float32 or float64.
        kernel: weights.
        memory_budget: bytes.

    Raises:
        InputError: the table, 8 N^2 bytes, exceeds the budget.
    """

    name = "dense"

    def __init__(self, labels: Any, kernel: Kernel, memory_budget: int) -> None:
        n = len(labels)
        if 8 * n * n > memory_budget:
            raise InputError(f"method dense needs {8 * n * n} bytes, above memory_budget={memory_budget}")
        self._rows = Rows(labels, kernel)
        self._cumulative = np.empty((n, n))
        for i in range(n):
            row = self._rows.probabilities(self._rows.distances.at(np.array([i]))[0], i)
            np.cumsum(row, out=self._cumulative[i])
        self.nbytes = int(self._cumulative.nbytes)

    def draw(self, anchors: Ints, rng: np.random.Generator) -> Ints:
        """Partners (B,) int64 of anchors (B,) that are indices of labels."""
        level = rng.random(len(anchors)) * self._cumulative[anchors, -1]
        drawn = [np.searchsorted(self._cumulative[a], v, "right") for a, v in zip(anchors, level, strict=True)]
        return np.array(drawn, dtype=np.int64)

    def draw_points(self, points: Floats, rng: np.random.Generator) -> Ints:
        """Partners (B,) int64 of labels (B,) or (B, d) float64 outside the data."""
        return self._rows.draw_points(points, rng)
