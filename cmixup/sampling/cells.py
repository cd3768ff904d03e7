"""Cells of labels, alias rows and accept/reject: of one number, exact for N up to 1e8 and beyond, or of a few.

Points are kept in an order in which every cell is contiguous. Each cell (row) has slots, runs of points that together
cover all of them. A slot proposes its points with mass exp(-energy(gap)). The gap is the smallest distance that a point
of the row's cell can have to one of the slot. K_ij <= exp(-energy(gap)) and the row's total does not depend on j, so
accepting with K_ij / exp(-energy(gap)) draws j exactly ~ K_ij. Alias tables (Walker 1977), built for many short rows at
once, choose the slots.

The algorithm for one-dimensional labels is our own and has no published counterpart. They are grouped into cells a
fraction of the bandwidth wide; a row has one slot for every near cell and one for everything beyond on either side.
Any grouping that is contiguous in label order is exact; the width only decides speed and memory.

Labels of a few dimensions have k-d leaves, cut at medians of the widest dimension (Bentley 1975), with tight boxes. The
row of a leaf has one slot for every leaf, and a slot's gap is the smallest distance of the two boxes.
"""

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np

from cmixup.errors import InputError
from cmixup.sampling.distance import Kernel, pair_distance
from cmixup.sampling.inputs import Floats, Ints, Labels, SmallInts
from cmixup.sampling.stream import Rejection, Round

BYTES_PER_SLOT = 28
# Anchors are handled in chunks so small that temporaries stay in the cache.
ANCHORS_PER_CHUNK = 1 << 15
# Cell widths that are tried, in bandwidths: finer cells accept more often, coarser ones take less memory.
CELL_WIDTHS = (0.25, 0.5, 1.0, 2.0)
# The numbers of so many cells fit 16 bits, and a stable argsort of those is a radix sort, O(N).
MAX_RADIX_CELLS = 1 << 16
# Labels are handled in chunks, which bounds the temporaries.
LABELS_PER_CHUNK = 1 << 18
# The table may take the larger of these beside the 12 to 16 bytes for each label, if the memory budget allows it.
TABLE_BYTES_PER_LABEL, TABLE_BYTES = 8, 8 << 20
MAX_LEAVES = 2048
# A block of box distances has (leaves x leaves x dimensions) coordinate differences: 16 MiB in float64.
COORDINATES_PER_BLOCK = 1 << 21


def alias_rows(mass: Floats, row_start: Ints) -> tuple[Floats, Ints]:
    """Return the probability (S,) of staying in each slot, and the slot (S,) of its row to move to otherwise.

    Rows are built by the sweeping construction, all in step, from masses (S,) of 0 or more with a positive sum in every
    row. Each step closes one slot of every open row. The current heavy slot tops up the current light one, or is used
    up and becomes a light slot itself (Hubschle-Schneider & Sanders, "Parallel Weighted Random Sampling", 2022).
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
        can_give = rest[open_rows] >= 1
        r = open_rows[can_give]
        slot = queue[light[r]]
        stay[slot] = mass[slot]
        move[slot] = queue[heavy_at[r]]
        rest[r] -= 1 - mass[slot]
        light[r] += 1
        r = open_rows[~can_give]
        slot = queue[heavy_at[r]]
        heavy_at[r] += 1
        has_next = heavy_at[r] < heavies_end[r]  # without a next heavy slot only rounding is left: stay = 1
        r, slot = r[has_next], slot[has_next]
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
        values: (N,) or (N, d) labels by position; shared, not counted in `nbytes`.
        row_start: (R + 1,) int64, first slot of each row, and S; no row is empty.
        gap: (S,) float64, smallest distance of the row's cell and the slot (label units).
        start, count: (S,) int32 (int64 where that is too small), the first position that the slot covers, and how many.
        stay, move: (S,) float64, alias probability of staying in the slot, and the slot to move to otherwise.
    """

    def __init__(
        self, kernel: Kernel, values: Labels, *, row_start: Ints, gap: Floats, start: Ints, count: Ints
    ) -> None:
        self.kernel, self.values, self.row_start, self.gap = kernel, values, row_start, gap
        nearest = np.minimum.reduceat(gap, row_start[:-1])
        mass: Floats = np.multiply(count, np.exp(-kernel.excess(gap, np.repeat(nearest, np.diff(row_start)))))
        self.stay, move = alias_rows(mass, row_start)
        index_dtype = np.int32 if len(values) < 2**31 and len(gap) < 2**31 else np.int64
        self.move: SmallInts = move.astype(index_dtype)
        self.start: SmallInts = start.astype(index_dtype)
        self.count: SmallInts = count.astype(index_dtype)

    @property
    def nbytes(self) -> int:
        """Return the bytes held beside the values."""
        arrays = (self.row_start, self.stay, self.gap, self.move, self.start, self.count)
        return sum(int(array.nbytes) for array in arrays)

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


