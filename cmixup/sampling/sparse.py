"""Sparse rows: the heaviest partners are stored; all others share one uniform slot with a tight envelope."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cmixup.errors import InputError
from cmixup.sampling.cdf import ROWS_PER_CHUNK, search_rows
from cmixup.sampling.inputs import Floats, Ints, Labels
from cmixup.sampling.kernels import Kernel
from cmixup.sampling.stream import Rejection, StreamedSampler

BYTES_PER_ENTRY = 12
PAIRS_PER_CHUNK = 1 << 22  # weights of the set-up that are there at once: 32 MiB, of which a few copies live


class SparseRows(Rejection):
    """Exact partner draws that store the m heaviest partners of each row; the budget decides m.

    With tau the largest weight left out, the others share a slot of mass tau * N: j is proposed uniformly,
    refused if it is stored, and else accepted with probability K_ij / tau. Arguments are those of `SamplingAlgorithm`;
    the budget must hold one stored partner in each row.
    """

    name = "sparse"

    def __init__(self, labels: Labels, kernel: Kernel, memory_budget: int) -> None:
        n = len(labels)
        m = n_stored(n, memory_budget)
        if m < 1:
            raise InputError(f"method sparse needs {n * (BYTES_PER_ENTRY + 8)} bytes, above {memory_budget=}")
        self.kernel = kernel
        self._streamed = StreamedSampler(labels, kernel)
        self._index = np.empty((n, m), dtype=np.int32)
        self._cumulative = np.empty((n, m))
        self._tau = np.empty(n)
        step = rows_at_once(n)
        for s in range(0, n, step):
            part = slice(s, s + step)
            weight = self._streamed.weights(np.arange(s, min(s + step, n)))
            index, self._tau[part] = heaviest(weight, m)
            self._index[part] = index
            self._cumulative[part] = np.cumsum(np.take_along_axis(weight, index, axis=1), axis=1)

    def propose(self, anchors: Ints, rng: np.random.Generator) -> tuple[Ints, NDArray[np.bool_]]:
        """Take a stored partner, or propose any other."""
        n, m = self._index.shape
        mass, tau = self._cumulative[anchors, -1], self._tau[anchors]
        level = rng.random(len(anchors)) * (mass + n * tau)
        proposal, refused = np.empty(len(anchors), dtype=np.int64), level >= mass
        stored, other = np.flatnonzero(~refused), np.flatnonzero(refused)
        row = anchors[stored]
        entry = search_rows(self._cumulative.reshape(-1), row * m, m, level[stored])
        proposal[stored] = self._index[row, entry]
        row = anchors[other]
        proposal[other] = rng.integers(n, size=len(other))
        weight = np.exp(-self.kernel.excess(self._streamed.distances.between(proposal[other], row), 0.0))
        refused[other] = rng.random(len(other)) * tau[other] >= weight
        # Stored partners are known by index: comparing K with tau would depend on rounding where distances tie.
        index = search_rows(self._index.reshape(-1), row * m, m, proposal[other] - 1)
        refused[other] |= self._index[row, index] == proposal[other]
        return proposal, refused


def n_stored(n: int, memory_budget: int) -> int:
    """Return how many partners of each row fit the budget (bytes), at most all of them."""
    return min(n, (memory_budget // n - 8) // BYTES_PER_ENTRY)


def rows_at_once(n: int) -> int:
    """Return of how many rows the weights are computed at once, for n labels."""
    return max(1, min(ROWS_PER_CHUNK, PAIRS_PER_CHUNK // n))


def heaviest(weight: Floats, m: int) -> tuple[Ints, Floats]:
    """Return the indices (B, m), ascending, of the m heaviest of each row (B, N), and a bound (B,) on the rest."""
    n = weight.shape[1]
    if m == n:
        return np.tile(np.arange(n), (len(weight), 1)), np.zeros(len(weight))
    order = np.argpartition(weight, n - m - 1, axis=1)
    edge = np.take_along_axis(weight, order[:, n - m - 1 : n - m], axis=1)[:, 0]
    # A matrix product leaves about 1e-10 of error: the envelope has to cover it.
    return np.sort(order[:, n - m :], axis=1), edge * (1 + 1e-8)


def pilot(labels: Labels, kernel: Kernel, memory_budget: int, anchors: int = 64) -> float:
    """Return the mean acceptance of one round over a fixed choice of rows."""
    m = n_stored(len(labels), memory_budget)
    if m < 1:
        return 0.0
    rng = np.random.default_rng(0)  # fixed: the algorithm chosen must not vary
    chosen = np.sort(rng.choice(len(labels), size=min(anchors, len(labels)), replace=False))
    streamed, step, accepted = StreamedSampler(labels, kernel), rows_at_once(len(labels)), []
    for s in range(0, len(chosen), step):
        weight = streamed.weights(chosen[s : s + step])
        index, tau = heaviest(weight, m)
        stored = np.take_along_axis(weight, index, axis=1).sum(axis=1)
        accepted.append(weight.sum(axis=1) / (stored + len(labels) * tau))
    return float(np.concatenate(accepted).mean())
