"""Streamed rows draw exactly for any labels and any kernel; they need no set-up and hold no more than one block.

A row of P is read in blocks of labels. Each block yields a triple for every anchor: the nearest distance, the
mass relative to it, and one candidate drawn inside the block. Two blocks merge exactly: the newer candidate
is kept with probability (its mass) / (both masses). (nearest, mass) is the block's log-sum-exp,
log(mass) - energy(nearest), in a form that neither overflows nor rounds far from the data. Shards of the labels
may live in different files or machines: call `shard_draw` on each, and `merge_shards` on the results.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import cast

import numpy as np
from torch import Tensor

from cmixup.errors import InputError
from cmixup.sampling.distance import Distances
from cmixup.sampling.inputs import Floats, Given, Ints, Labels, as_labels, to_numpy
from cmixup.sampling.kernels import Kernel

# A block of weights holds (anchors x labels) distances: 8 MiB in float64, a few of which live at once.
DISTANCES_PER_BLOCK = 1 << 20
ANCHORS_PER_BLOCK = 256


def round_limit(labels: Labels | Tensor) -> int:
    """Return the rounds of accept/reject after which a rejected anchor takes its exact row; exact either way.

    These rounds cost about what a row costs: a row reads N d numbers, a round takes a fixed few microseconds.
    """
    return min(max(48, int(np.prod(labels.shape)) // 2000), 4096)


@dataclass(frozen=True)
class ShardDraw:
    """What one shard of labels says about B anchors.

    Attributes:
        nearest: (B,) float64, distance to the nearest label of the shard (label units).
        mass: (B,) float64, sum of weights relative to the weight at `nearest` (1 or more).
        candidate: (B,) int64, partner drawn from this shard alone.
    """

    nearest: Floats
    mass: Floats
    candidate: Ints


class StreamedSampler:
    """Exact partner draws that stream the rows of the anchors; a draw takes time O(B N d), and there is no set-up.

    Args:
        labels: (N,) or (N, d) float32 or float64, possibly a memory map; held, not copied.
        kernel: the kernel that gives the weights.
        period: (d,) circles that outputs go round, see `pair_distance`.
    """

    name = "rows"
    nbytes = 0

    def __init__(self, labels: Labels, kernel: Kernel, period: Floats | None = None) -> None:
        self.labels, self.kernel = labels, kernel
        self.distances = Distances(labels, kernel, period)

    def draw(self, anchors: Ints, rng: np.random.Generator) -> Ints:
        """Return partners (B,) int64 for `anchors` (B,), indices of labels."""
        return self.draw_points(self.distances.at(anchors), rng, anchors)

    def draw_points(self, points: Floats, rng: np.random.Generator, anchors: Ints | None = None) -> Ints:
        """Return partners (B,) int64 for labels `points`, (B,) or (B, d) float64.

        `anchors` (B,) are the points' own indices, where they have one.
        """
        return self.shard_draw(points, rng, anchors).candidate

    def shard_draw(self, points: Floats, rng: np.random.Generator, anchors: Ints | None = None) -> ShardDraw:
        """Draw as `draw_points` does; return the masses, too, which merging with other shards needs."""
        parts = []
        for s in range(0, len(points), ANCHORS_PER_BLOCK):
            part = slice(s, s + ANCHORS_PER_BLOCK)
            indices = None if anchors is None else anchors[part]
            merged: ShardDraw | None = None
            for start, distance in self._blocks(points[part], indices):
                drawn = _draw_block(distance, start, self.kernel, rng)
                merged = drawn if merged is None else _merge(merged, drawn, self.kernel, rng)
            parts.append(cast("ShardDraw", merged))  # labels are never empty
        if not parts:
            return ShardDraw(np.empty(0), np.empty(0), np.empty(0, dtype=np.int64))
        return ShardDraw(
            np.concatenate([p.nearest for p in parts]),
            np.concatenate([p.mass for p in parts]),
            np.concatenate([p.candidate for p in parts]),
        )

    def probabilities(self, point: Floats, anchor: int | None = None) -> Floats:
        """Return the exact row (N,) float64 of one label, () or (d,).

        `anchor` is the label's own index, if it has one.
        """
        index = None if anchor is None else np.array([anchor])
        distance = np.concatenate([d[0] for _, d in self._blocks(point[None], index)])
        weight = np.exp(-self.kernel.excess(distance, float(distance.min())))
        return weight / weight.sum()

    def weights(self, anchors: Ints) -> Floats:
        """Return unnormalised rows (B, N) float64 of `anchors` (B,), indices of labels; an anchor itself weighs 1."""
        points = self.distances.at(anchors)
        distance = np.concatenate([d for _, d in self._blocks(points, anchors)], axis=1)
        return np.exp(-self.kernel.excess(distance, 0.0))

    def statistics(self, anchors: Ints) -> Floats:
        """Return sums over the rows of `anchors` (B,), indices of labels.

        Returns:
            (B, 5) float64: sum K, sum K^2, the number of equal labels (for them K = 1), sum K * distance and sum of
            distance (label units).
        """
        sums = np.zeros((len(anchors), 5))
        for s in range(0, len(anchors), ANCHORS_PER_BLOCK):
            part = anchors[s : s + ANCHORS_PER_BLOCK]
            for _, distance in self._blocks(self.distances.at(part), part):
                weight = np.exp(-self.kernel.excess(distance, 0.0))
                sums[s : s + ANCHORS_PER_BLOCK] += np.stack(
                    [
                        weight.sum(axis=1),
                        np.einsum("bm,bm->b", weight, weight),
                        (distance == 0).sum(axis=1),
                        np.einsum("bm,bm->b", weight, distance),
                        distance.sum(axis=1),
                    ],
                    axis=1,
                )
        return sums

    def _blocks(self, points: Floats, anchors: Ints | None) -> Iterator[tuple[int, Floats]]:
        """Yield the first label of every block, and the distances (B, M) from the points to its M labels."""
        step = max(1, DISTANCES_PER_BLOCK // max(len(points), self.distances.d))
        for start in range(0, len(self.labels), step):
            stop = min(start + step, len(self.labels))
            yield start, self.distances.to(points, start, stop, anchors)


def shard_draw(labels: Given, points: Given, kernel: Kernel, rng: np.random.Generator, *, offset: int = 0) -> ShardDraw:
    """Draw candidates for anchors from one shard of the labels.

    Args:
        labels: (n,) or (n, d), the shard; possibly a memory map.
        points: (B,) or (B, d), the anchors' labels.
        kernel: the kernel that gives the weights; the same for all shards.
        rng: this shard's own generator (shards must not share a stream).
        offset: index of the shard's first label in the whole data.

    Raises:
        InputError: labels or points are empty, not finite, or of different dimensions.
    """
    shard = to_numpy(as_labels("labels", labels))
    queries = to_numpy(as_labels("points", points)).astype(np.float64)
    if queries.shape[1:] != shard.shape[1:]:
        raise InputError(f"points must have the shape of a label {shard.shape[1:]}, got {queries.shape}")
    drawn = StreamedSampler(shard, kernel).shard_draw(queries, rng)
    return ShardDraw(drawn.nearest, drawn.mass, drawn.candidate + offset)


def merge_shards(shards: Sequence[ShardDraw], kernel: Kernel, rng: np.random.Generator) -> Ints:
    """Merge what all shards drew for the same B anchors; return partners (B,) int64, exact as of one shard.

    Raises:
        InputError: `shards` is empty.
    """
    if not shards:
        raise InputError("shards must not be empty, got []")
    merged = shards[0]
    for shard in shards[1:]:
        merged = _merge(merged, shard, kernel, rng)
    return merged.candidate


def _draw_block(distance: Floats, start: int, kernel: Kernel, rng: np.random.Generator) -> ShardDraw:
    nearest = distance.min(axis=1)
    cumulative = np.cumsum(np.exp(-kernel.excess(distance, nearest[:, None])), axis=1)
    mass = cumulative[:, -1].copy()
    # The first entry above the level has weight: a partner of probability 0 is never drawn.
    level = rng.random(len(mass)) * mass
    candidate = np.array([c.searchsorted(v, "right") for c, v in zip(cumulative, level, strict=True)])
    return ShardDraw(nearest, mass, candidate + start)


def _merge(a: ShardDraw, b: ShardDraw, kernel: Kernel, rng: np.random.Generator) -> ShardDraw:
    nearest = np.minimum(a.nearest, b.nearest)
    mass_a = a.mass * np.exp(-kernel.excess(a.nearest, nearest))
    mass_b = b.mass * np.exp(-kernel.excess(b.nearest, nearest))
    mass = mass_a + mass_b
    newer = rng.random(len(mass)) * mass < mass_b
    return ShardDraw(nearest, mass, np.where(newer, b.candidate, a.candidate))