class Cells(Rejection):
    """Exact partner draws for one-dimensional labels.

    A slot table above the budget is not held (`table` is None): every chunk of anchors builds rows of its own.
    """

    name = "cells"
    at_once = ANCHORS_PER_CHUNK

    def __init__(self, labels: Labels, kernel: Kernel, memory_budget: int) -> None:
        super().__init__(labels, kernel)
        n, s = len(labels), kernel.bandwidth
        index_dtype = np.int32 if n < 2**31 else np.int64
        budget = min(memory_budget, max(TABLE_BYTES, TABLE_BYTES_PER_LABEL * n))
        parts = [slice(start, start + LABELS_PER_CHUNK) for start in range(0, n, LABELS_PER_CHUNK)]
        lowest = float(labels.min())
        extent = float(labels.max()) - lowest

        def cell_numbers(values: Labels, width: float) -> Labels:
            """Return the cell numbers of labels; with bandwidth 0 cells are groups of equal labels."""
            return np.floor((np.asarray(values, dtype=np.float64) - lowest) * (1 / (width * s))) if s else values

        if extent == 0 or extent < (MAX_RADIX_CELLS - 1) * CELL_WIDTHS[0] * s:
            number = np.zeros(n, dtype=np.uint16)
            for part in parts if extent else ():
                number[part] = cell_numbers(labels[part], CELL_WIDTHS[0])
            order = np.argsort(number, kind="stable")
        else:
            order = np.argsort(labels)
        self.order: SmallInts = order.astype(index_dtype)
        del order
        self._values = np.empty(n, dtype=labels.dtype)
        for part in parts:
            self._values[part] = labels[self.order[part]]
        # Beyond this distance all points together weigh less than 1e-3 of the anchor itself.
        self._cutoff = s * math.sqrt(2 * math.log(n / 1e-3))
        is_first = np.ones(n + 1, dtype=bool)
        for width in CELL_WIDTHS:
            for part in parts:
                run = cell_numbers(self._values[max(part.start - 1, 0) : part.stop], width)
                is_first[max(part.start, 1) : part.stop][: len(run) - 1] = run[1:] != run[:-1]
            self._first = np.flatnonzero(is_first)
            self._low = np.minimum.reduceat(self._values, self._first[:-1]).astype(np.float64)
            self._high = np.maximum.reduceat(self._values, self._first[:-1]).astype(np.float64)
            slots = sum(int(self._spans(self._low[part], self._high[part])[2].sum()) for part in parts)
            if slots * BYTES_PER_SLOT <= budget:
                break
        self._cells: SmallInts = np.empty(n, dtype=index_dtype)
        last_cell = -1
        for part in parts:
            cell = last_cell + np.cumsum(is_first[:n][part])
            self._cells[self.order[part]] = cell
            last_cell = cell[-1]
        self.table = self._build(self._low, self._high) if slots * BYTES_PER_SLOT <= budget else None

    def proposer(self, anchors: Ints) -> Callable[[Ints, np.random.Generator], Round]:
        """Return the rounds for `anchors`, with the table or with rows for their cells alone."""
        points = np.asarray(self.labels[anchors], dtype=np.float64)
        rows, table = self._cells[anchors].astype(np.int64), self.table
        if table is None:
            cells, rows = np.unique(rows, return_inverse=True)
            table = self._build(self._low[cells], self._high[cells])

        def propose(places: Ints, rng: np.random.Generator) -> Round:
            position, refused = table.propose(rows[places], points[places], rng)
            return self.order.take(position), refused

        return propose

    def propose(self, anchors: Ints, rng: np.random.Generator) -> Round:
        return self.proposer(anchors)(np.arange(len(anchors)), rng)

    def _spans(self, low: Floats, high: Floats) -> tuple[Ints, Ints, Ints]:
        """Return the near cells [left, right) of intervals [low, high], and the slots of each row (with both tails)."""
        left = np.searchsorted(self._high, low - self._cutoff, "left")
        right = np.maximum(np.searchsorted(self._low, high + self._cutoff, "right"), left)
        width = right - left + (left > 0) + (right < len(self._low))
        return left, right, width

    def _build(self, low: Floats, high: Floats) -> SlotTable:
        """Return rows for anchors inside the intervals [low, high], (R,) float64 each."""
        left, right, width = self._spans(low, high)
        row_start = np.concatenate([[0], np.cumsum(width)])
        row = np.repeat(np.arange(len(low)), width)
        begin = left - (left > 0)  # a tail stands where the nearest cell of that side would
        cell = np.arange(row_start[-1]) - row_start[row] + begin[row]
        gap = np.maximum(np.maximum(self._low[cell] - high[row], low[row] - self._high[cell]), 0.0)
        start, stop = self._first[cell], self._first[cell + 1]
        start[cell < left[row]] = 0
        stop[cell >= right[row]] = self._first[-1]
        return SlotTable(self.kernel, self._values, row_start=row_start, gap=gap, start=start, count=stop - start)


