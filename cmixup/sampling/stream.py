"""The base of the sampling algorithms, and the two that need no set-up: streamed rows, and uniform rejection.

A streamed row of P is read in blocks of labels. Each block yields a triple for every anchor: the nearest distance, the
mass relative to it, and one candidate drawn inside the block. Two blocks merge exactly: the newer candidate
is kept with probability (its mass) / (both masses). (nearest, mass) is the block's log-sum-exp,
log(mass) - energy(nearest), in a form that neither overflows nor rounds far from the data.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from cmixup.sampling.distance import FAR, WIDEST, Distances, Kernel
from cmixup.sampling.inputs import Floats, Ints, Labels, SmallInts

# A block of weights holds (anchors x labels) distances: 8 MiB in float64. A few blocks live at once.
DISTANCES_PER_BLOCK = 1 << 20
ANCHORS_PER_BLOCK = 256
# Uniform rejection handles anchors in chunks of so many coordinates (anchors x dimensions).
COORDINATES_PER_CHUNK = 1 << 18

#: One round of accept/reject: the partners proposed, (B,), and whether each is refused, (B,) bool.
Round = tuple[SmallInts, NDArray[np.bool_]]


def round_limit(labels: Labels) -> int:
    """Return the rounds of accept/reject after which a rejected anchor takes its exact row; exact either way.

    These rounds cost about as much as a row: a row reads N d numbers, a round takes a fixed few microseconds.
    """
    return min(max(48, int(np.prod(labels.shape)) // 2000), 4096)


class SamplingAlgorithm(ABC):
    """A sampling algorithm over labels, which it holds and does not copy; all draw from the same distribution.

    Its `name` is one of `cmixup.sampling.choice.ALGORITHMS`, without "auto". Those with tables take a memory budget,
    bytes beside the labels, and raise `InputError` if they exceed it.
    """

    name: str

    @property
    def nbytes(self) -> int:
        """Return the bytes held beside the labels."""
        sizes = (getattr(value, "nbytes", None) for name, value in vars(self).items() if name != "labels")
        return sum(size for size in sizes if isinstance(size, int))

    @abstractmethod
    def draw(self, anchors: Ints, rng: np.random.Generator) -> Ints:
        """Return partners (B,) int64 for `anchors` (B,), indices of labels."""


class StreamedSampler(SamplingAlgorithm):
    """Exact partner draws that stream the rows of the anchors; a draw takes time O(B N d), and there is no set-up.

    Labels (N,) or (N, d) are float32 or float64, possibly a memory map.
    """

    name = "rows"

    def __init__(self, labels: Labels, kernel: Kernel) -> None:
        self.distances = Distances(labels, kernel)
        if self.distances.gaps:
            kernel = Kernel(min(kernel.bandwidth, WIDEST))
        self.labels, self.kernel = labels, kernel

    def draw(self, anchors: Ints, rng: np.random.Generator) -> Ints:
        parts = [np.empty(0, dtype=np.int64)]
        for s in range(0, len(anchors), ANCHORS_PER_BLOCK):
            merged: _Drawn | None = None
            for start, distance in self._blocks(anchors[s : s + ANCHORS_PER_BLOCK]):
                drawn = _draw_block(distance, start, self.kernel, rng)
                merged = drawn if merged is None else _merge(merged, drawn, self.kernel, rng)
            assert merged is not None  # labels are never empty
            parts.append(merged.candidate)
        return np.concatenate(parts)

    def weights(self, anchors: Ints) -> Floats:
        """Return unnormalised rows (B, N) float64 of `anchors` (B,); an anchor itself weighs 1."""
        distance = np.concatenate([d for _, d in self._blocks(anchors)], axis=1)
        return np.exp(-self.kernel.excess(distance, 0.0))

    def statistics(self, anchors: Ints) -> Floats:
        """Return sums over the rows of `anchors`, (B, 5) float64.

        They are sum K, sum K^2, the number of equal labels (for them K = 1), sum K * distance and sum of distance.
        """
        sums = np.zeros((len(anchors), 5))
        for s in range(0, len(anchors), ANCHORS_PER_BLOCK):
            for _, distance in self._blocks(anchors[s : s + ANCHORS_PER_BLOCK]):
                weight = np.exp(-self.kernel.excess(distance, 0.0))
                total = distance.sum(axis=1)
                if self.distances.gaps:  # the mean of the pairs that can be compared stands for the others
                    common = distance < FAR
                    share = common.mean(axis=1).clip(min=1 / common.shape[1])
                    total = np.where(common, distance, 0.0).sum(axis=1) / share
                squares, gaps = (np.einsum("bm,bm->b", weight, factor) for factor in (weight, distance))
                sums[s : s + ANCHORS_PER_BLOCK] += np.stack(
                    [weight.sum(axis=1), squares, (distance == 0).sum(axis=1), gaps, total], axis=1
                )
        return sums

    def _blocks(self, anchors: Ints) -> Iterator[tuple[int, Floats]]:
        """Yield the first label of every block, and the distances (B, M) from the anchors to its M labels."""
        points = self.distances.at(anchors)
        step = max(1, DISTANCES_PER_BLOCK // max(len(points), self.distances.d))
        for start in range(0, len(self.labels), step):
            stop = min(start + step, len(self.labels))
            yield start, self.distances.to(points, start, stop, anchors)


class _Drawn(NamedTuple):
    """The triple of some labels for B anchors: distance to the nearest (B,), mass (B,) and candidate (B,) int64."""

    nearest: Floats
    mass: Floats
    candidate: Ints


def _draw_block(distance: Floats, start: int, kernel: Kernel, rng: np.random.Generator) -> _Drawn:
    nearest = distance.min(axis=1)
    cumulative = np.cumsum(np.exp(-kernel.excess(distance, nearest[:, None])), axis=1)
    mass = cumulative[:, -1].copy()
    # The first entry above the level has weight: a partner of probability 0 is never drawn.
    level = rng.random(len(mass)) * mass
    candidate = np.array([c.searchsorted(v, "right") for c, v in zip(cumulative, level, strict=True)])
    return _Drawn(nearest, mass, candidate + start)


def _merge(a: _Drawn, b: _Drawn, kernel: Kernel, rng: np.random.Generator) -> _Drawn:
    nearest = np.minimum(a.nearest, b.nearest)
    mass_a = a.mass * np.exp(-kernel.excess(a.nearest, nearest))
    mass_b = b.mass * np.exp(-kernel.excess(b.nearest, nearest))
    mass = mass_a + mass_b
    newer = rng.random(len(mass)) * mass < mass_b
    return _Drawn(nearest, mass, np.where(newer, b.candidate, a.candidate))


class Rejection(SamplingAlgorithm):
    """An algorithm of accept/reject, of `at_once` anchors; those rejected in all rounds take their exact row."""

    at_once = 1 << 20

    def __init__(self, labels: Labels, kernel: Kernel) -> None:
        self._streamed = StreamedSampler(labels, kernel)
        self.labels, self.kernel, self.distances = labels, self._streamed.kernel, self._streamed.distances

    def draw(self, anchors: Ints, rng: np.random.Generator) -> Ints:
        partners = np.empty(len(anchors), dtype=np.int64)
        for s in range(0, len(anchors), self.at_once):
            chunk = anchors[s : s + self.at_once]
            propose, pending = self.proposer(chunk), np.arange(len(chunk))
            for _ in range(round_limit(self.labels)):
                partners[s + pending], refused = propose(pending, rng)
                pending = pending[refused]
                if not pending.size:
                    break
            else:
                partners[s + pending] = self._streamed.draw(chunk[pending], rng)
        return partners

    def proposer(self, anchors: Ints) -> Callable[[Ints, np.random.Generator], Round]:
        """Return the rounds for `anchors`: a function of the places (B,) among them that are still open."""
        return lambda places, rng: self.propose(anchors[places], rng)

    @abstractmethod
    def propose(self, anchors: Ints, rng: np.random.Generator) -> Round:
        """Play one round."""


class UniformRejection(Rejection):
    """Proposes any j and accepts it with probability K_ij: for wide bandwidths, and for a batch, drawn once.

    Nothing is set up, and a draw costs 1 / mean(K) proposals.
    """

    name = "uniform"

    def __init__(self, labels: Labels, kernel: Kernel) -> None:
        super().__init__(labels, kernel)
        self.at_once = max(1, COORDINATES_PER_CHUNK // self.distances.d)

    def propose(self, anchors: Ints, rng: np.random.Generator) -> Round:
        """Propose any partner, and refuse by the kernel."""
        proposal = rng.integers(len(self.labels), size=len(anchors))
        distance = self.distances.between(proposal, anchors)
        return proposal, rng.standard_exponential(len(anchors)) < self.kernel.excess(distance, 0.0)
