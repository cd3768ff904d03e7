"""Rows of P in memory: cumulative rows of all partners, or of the heaviest that the budget holds."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from cmixup.errors import InputError
from cmixup.sampling.distance import Kernel
from cmixup.sampling.inputs import Floats, Ints, Labels
from cmixup.sampling.stream import Rejection, Round, StreamedSampler

ROWS_PER_CHUNK = 64
# The counts of a cumulative row add up to at most this: the largest sum that fits 32 bits, less a margin for rounding.
MAX_TOTAL = 2.0**32 - 2
BYTES_PER_ENTRY = 12  # of a sparse row
PAIRS_PER_CHUNK = 1 << 22  # weights of its set-up that are there at once: 32 MiB, of which a few copies live


class CdfRows(Rejection):
    """Exact partner draws by binary search in N x N cumulative rows, 4 N^2 bytes.

    Rounding a cumulative row to 32 bits would change probabilities (near 1, float32 steps are as large as
    1 / N). So row i stores counts c_ij = ceil(K_ij * scale_i), never too small, as a cumulative sum below
    2^32; j is proposed with probability c_ij / sum c and accepted with K_ij * scale_i / c_ij. As
    K_ij * scale_i > c_ij - 1, nearly all proposals are accepted without looking at a label.
    """

    name = "cdf"

    def __init__(self, labels: Labels, kernel: Kernel, memory_budget: int) -> None:
        n = len(labels)
        if 4 * n * n > memory_budget:
            raise InputError(f"method cdf needs {4 * n * n} bytes, above memory_budget={memory_budget}")
        super().__init__(labels, kernel)
        self._cumulative = np.empty((n, n), dtype=np.uint32)
        self._scale = np.empty(n)
        for s in range(0, n, ROWS_PER_CHUNK):
            weight = self._streamed.weights(np.arange(s, min(s + ROWS_PER_CHUNK, n)))
            scale = (MAX_TOTAL - n) / weight.sum(axis=1)
            weight *= scale[:, None]
            np.ceil(weight, out=weight)
            self._cumulative[s : s + ROWS_PER_CHUNK] = np.cumsum(weight, axis=1)
            self._scale[s : s + ROWS_PER_CHUNK] = scale

    def propose(self, anchors: Ints, rng: np.random.Generator) -> Round:
        """Propose by the counts, and refuse by the weights."""
        n = len(self._scale)
        flat = self._cumulative.reshape(-1)
        level = rng.integers(flat.take(anchors * n + n - 1).astype(np.int64))
        proposal = _search_rows(flat, anchors * n, n, level)
        top = flat.take(anchors * n + proposal).astype(np.int64)
        count = top - np.where(proposal > 0, flat.take(anchors * n + np.maximum(proposal - 1, 0)), 0)
        toss = rng.random(len(anchors)) * count
        refused = toss > count - 1
        close, row = np.flatnonzero(refused), anchors[refused]
        distance = self.distances.between(proposal[close], row)
        refused[close] = toss[close] >= np.exp(-self.kernel.excess(distance, 0.0)) * self._scale[row]
        return proposal, refused


class SparseRows(Rejection):
    """Exact partner draws that store the m heaviest partners of each row; the budget, for one or more, decides m.

    With tau the largest weight left out, the others share a slot of mass tau * N: j is proposed uniformly,
    refused if it is stored, and else accepted with probability K_ij / tau.
    """

    name = "sparse"

    def __init__(self, labels: Labels, kernel: Kernel, memory_budget: int) -> None:
        n = len(labels)
        m = _n_stored(n, memory_budget)
        if m < 1:
            raise InputError(f"method sparse needs {n * (BYTES_PER_ENTRY + 8)} bytes, above {memory_budget=}")
        super().__init__(labels, kernel)
        self._index = np.empty((n, m), dtype=np.int32)
        self._cumulative = np.empty((n, m))
        self._tau = np.empty(n)
        step = _rows_at_once(n)
        for s in range(0, n, step):
            part = slice(s, s + step)
            weight = self._streamed.weights(np.arange(s, min(s + step, n)))
            index, self._tau[part] = _heaviest(weight, m)
            self._index[part] = index
            self._cumulative[part] = np.cumsum(np.take_along_axis(weight, index, axis=1), axis=1)

    def propose(self, anchors: Ints, rng: np.random.Generator) -> Round:
        """Take a stored partner, or propose any other."""
        n, m = self._index.shape
        mass, tau = self._cumulative[anchors, -1], self._tau[anchors]
        level = rng.random(len(anchors)) * (mass + n * tau)
        proposal, refused = np.empty(len(anchors), dtype=np.int64), level >= mass
        stored, other = np.flatnonzero(~refused), np.flatnonzero(refused)
        row = anchors[stored]
        entry = _search_rows(self._cumulative.reshape(-1), row * m, m, level[stored])
        proposal[stored] = self._index[row, entry]
        row = anchors[other]
        proposal[other] = rng.integers(n, size=len(other))
        weight = np.exp(-self.kernel.excess(self.distances.between(proposal[other], row), 0.0))
        refused[other] = rng.random(len(other)) * tau[other] >= weight
        # Stored partners are known by index: comparing K with tau would depend on rounding where distances tie.
        index = _search_rows(self._index.reshape(-1), row * m, m, proposal[other] - 1)
        refused[other] |= self._index[row, index] == proposal[other]
        return proposal, refused


def sparse_acceptance(labels: Labels, kernel: Kernel, memory_budget: int) -> float:
    """Return the mean acceptance of one round of `SparseRows` over 64 rows, 0 where none can be stored."""
    n, m = len(labels), _n_stored(len(labels), memory_budget)
    if m < 1:
        return 0.0
    rng = np.random.default_rng(0)  # fixed: the algorithm chosen must not vary
    chosen = np.sort(rng.choice(n, size=min(64, n), replace=False))
    streamed, step, accepted = StreamedSampler(labels, kernel), _rows_at_once(n), []
    for s in range(0, len(chosen), step):
        weight = streamed.weights(chosen[s : s + step])
        index, tau = _heaviest(weight, m)
        stored = np.take_along_axis(weight, index, axis=1).sum(axis=1)
        accepted.append(weight.sum(axis=1) / (stored + n * tau))
    return float(np.concatenate(accepted).mean())


def _n_stored(n: int, memory_budget: int) -> int:
    """Return how many partners of each row fit the budget (bytes), at most all of them."""
    return min(n, (memory_budget // n - 8) // BYTES_PER_ENTRY)


def _rows_at_once(n: int) -> int:
    return max(1, min(ROWS_PER_CHUNK, PAIRS_PER_CHUNK // n))


def _heaviest(weight: Floats, m: int) -> tuple[Ints, Floats]:
    """Return the indices (B, m), ascending, of the m heaviest of each row (B, N), and a bound (B,) on the rest."""
    n = weight.shape[1]
    if m == n:
        return np.tile(np.arange(n), (len(weight), 1)), np.zeros(len(weight))
    order = np.argpartition(weight, n - m - 1, axis=1)
    edge = np.take_along_axis(weight, order[:, n - m - 1 : n - m], axis=1)[:, 0]
    # A matrix product leaves about 1e-10 of error: the envelope has to cover it.
    return np.sort(order[:, n - m :], axis=1), edge * (1 + 1e-8)


def _search_rows(flat: NDArray[Any], start: Ints, width: int, level: Floats | Ints) -> Ints:
    """Return the offset (B,) int64 of the first entry above each level (B,) in ascending rows of `width` entries.

    Row b is flat[start[b] : start[b] + width], and its last entry lies above its level.
    """
    low = np.zeros(len(start), dtype=np.int64)
    length = width
    while length > 1:  # branch-free binary search: all rows halve in step
        half = length // 2
        low += half * (flat.take(start + low + (half - 1)) <= level)
        length -= half
    return low