class KDCells(Rejection):
    """Exact partner draws for labels of up to about 16 dimensions, copied once in leaf order, within the budget."""

    name = "kd"
    at_once = ANCHORS_PER_CHUNK

    def __init__(self, labels: Labels, kernel: Kernel, memory_budget: int) -> None:
        leaves, n_bytes = n_leaves(len(labels)), bytes_needed(labels)
        if n_bytes > memory_budget:
            raise InputError(f"method kd needs {n_bytes} bytes, above memory_budget={memory_budget}")
        super().__init__(labels, kernel)
        values = np.array(labels, dtype=np.float64).reshape(len(labels), -1)
        self.order, first = _leaf_order(values, leaves)
        values = values[self.order]
        size = np.diff(first)
        self._cells = np.empty(len(labels), dtype=np.int64)
        self._cells[self.order] = np.repeat(np.arange(leaves), size)
        low = np.minimum.reduceat(values, first[:-1])
        high = np.maximum.reduceat(values, first[:-1])
        self._values = values[:, 0] if labels.ndim == 1 else values
        row_start, gap = np.arange(leaves + 1) * leaves, _box_distance(low, high).ravel()
        start, count = np.tile(first[:-1], leaves), np.tile(size, leaves)
        self.table = SlotTable(kernel, self._values, row_start=row_start, gap=gap, start=start, count=count)

    def propose(self, anchors: Ints, rng: np.random.Generator) -> Round:
        position, refused = self.table.propose(self._cells[anchors], self.distances.at(anchors), rng)
        return self.order[position], refused


def n_leaves(n: int) -> int:
    """Return a power of two: about 8 labels a leaf or more, at most about 8 sqrt(n) (64 n slots) and `MAX_LEAVES`."""
    target = min(n / 8, 8 * n**0.5, MAX_LEAVES)
    return 1 << max(0, round(np.log2(max(target, 1))))


def bytes_needed(labels: Labels) -> int:
    """Return the bytes that `KDCells` holds beside these labels."""
    return BYTES_PER_SLOT * n_leaves(len(labels)) ** 2 + 8 * int(np.prod(labels.shape)) + 16 * len(labels)


def _leaf_order(values: Floats, leaves: int) -> tuple[Ints, Ints]:
    """Return an order (N,) in which leaves are contiguous, and the first position of each leaf and N, (leaves + 1,)."""
    order = np.arange(len(values))
    first = np.array([0, len(values)])
    while len(first) - 1 < leaves:
        cuts = []
        for start, stop in pairwise(first):
            run = order[start:stop]
            part = values[run]
            coordinate = part[:, np.argmax(np.ptp(part, axis=0))]
            middle = (stop - start) // 2
            order[start:stop] = run[np.argpartition(coordinate, middle)]
            cuts.append(start + middle)
        first = np.sort(np.concatenate([first, cuts]))
    return order, first


def _box_distance(low: Floats, high: Floats) -> Floats:
    """Return the smallest distances (L, L) of boxes given by their lowest and highest corners (L, d)."""
    step = max(1, COORDINATES_PER_BLOCK // low.size)
    rows = []
    for s in range(0, len(low), step):
        block = slice(s, s + step)
        between = np.maximum(low[None, :, :] - high[block, None, :], low[block, None, :] - high[None, :, :])
        np.maximum(between, 0.0, out=between)
        # The result is a hair too small, so that no order of summation (torch has its own) puts a pair nearer than
        # its boxes.
        rows.append(np.sqrt(np.einsum("...d,...d->...", between, between)) * (1 - 1e-12))
    return np.concatenate(rows)
