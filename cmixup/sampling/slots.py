"""Accept/reject over slots: the way to draw that one-dimensional cells and k-d leaves share.

Points are kept in an order in which every cell is contiguous. Each cell (row) has slots, runs of points that
together cover all of them. A slot proposes its points with mass exp(-energy(gap)), gap being the smallest
possible distance between a point of the row's cell and a point of the slot. K_ij <= exp(-energy(gap)) and the
row's total does not depend on j, so accepting with K_ij / exp(-energy(gap)) draws j exactly ~ K_ij. Slots are chosen by
alias tables (Walker 1977), built for many short rows at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cmixup.sampling.distance import pair_distance
from cmixup.sampling.inputs import Floats, Ints, Labels, SmallInts
from cmixup.sampling.kernels import Kernel
from cmixup.sampling.stream import round_limit

BYTES_PER_SLOT = 28
# Anchors are handled in chunks so small that temporaries stay in the cache.
ANCHORS_PER_CHUNK = 1 << 15


def alias_rows(mass: Floats, row_start: Ints) -> tuple[Floats, Ints]:
    """Build one alias table for each row by the sweeping construction, all rows in step.

    Each step closes one slot of every open row: the current light slot is topped up by the current heavy
    one, or the heavy one, used up, becomes a light slot itself (Hubschle-Schneider & Sanders, "Parallel
    Weighted Random Sampling", 2022).

    Args:
        mass: (S,) unnormalised masses, 0 or more, with a positive sum in every row.
        row_start: (R + 1,) first slot of each row, and S.

    Returns:
        (S,) float64 probability of staying in a slot, and (S,) int64 slot of the same row to move to otherwise.
    """
    width = np.diff(row_start)
    row = np.repeat(np.arange(len(width)), width)
    mass = mass * (width / np.add.reduceat(mass, row_start[:-1]))[row]
    heavy = mass >= 1
    queue = np.argsort(2 * row + heavy, kind="stable")  # in each row: light slots, then heavy ones
    light = row_start[:-1].copy()
    n_heavy = np.add.reduceat(heavy.astype(np.int64), row_start[:-1])
    lights_end, heavies_end = row_start[1:] - n_heavy, row_start[1:]
    heavy_at = lights_end.copy()

    stay = np.ones(len(mass))
    move = np.arange(len(mass))
    open_rows = np.flatnonzero((n_heavy > 0) & (n_heavy < width))
    rest = np.zeros(len(width))
    rest[open_rows] = mass[queue[heavy_at[open_rows]]]
    while open_rows.size:
        giving = rest[open_rows] >= 1
        r = open_rows[giving]
        slot = queue[light[r]]
        stay[slot] = mass[slot]
        move[slot] = queue[heavy_at[r]]
        rest[r] -= 1 - mass[slot]
        light[r] += 1
        r = open_rows[~giving]
        slot = queue[heavy_at[r]]
        heavy_at[r] += 1
        following = heavy_at[r] < heavies_end[r]  # without a next heavy slot only rounding is left: stay = 1
        r, slot = r[following], slot[following]
        stay[slot] = rest[r]
        move[slot] = queue[heavy_at[r]]
        rest[r] += mass[move[slot]] - 1
        # With no light slot left, a heavy one that gave too much still has to be topped up by the next.
        unfinished = (light < lights_end) | (rest < 1)
        open_rows = open_rows[(unfinished & (heavy_at < heavies_end))[open_rows]]
    return stay, move


@dataclass(frozen=True)
class SlotTable:
    """Alias rows of slots, stored flat: R rows of together S slots over N positions.

    Attributes:
        kernel: the kernel that gives the weights.
        values: (N,) or (N, d) labels by position, float32 or float64; shared, not counted in `nbytes`.
        row_start: (R + 1,) int64, first slot of each row.
        stay: (S,) float64, alias probability of staying in the slot.
        gap: (S,) float64, smallest distance of the row's cell and the slot (label units).
        move: (S,) int32 (int64 where that is too small), the slot to move to otherwise.
        start: (S,) as `move`, first position of the slot.
        count: (S,) as `move`, positions that the slot covers.
    """

    kernel: Kernel
    values: Labels
    row_start: Ints
    stay: Floats
    gap: Floats
    move: SmallInts
    start: SmallInts
    count: SmallInts

    @classmethod
    def build(
        cls, kernel: Kernel, values: Labels, *, row_start: Ints, gap: Floats, start: Ints, count: Ints
    ) -> SlotTable:
        """Build alias rows from slots, none of them empty; arguments are those of the attributes.

        The values are held, not copied.
        """
        nearest = np.minimum.reduceat(gap, row_start[:-1])
        mass: Floats = np.multiply(count, np.exp(-kernel.excess(gap, np.repeat(nearest, np.diff(row_start)))))
        stay, move = alias_rows(mass, row_start)
        small = np.int32 if len(values) < 2**31 and len(gap) < 2**31 else np.int64
        return cls(
            kernel,
            values,
            row_start,
            stay,
            gap,
            move=move.astype(small),
            start=start.astype(small),
            count=count.astype(small),
        )

    @classmethod
    def join(cls, tables: list[SlotTable]) -> SlotTable:
        """Return one table with the rows of several tables over the same values, one table after the other."""
        if len(tables) == 1:
            return tables[0]
        offset = np.cumsum([0] + [len(t.gap) for t in tables])
        pairs = list(zip(tables, offset[:-1], strict=True))
        return cls(
            tables[0].kernel,
            tables[0].values,
            np.concatenate([*(t.row_start[:-1] + o for t, o in pairs), offset[-1:]]),
            np.concatenate([t.stay for t in tables]),
            np.concatenate([t.gap for t in tables]),
            np.concatenate([t.move + t.move.dtype.type(o) for t, o in pairs]),
            np.concatenate([t.start for t in tables]),
            np.concatenate([t.count for t in tables]),
        )

    @property
    def nbytes(self) -> int:
        """Return the bytes held beside the values."""
        held = (self.row_start, self.stay, self.gap, self.move, self.start, self.count)
        return sum(int(array.nbytes) for array in held)

    def draw(self, rows: Ints, points: Floats, rng: np.random.Generator) -> Ints:
        """Draw one position for each point.

        Args:
            rows: (B,) table row of each point.
            points: (B,) or (B, d) float64 labels of the anchors, each within its row's cell.
            rng: source of randomness.

        Returns:
            (B,) int64 positions; -1 for those still rejected after `round_limit` rounds.
        """
        position = np.empty(len(rows), dtype=np.int64)
        for s in range(0, len(rows), ANCHORS_PER_CHUNK):
            part = slice(s, s + ANCHORS_PER_CHUNK)
            self._draw_chunk(rows[part], points[part], rng, position[part])
        return position

    def propose(self, rows: Ints, points: Floats, rng: np.random.Generator) -> tuple[Ints, NDArray[np.bool_]]:
        """Play one round for points (arguments as for `draw`).

        Returns:
            (B,) int64 positions proposed, and (B,) bool, whether each is refused.
        """
        first = self.row_start.take(rows)
        return self._propose(first, self.row_start.take(rows + 1) - first, points, rng)

    def _propose(
        self, first: Ints, width: Ints, points: Floats, rng: np.random.Generator
    ) -> tuple[Ints, NDArray[np.bool_]]:
        """Play one round; return the positions proposed, (B,) int64, and whether each is refused, (B,) bool."""
        toss = rng.random(len(first))
        toss *= width
        slot = toss.astype(np.int64)
        toss -= slot
        slot += first
        np.copyto(slot, self.move.take(slot), where=toss >= self.stay.take(slot))
        # The uniforms are float64, because float32 could not address every point of a large slot.
        inside = rng.random(len(first))
        inside *= self.count.take(slot)
        proposal = inside.astype(np.int64)
        proposal += self.start.take(slot)
        distance = pair_distance(self.values.take(proposal, axis=0), points, self.values.ndim)
        refused = rng.standard_exponential(len(first)) < self.kernel.excess(distance, self.gap.take(slot))
        return proposal, refused

    def _draw_chunk(self, rows: Ints, points: Floats, rng: np.random.Generator, out: Ints) -> None:
        first, width = self.row_start.take(rows), self.row_start.take(rows + 1)
        width -= first
        out[:], refused = self._propose(first, width, points, rng)
        pending = kept = np.flatnonzero(refused)
        for _ in range(round_limit(self.values) - 1):
            if not kept.size:
                return
            first, width, points = first.take(kept), width.take(kept), points.take(kept, axis=0)
            out[pending], refused = self._propose(first, width, points, rng)
            kept = np.flatnonzero(refused)
            pending = pending.take(kept)
        out[pending] = -1
