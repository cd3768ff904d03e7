"""Uniform rejection: any j is proposed and accepted with probability K_ij.

Nothing is set up, and a draw costs 1 / mean(K) proposals.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cmixup.sampling.inputs import Ints, Labels
from cmixup.sampling.kernels import Kernel
from cmixup.sampling.stream import Rejection, StreamedSampler

# Anchors are handled in chunks of so many coordinates (anchors x dimensions).
COORDINATES_PER_CHUNK = 1 << 18


class UniformRejection(Rejection):
    """Exact draws by rejection from the uniform distribution, for wide bandwidths; arguments of `SamplingAlgorithm`."""

    name = "uniform"

    def __init__(self, labels: Labels, kernel: Kernel) -> None:
        self.kernel = kernel
        self._streamed = StreamedSampler(labels, kernel)

    def draw(self, anchors: Ints, rng: np.random.Generator) -> Ints:
        """Return partners (B,) int64 for `anchors` (B,), indices of labels."""
        step = max(1, COORDINATES_PER_CHUNK // self._streamed.distances.d)
        chunks = [super(UniformRejection, self).draw(anchors[s : s + step], rng) for s in range(0, len(anchors), step)]
        return np.concatenate([np.empty(0, dtype=np.int64), *chunks])

    def propose(self, anchors: Ints, rng: np.random.Generator) -> tuple[Ints, NDArray[np.bool_]]:
        """Propose any partner, and refuse by the kernel."""
        proposal = rng.integers(len(self._streamed.labels), size=len(anchors))
        distance = self._streamed.distances.between(proposal, anchors)
        return proposal, rng.standard_exponential(len(anchors)) < self.kernel.excess(distance, 0.0)
