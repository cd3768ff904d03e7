"""One-dimensional labels: cells, alias rows and accept/reject, exact for N up to 1e8 and beyond.

The algorithm is our own and has no published counterpart. Labels are grouped into cells a fraction of the
bandwidth wide; an anchor's row has one slot for every near cell and one for everything beyond on either side
(`slots.py`). Any grouping that is contiguous in label order is exact; the width only decides speed and memory.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from cmixup.sampling.distance import Kernel
from cmixup.sampling.inputs import Floats, Ints, Labels, SmallInts
from cmixup.sampling.slots import ANCHORS_PER_CHUNK, BYTES_PER_SLOT, SlotTable
from cmixup.sampling.stream import Rejection, Round

# Cell widths that are tried, in bandwidths: finer cells accept more often, coarser ones take less memory.
CELL_WIDTHS = (0.25, 0.5, 1.0, 2.0)
# The numbers of so many cells fit 16 bits, and a stable argsort of those is a radix sort, O(N).
MAX_RADIX_CELLS = 1 << 16
# Labels are converted in chunks, which bounds the temporaries.
LABELS_PER_CHUNK = 1 << 18
# The table may take the larger of these beside the 12 to 16 bytes for each label, if the memory budget allows it.
TABLE_BYTES_PER_LABEL, TABLE_BYTES = 8, 8 << 20


class Cells(Rejection):
    """Exact partner draws for one-dimensional labels.

    A slot table above the budget is not held (`table` is None): every chunk of anchors builds rows of its own.
    """

    name = "cells"
    at_once = ANCHORS_PER_CHUNK

    def __init__(self, labels: Labels, kernel: Kernel, memory_budget: int) -> None:
        super().__init__(labels, kernel)
        n = len(labels)
        self.order: SmallInts
        self._small = np.int32 if n < 2**31 else np.int64
        budget = min(memory_budget, max(TABLE_BYTES, TABLE_BYTES_PER_LABEL * n))
        self._lowest = float(labels.min())
        extent = float(labels.max()) - self._lowest
        self._cutoff = kernel.cutoff(n)
        self._lookup: NDArray[np.int32] | None = None
        if extent == 0 or extent < (MAX_RADIX_CELLS - 1) * CELL_WIDTHS[0] * kernel.bandwidth:
            slots = self._group_by_number(extent, budget)
        else:
            slots = self._group_by_sorting(budget)
        self.table = self._build(self._low, self._high) if slots * BYTES_PER_SLOT <= budget else None

    def proposer(self, anchors: Ints) -> Callable[[Ints, np.random.Generator], Round]:
        """Return the rounds for `anchors`, with the table or with rows for their cells alone."""
        points = np.asarray(self.labels[anchors], dtype=np.float64)
        rows, table = self._cell_of(anchors, points), self.table
        if table is None:
            used, rows = np.unique(rows, return_inverse=True)
            table = self._build(self._low[used], self._high[used])

        def propose(places: Ints, rng: np.random.Generator) -> Round:
            position, refused = table.propose(rows[places], points[places], rng)
            return self.order.take(position), refused

        return propose

    def propose(self, anchors: Ints, rng: np.random.Generator) -> Round:
        """Play one round."""
        return self.proposer(anchors)(np.arange(len(anchors)), rng)

    def _numbers(self, values: Labels) -> Floats:
        """Return the cell numbers of labels (N,), not yet rounded down."""
        numbers: Floats = np.asarray(values, dtype=np.float64) - self._lowest
        numbers *= self._scale
        return numbers

    def _group_by_number(self, extent: float, budget: int) -> int:
        """Radix-sort labels by cell number; return how many slots the table will have at most."""
        n = len(self.labels)
        self._scale = 0.0 if extent == 0 else 1 / (CELL_WIDTHS[0] * self.kernel.bandwidth)
        numbers = np.empty(n, dtype=np.uint16)
        counts = np.zeros(MAX_RADIX_CELLS, dtype=np.int64)
        for s in range(0, n, LABELS_PER_CHUNK):
            part = slice(s, s + LABELS_PER_CHUNK)
            numbers[part] = self._numbers(self.labels[part])
            counts += np.bincount(numbers[part], minlength=MAX_RADIX_CELLS)
        slots, cutoff = 0, Kernel(1.0).cutoff(n)
        for shift, width in enumerate(CELL_WIDTHS):
            merged = counts.reshape(-1, 1 << shift).sum(axis=1)
            slots = _count_slots(merged > 0, cutoff / width)
            if slots * BYTES_PER_SLOT <= budget:
                break
        self._scale /= 1 << shift  # powers of two: numbers shift exactly
        numbers >>= np.uint16(shift)
        order = np.argsort(numbers, kind="stable")
        del numbers
        self.order = order.astype(self._small)
        del order
        self._values = self._gather()
        occupied = np.flatnonzero(merged)
        self._lookup = np.zeros(len(merged), dtype=np.int32)
        self._lookup[occupied] = np.arange(len(occupied))
        self._first = np.concatenate([[0], np.cumsum(merged[occupied])])
        self._low = np.minimum.reduceat(self._values, self._first[:-1]).astype(np.float64)
        self._high = np.maximum.reduceat(self._values, self._first[:-1]).astype(np.float64)
        return slots

    def _group_by_sorting(self, budget: int) -> int:
        """Sort labels and cut where the cell number changes; return how many slots the table will have."""
        n = len(self.labels)
        self.order = np.argsort(self.labels).astype(self._small)
        self._values = self._gather()
        slots = 0
        for width in CELL_WIDTHS:
            # With bandwidth 0 cells are groups of equal labels: any change cuts.
            self._scale = 1 / (width * self.kernel.bandwidth) if self.kernel.bandwidth > 0 else 1.0
            cut = np.ones(n + 1, dtype=bool)
            for s in range(1, n, LABELS_PER_CHUNK):
                run = self._values[s - 1 : s + LABELS_PER_CHUNK]
                if self.kernel.bandwidth > 0:
                    run = np.floor(self._numbers(run))
                cut[s : s + LABELS_PER_CHUNK][: len(run) - 1] = run[1:] != run[:-1]
            self._first = np.flatnonzero(cut)
            self._low = self._values[self._first[:-1]].astype(np.float64)
            self._high = self._values[self._first[1:] - 1].astype(np.float64)
            parts = [slice(s, s + LABELS_PER_CHUNK) for s in range(0, len(self._low), LABELS_PER_CHUNK)]
            slots = sum(int(self._spans(self._low[part], self._high[part])[2].sum()) for part in parts)
            if slots * BYTES_PER_SLOT <= budget:
                break
        cells: SmallInts = np.empty(n, dtype=self._small)
        cells[self.order] = np.repeat(np.arange(len(self._low), dtype=self._small), np.diff(self._first))
        self._cells = cells
        return slots

    def _gather(self) -> Labels:
        """Return the labels in cell order, in their own dtype."""
        values = np.empty(len(self.labels), dtype=self.labels.dtype)
        for s in range(0, len(values), LABELS_PER_CHUNK):
            part = slice(s, s + LABELS_PER_CHUNK)
            values[part] = self.labels[self.order[part]]
        return values

    def _cell_of(self, anchors: Ints, points: Floats) -> Ints:
        if self._lookup is None:
            return self._cells[anchors].astype(np.int64)
        return self._lookup.take(self._numbers(points).astype(np.int64)).astype(np.int64)

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


def _count_slots(occupied: NDArray[np.bool_], cutoff: float) -> int:
    """Return an upper bound of the table's slots."""
    before = np.concatenate([[0], np.cumsum(occupied)])
    cell = np.flatnonzero(occupied)
    near = int(min(np.ceil(cutoff) + 1, len(occupied)))
    high = before[np.minimum(cell + near + 1, len(occupied))]
    low = before[np.maximum(cell - near, 0)]
    return int((high - low + 2).sum())
