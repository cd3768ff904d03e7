"""Accept/reject over slots: the way to draw that one-dimensional cells and k-d leaves share.

Points are kept in an order in which every cell is contiguous. Each cell (row) has slots, runs of points that
together cover all of them. A slot proposes its points with mass exp(-energy(gap)), gap being the smallest
possible distance between a point of the row's cell and a point of the slot. K_ij <= exp(-energy(gap)) and the
row's total does not depend on j, so accepting with K_ij / exp(-energy(gap)) draws j exactly ~ K_ij. Slots are chosen by
alias tables (Walker 1977), built for many short rows at once.
"""

import numpy as np

from cmixup.sampling.distance import Kernel, pair_distance
from cmixup.sampling.inputs import Floats, Ints, Labels, SmallInts
from cmixup.sampling.stream import Round

BYTES_PER_SLOT = 28
# Anchors are handled in chunks so small that temporaries stay in the cache.
ANCHORS_PER_CHUNK = 1 << 15


def alias_rows(mass: Floats, row_start: Ints) -> tuple[Floats, Ints]:
    """Return the probability (S,) of staying in each slot, and the slot (S,) of its row to move to otherwise.

    Rows are built by the sweeping construction, all in step, from masses (S,) of 0 or more with a positive sum in every
    row. Each step closes one slot of every open row: the current light slot is topped up by the current heavy
    one, or the heavy one, used up, becomes a light slot itself (Hubschle-Schneider & Sanders, "Parallel
    Weighted Random Sampling", 2022).
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


class SlotTable:
    """Alias rows of slots, stored flat: R rows of together S slots over N positions.

    Attributes:
        kernel: the kernel that gives the weights.
        values: (N,) or (N, d) labels by position, float32 or float64; shared, not counted in `nbytes`.
        row_start: (R + 1,) int64, first slot of each row, and S; no row is empty.
        gap: (S,) float64, smallest distance of the row's cell and the slot (label units).
        start, count: (S,) int32 (int64 where that is too small), the first position that the slot covers, and how many.
        stay: (S,) float64, alias probability of staying in the slot.
        move: (S,) as `start`, the slot to move to otherwise.
    """

    def __init__(
        self, kernel: Kernel, values: Labels, *, row_start: Ints, gap: Floats, start: Ints, count: Ints
    ) -> None:
        self.kernel, self.values, self.row_start, self.gap = kernel, values, row_start, gap
        nearest = np.minimum.reduceat(gap, row_start[:-1])
        mass: Floats = np.multiply(count, np.exp(-kernel.excess(gap, np.repeat(nearest, np.diff(row_start)))))
        self.stay, move = alias_rows(mass, row_start)
        small = np.int32 if len(values) < 2**31 and len(gap) < 2**31 else np.int64
        self.move: SmallInts = move.astype(small)
        self.start: SmallInts = start.astype(small)
        self.count: SmallInts = count.astype(small)

    @property
    def nbytes(self) -> int:
        """Return the bytes held beside the values."""
        held = (self.row_start, self.stay, self.gap, self.move, self.start, self.count)
        return sum(int(array.nbytes) for array in held)

    def propose(self, rows: Ints, points: Floats, rng: np.random.Generator) -> Round:
        """Play one round, with positions proposed for `points`, (B,) or (B, d) float64, each in the cell of its row."""
        first = self.row_start.take(rows)
        toss = rng.random(len(rows))
        toss *= self.row_start.take(rows + 1) - first
        slot = toss.astype(np.int64)
        toss -= slot
        slot += first
        np.copyto(slot, self.move.take(slot), where=toss >= self.stay.take(slot))
        # The uniforms are float64, because float32 could not address every point of a large slot.
        inside = rng.random(len(rows))
        inside *= self.count.take(slot)
        proposal = inside.astype(np.int64)
        proposal += self.start.take(slot)
        distance = pair_distance(self.values.take(proposal, axis=0), points, self.values.ndim)
        refused = rng.standard_exponential(len(rows)) < self.kernel.excess(distance, self.gap.take(slot))
        return proposal, refused
