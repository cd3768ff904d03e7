"""Streamed rows: any labels, any kernel, nothing set up, nothing larger than a block held.

A row is read in chunks of labels. Each chunk yields a triple for every anchor: the nearest distance, the
mass relative to it, and one candidate drawn inside the chunk. Two chunks merge exactly: the newer candidate
is kept with probability (its mass) / (both masses). (nearest, mass) is the chunk's log-sum-exp,
log(mass) - energy(nearest), in a form that neither overflows nor rounds far from the data. Chunks may live in
different files or machines: `shard_draw` on each, `merge_shards` on the results.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from cmixup.errors import InputError
from cmixup.sampling.distance import Distances
from cmixup.sampling.inputs import Floats, Ints, as_labels, to_numpy
from cmixup.sampling.kernels import Kernel

# Entries (anchors x labels) of a block of weights: 8 MiB in float64, a few of which live at once.
BLOCK = 1 << 20
ANCHORS = 256


def round_limit(labels: Any) -> int:
    """Rounds of accept/reject after which a rejected anchor takes its exact row, exact either way.

    About as many as cost what a row costs: a row reads N d numbers, a round a fixed few microseconds.
    """
    return int(min(max(48, np.prod(labels.shape) // 2000), 4096))


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


class Rows:
    """Exact partner draws by streaming the rows of the anchors; time O(B N d), no set-up.

    Args:
        labels: (N,) or (N, d) float32 or float64, maybe a memory map; held, not copied.
        kernel: weights.
    """

    name = "rows"
    nbytes = 0

    def __init__(self, labels: Any, kernel: Kernel) -> None:
        self.labels, self.kernel = labels, kernel
        self.distances = Distances(labels, kernel)

    def draw(self, anchors: Ints, rng: np.random.Generator) -> Ints:
        """Partners (B,) int64 of anchors (B,) that are indices of labels."""
        return self.draw_points(self.distances.at(anchors), rng, anchors)

    def draw_points(self, points: Floats, rng: np.random.Generator, anchors: Ints | None = None) -> Ints:
        """Partners (B,) int64 of labels (B,) or (B, d) float64 (`anchors`: their own indices, if any)."""
        return self.shard_draw(points, rng, anchors).candidate

    def shard_draw(self, points: Floats, rng: np.random.Generator, anchors: Ints | None = None) -> ShardDraw:
        """As `draw_points`, with the masses that merging with other shards needs."""
        parts = []
        for s in range(0, len(points), ANCHORS):
            part = slice(s, s + ANCHORS)
            own = None if anchors is None else anchors[part]
            merged: ShardDraw | None = None
            for start, distance in self._blocks(points[part], own):
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
        """The exact row (N,) float64 of one label () or (d,) (`anchor`: its own index, if it has one)."""
        own = None if anchor is None else np.array([anchor])
        distance = np.concatenate([d[0] for _, d in self._blocks(point[None], own)])
        weight: Floats = np.exp(-self.kernel.excess(distance, distance.min()))
        return weight / weight.sum()

    def weights(self, anchors: Ints) -> Floats:
        """Unnormalised rows (B, N) float64 of anchors (B,) in the data; the anchor itself weighs 1."""
        points = self.distances.at(anchors)
        distance = np.concatenate([d for _, d in self._blocks(points, anchors)], axis=1)
        return np.exp(-self.kernel.excess(distance, 0.0))

    def statistics(self, anchors: Ints) -> Floats:
        """Sums over the rows of B anchors in the data.

        Returns:
            (B, 5) float64: sum K, sum K^2, sum K over equal labels, sum K * distance and sum of distance
            (label units).
        """
        sums = np.zeros((len(anchors), 5))
        for s in range(0, len(anchors), ANCHORS):
            part = anchors[s : s + ANCHORS]
            for _, distance in self._blocks(self.distances.at(part), part):
                weight = np.exp(-self.kernel.excess(distance, 0.0))
                sums[s : s + ANCHORS] += np.stack(
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
        step = max(1, BLOCK // max(len(points), self.distances.d))
        for start in range(0, len(self.labels), step):
            stop = min(start + step, len(self.labels))
            yield start, self.distances.to(points, start, stop, anchors)


def shard_draw(labels: Any, points: Any, kernel: Kernel, rng: np.random.Generator, *, offset: int = 0) -> ShardDraw:
    """Draw candidates for anchors from one shard of the labels.

    Args:
        labels: (n,) or (n, d), the shard; maybe a memory map.
        points: (B,) or (B, d), the anchors' labels.
        kernel: weights; the same for all shards.
        rng: this shard's own generator (shards must not share a stream).
        offset: index of the shard's first label in the whole data.

    Raises:
        InputError: labels or points empty, not finite, or of different dimensions.
    """
    labels = to_numpy(as_labels("labels", labels))
    points = to_numpy(as_labels("points", points)).astype(np.float64)
    if points.shape[1:] != labels.shape[1:]:
        raise InputError(f"points must have the shape of a label {labels.shape[1:]}, got {points.shape}")
    drawn = Rows(labels, kernel).shard_draw(points, rng)
    return ShardDraw(drawn.nearest, drawn.mass, drawn.candidate + offset)


def merge_shards(shards: Sequence[ShardDraw], kernel: Kernel, rng: np.random.Generator) -> Ints:
    """Merge what all shards drew for the same B anchors into partners (B,) int64, exactly.

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
    candidate = np.array([np.searchsorted(c, v, "right") for c, v in zip(cumulative, level, strict=True)])
    return ShardDraw(nearest, mass, candidate + start)


def _merge(a: ShardDraw, b: ShardDraw, kernel: Kernel, rng: np.random.Generator) -> ShardDraw:
    nearest = np.minimum(a.nearest, b.nearest)
    mass_a = a.mass * np.exp(-kernel.excess(a.nearest, nearest))
    mass_b = b.mass * np.exp(-kernel.excess(b.nearest, nearest))
    mass = mass_a + mass_b
    newer = rng.random(len(mass)) * mass < mass_b
    return ShardDraw(nearest, mass, np.where(newer, b.candidate, a.candidate))
