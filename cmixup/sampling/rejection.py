"""Uniform rejection: any j is proposed and accepted with probability K_ij.

Nothing is set up, and a draw costs 1 / mean(K) proposals.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cmixup.sampling.inputs import Floats, Ints, Labels
from cmixup.sampling.kernels import Kernel
from cmixup.sampling.stream import Rejection, StreamedSampler

# Anchors are handled in chunks of so many coordinates (anchors x dimensions).
COORDINATES_PER_CHUNK = 1 << 18
# Seconds on one core, of which only the ratios decide: of a round, a proposal in it, and a coordinate of that.
SECONDS_A_ROUND, SECONDS_A_PROPOSAL, SECONDS_A_COORDINATE = 15e-6, 60e-9, 10e-9


class UniformRejection(Rejection):
    """Exact draws by rejection from the uniform distribution: for wide bandwidths, and for a batch, drawn once.

    Args:
        labels, kernel, period: see `StreamedSampler`.
    """

    name = "uniform"

    def __init__(self, labels: Labels, kernel: Kernel, period: Floats | None = None) -> None:
        self._streamed = StreamedSampler(labels, kernel, period)
        self.kernel = self._streamed.kernel
        self.at_once = max(1, COORDINATES_PER_CHUNK // self._streamed.distances.d)

    def propose(self, anchors: Ints, rng: np.random.Generator) -> tuple[Ints, NDArray[np.bool_]]:
        """Propose any partner, and refuse by the kernel."""
        proposal = rng.integers(len(self._streamed.labels), size=len(anchors))
        distance = self._streamed.distances.between(proposal, anchors)
        return proposal, rng.standard_exponential(len(anchors)) < self.kernel.excess(distance, 0.0)
