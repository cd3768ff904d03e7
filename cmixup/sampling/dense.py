"""The whole N x N table: for small N, and the reference that the other algorithms are tested against."""

from __future__ import annotations

import numpy as np

from cmixup.errors import InputError
from cmixup.sampling.inputs import Ints, Labels
from cmixup.sampling.kernels import Kernel
from cmixup.sampling.stream import SamplingAlgorithm, StreamedSampler


class Dense(SamplingAlgorithm):
    """Exact partner draws by inverse CDF over stored rows (C-Mixup paper, Algorithm 1 as written).

    The table takes 8 N^2 bytes. Arguments are those of `SamplingAlgorithm`.
    """

    name = "dense"

    def __init__(self, labels: Labels, kernel: Kernel, memory_budget: int) -> None:
        n = len(labels)
        if 8 * n * n > memory_budget:
            raise InputError(f"method dense needs {8 * n * n} bytes, above memory_budget={memory_budget}")
        self._streamed = StreamedSampler(labels, kernel)
        self._cumulative = np.empty((n, n))
        for i in range(n):
            np.cumsum(self._streamed.probabilities(i), out=self._cumulative[i])

    @property
    def nbytes(self) -> int:
        """Return the bytes held beside the labels."""
        return int(self._cumulative.nbytes)

    def draw(self, anchors: Ints, rng: np.random.Generator) -> Ints:
        """Return partners (B,) int64 for `anchors` (B,), indices of labels."""
        level = rng.random(len(anchors)) * self._cumulative[anchors, -1]
        drawn = [self._cumulative[a].searchsorted(v, "right") for a, v in zip(anchors, level, strict=True)]
        return np.array(drawn, dtype=np.int64)
