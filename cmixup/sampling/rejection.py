"""Uniform rejection: any j is proposed and accepted with probability K_ij.

Nothing is set up, and a draw costs 1 / mean(K) proposals.
"""

from __future__ import annotations

import numpy as np

from cmixup.sampling.distance import pair_distance
from cmixup.sampling.inputs import Ints, Labels
from cmixup.sampling.kernels import Kernel
from cmixup.sampling.stream import SamplingAlgorithm, StreamedSampler, round_limit

# Anchors are handled in chunks of so many coordinates (anchors x dimensions).
COORDINATES_PER_CHUNK = 1 << 18


class UniformRejection(SamplingAlgorithm):
    """Exact partner draws by rejection from the uniform distribution, for wide bandwidths.

    Anchors still rejected after `round_limit` rounds take their exact row. Arguments are those of `SamplingAlgorithm`.
    """

    name = "uniform"

    def __init__(self, labels: Labels, kernel: Kernel) -> None:
        self.kernel = kernel
        self._streamed = StreamedSampler(labels, kernel)

    def draw(self, anchors: Ints, rng: np.random.Generator) -> Ints:
        """Return partners (B,) int64 for `anchors` (B,), indices of labels."""
        distances = self._streamed.distances
        partners = np.empty(len(anchors), dtype=np.int64)
        step = max(1, COORDINATES_PER_CHUNK // distances.d)
        for s in range(0, len(anchors), step):
            chunk = anchors[s : s + step]
            points = distances.at(chunk)
            pending = np.arange(len(chunk))
            for _ in range(round_limit(distances.labels)):
                proposal = rng.integers(len(distances.labels), size=len(pending))
                distance = pair_distance(distances.at(proposal), points[pending], distances.d)
                partners[s + pending] = proposal
                refused = rng.standard_exponential(len(pending)) < self.kernel.excess(distance, 0.0)
                pending = pending[refused]
                if not pending.size:
                    break
            if pending.size:
                partners[s + pending] = self._streamed.draw_points(points[pending], rng, chunk[pending])
        return partners


def pilot(labels: Labels, kernel: Kernel, proposals: int = 1000) -> float:
    """Return the mean weight of uniform pairs: the fraction of proposals that uniform rejection would accept."""
    rng = np.random.default_rng(0)  # a fixed choice of pairs: the algorithm chosen must not vary
    first, second = rng.integers(len(labels), size=(2, proposals))
    a, b = (np.asarray(labels[i], dtype=np.float64) for i in (first, second))
    return float(np.exp(-kernel.excess(pair_distance(a, b, labels.ndim), 0.0)).mean())
