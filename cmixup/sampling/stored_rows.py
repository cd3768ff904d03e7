"""Rows of P in memory: cumulative weights of all partners, or of the heaviest that the budget holds."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cmixup.errors import InputError
from cmixup.sampling.distance import Kernel
from cmixup.sampling.inputs import Floats, Ints, Labels
from cmixup.sampling.stream import Rejection, Round

ROWS_PER_CHUNK = 64
BYTES_PER_ENTRY = 12  # of a part of a row; a whole row needs no indices
PAIRS_PER_CHUNK = 1 << 22  # weights of its set-up that are there at once: 32 MiB, in a few copies


class SparseRows(Rejection):
    """Exact partner draws that store whole rows, or the m heaviest partners of each; the budget decides m.

    With tau the largest weight left out, the others share a slot of mass tau * N: j is proposed uniformly,
    refused if it is stored, and else accepted with probability K_ij / tau.
    """

    name = "sparse"

    def __init__(self, labels: Labels, kernel: Kernel, memory_budget: int) -> None:
        n, m = len(labels), n_stored(len(labels), memory_budget)
        if m < 1:
            raise InputError(f"method sparse needs {n * (BYTES_PER_ENTRY + 8)} bytes, above {memory_budget=}")
        super().__init__(labels, kernel)
        self._index = np.empty((n, m if m < n else 0), dtype=np.int32)
        self._cumulative = np.empty((n, m))
        self._tau = np.zeros(n)
        step = max(1, min(ROWS_PER_CHUNK, PAIRS_PER_CHUNK // n))
        for s in range(0, n, step):
            part = slice(s, min(s + step, n))
            stored = weight = self._streamed.weights(np.arange(part.start, part.stop))
            if m < n:
                self._index[part], self._tau[part] = _heaviest(weight, m)
                stored = np.take_along_axis(weight, self._index[part], axis=1)
            np.cumsum(stored, axis=1, out=self._cumulative[part])

    def propose(self, anchors: Ints, rng: np.random.Generator) -> Round:
        """Take a stored partner, or propose any other."""
        n, m = self._cumulative.shape
        mass, tau = self._cumulative[anchors, -1], self._tau[anchors]
        level = rng.random(len(anchors)) * (mass + n * tau)
        if m == n:
            return _search_rows(self._cumulative, anchors, level), np.zeros(len(anchors), dtype=bool)
        proposal, refused = np.empty(len(anchors), dtype=np.int64), level >= mass
        stored, uniform = np.flatnonzero(~refused), np.flatnonzero(refused)
        row = anchors[stored]
        proposal[stored] = self._index[row, _search_rows(self._cumulative, row, level[stored])]
        row = anchors[uniform]
        proposal[uniform] = rng.integers(n, size=len(uniform))
        weight = np.exp(-self.kernel.excess(self.distances.between(proposal[uniform], row), 0.0))
        refused[uniform] = rng.random(len(uniform)) * tau[uniform] >= weight
        # Stored partners are known by index: comparing K with tau would depend on rounding where distances tie.
        refused[uniform] |= self._index[row, _search_rows(self._index, row, proposal[uniform] - 1)] == proposal[uniform]
        return proposal, refused


def n_stored(n: int, memory_budget: int) -> int:
    """Return how many partners of each row fit the budget (bytes): all, or the number m, or 0."""
    row_bytes = memory_budget // n - 8
    return n if row_bytes >= 8 * n else max(0, min(n - 1, row_bytes // BYTES_PER_ENTRY))


def _heaviest(weight: Floats, m: int) -> tuple[Ints, Floats]:
    """Return the indices (B, m), ascending, of the m heaviest of each row (B, N), and a bound (B,) on the rest."""
    n = weight.shape[1]
    order = np.argpartition(weight, n - m - 1, axis=1)
    edge = np.take_along_axis(weight, order[:, n - m - 1 : n - m], axis=1)[:, 0]
    # A matrix product leaves about 1e-10 of error: the envelope has to cover it.
    return np.sort(order[:, n - m :], axis=1), edge * (1 + 1e-8)


def _search_rows(table: NDArray[Any], rows: Ints, level: Floats | Ints) -> Ints:
    """Return the place (B,) int64 of the first entry above each level (B,) in ascending `rows` (B,) of a table.

    The last entry of a row lies above its level.
    """
    flat, start, length = table.reshape(-1), rows * table.shape[1], table.shape[1]
    low = np.zeros(len(rows), dtype=np.int64)
    while length > 1:  # branch-free binary search: all rows halve in step
        half = length // 2
        low += half * (flat.take(start + low + (half - 1)) <= level)
        length -= half
    return low
