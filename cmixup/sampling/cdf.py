"""Cumulative rows are stored as 32-bit integers, and the draws are corrected to be exact.

The rows take 4 N^2 bytes, and a draw is a binary search.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cmixup.errors import InputError
from cmixup.sampling.inputs import Floats, Ints, Labels
from cmixup.sampling.kernels import Kernel
from cmixup.sampling.stream import Rejection, StreamedSampler

ROWS_PER_CHUNK = 64
# The counts of a row add up to at most this: the largest sum that fits 32 bits, less a margin for rounding.
MAX_TOTAL = 2.0**32 - 2


class CdfRows(Rejection):
    """Exact partner draws from N x N cumulative rows.

    Rounding a cumulative row to 32 bits would change probabilities (near 1, float32 steps are as large as
    1 / N). So row i stores counts c_ij = ceil(K_ij * scale_i), never too small, as a cumulative sum below
    2^32; j is proposed with probability c_ij / sum c and accepted with K_ij * scale_i / c_ij. As
    K_ij * scale_i > c_ij - 1, nearly all proposals are accepted without looking at a label.
    The table takes 4 N^2 bytes. Arguments are those of `SamplingAlgorithm`.
    """

    name = "cdf"

    def __init__(self, labels: Labels, kernel: Kernel, memory_budget: int) -> None:
        n = len(labels)
        if 4 * n * n > memory_budget:
            raise InputError(f"method cdf needs {4 * n * n} bytes, above memory_budget={memory_budget}")
        self._streamed = StreamedSampler(labels, kernel)
        self.kernel = self._streamed.kernel
        self._cumulative = np.empty((n, n), dtype=np.uint32)
        self._scale = np.empty(n)
        for s in range(0, n, ROWS_PER_CHUNK):
            weight = self._streamed.weights(np.arange(s, min(s + ROWS_PER_CHUNK, n)))
            scale = (MAX_TOTAL - n) / weight.sum(axis=1)
            weight *= scale[:, None]
            np.ceil(weight, out=weight)
            self._cumulative[s : s + ROWS_PER_CHUNK] = np.cumsum(weight, axis=1)
            self._scale[s : s + ROWS_PER_CHUNK] = scale

    def propose(self, anchors: Ints, rng: np.random.Generator) -> tuple[Ints, NDArray[np.bool_]]:
        """Propose by the counts, and refuse by the weights."""
        n = len(self._scale)
        flat = self._cumulative.reshape(-1)
        level = rng.integers(flat.take(anchors * n + n - 1).astype(np.int64))
        proposal = search_rows(flat, anchors * n, n, level)
        top = flat.take(anchors * n + proposal).astype(np.int64)
        count = top - np.where(proposal > 0, flat.take(anchors * n + np.maximum(proposal - 1, 0)), 0)
        toss = rng.random(len(anchors)) * count
        refused = toss > count - 1
        close, row = np.flatnonzero(refused), anchors[refused]
        distance = self._streamed.distances.between(proposal[close], row)
        refused[close] = toss[close] >= np.exp(-self.kernel.excess(distance, 0.0)) * self._scale[row]
        return proposal, refused


def search_rows(flat: NDArray[Any], start: Ints, width: int, level: Floats | Ints) -> Ints:
    """Find the first entry above a level in ascending rows that lie one after the other.

    Args:
        flat: (S,) numbers; row b is flat[start[b] : start[b] + width].
        start: (B,) first entry of each row.
        width: entries of a row.
        level: (B,) the last entry of every row has to lie above its level.

    Returns:
        (B,) int64 offsets of the entries found from the start of their rows.
    """
    low = np.zeros(len(start), dtype=np.int64)
    length = width
    while length > 1:  # branch-free binary search: all rows halve in step
        half = length // 2
        low += half * (flat.take(start + low + (half - 1)) <= level)
        length -= half
    return low
