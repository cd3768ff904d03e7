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
# Seconds on one core, of which only the ratios decide: of a round, a proposal in it, a coordinate of that, and one of
# the N weights of an exact row.
SECONDS_A_ROUND, SECONDS_A_PROPOSAL, SECONDS_A_COORDINATE, SECONDS_A_WEIGHT = 15e-6, 60e-9, 10e-9, 15e-9


class UniformRejection(Rejection):
    """Exact draws by rejection from the uniform distribution, for wide bandwidths; arguments of `SamplingAlgorithm`."""

    name = "uniform"

    def __init__(self, labels: Labels, kernel: Kernel) -> None:
        self._streamed = StreamedSampler(labels, kernel)
        self.kernel = self._streamed.kernel

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


def draw_once(labels: Labels, kernel: Kernel, rng: np.random.Generator, period: Floats | None = None) -> Ints:
    """Draw one partner for every label, where a set-up would not pay: of a batch, whose labels are never seen again.

    Uniform rounds are played while they save more exact rows than they cost; then the refused labels take their row.
    Whether a round is played does not depend on its own outcome, so the draws are exact.

    Args:
        labels: (N,) or (N, d) float64.
        kernel: the kernel that gives the weights.
        rng: source of randomness.
        period: (d,) circles that outputs go round, see `pair_distance`.

    Returns:
        (N,) int64 indices of labels.
    """
    streamed = StreamedSampler(labels, kernel, period)
    n, a_coordinate = len(labels), SECONDS_A_COORDINATE * streamed.distances.d
    partners, pending = np.empty(n, dtype=np.int64), np.arange(n)
    while pending.size:
        proposal = rng.integers(n, size=len(pending))
        distance = streamed.distances.between(proposal, pending)
        refused = rng.standard_exponential(len(pending)) < streamed.kernel.excess(distance, 0.0)
        partners[pending] = proposal
        cost = SECONDS_A_ROUND + len(pending) * (SECONDS_A_PROPOSAL + a_coordinate)
        saved = (len(pending) - np.count_nonzero(refused)) * n * SECONDS_A_WEIGHT
        pending = pending[refused]
        if saved < cost:
            break
    partners[pending] = streamed.draw(pending, rng)
    return partners
