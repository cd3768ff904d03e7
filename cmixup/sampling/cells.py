"""One-dimensional labels: cells + alias rows + accept/reject, exact for N up to 1e8 and beyond.

Our own algorithm (no published counterpart): labels are grouped into cells a fraction of the bandwidth wide;
an anchor's row has one slot for every near cell and one for everything beyond on either side (`slots.py`).
Any grouping that is contiguous in label order is exact; the width only decides speed and memory.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from cmixup.sampling.inputs import Floats, Ints
from cmixup.sampling.kernels import Kernel
from cmixup.sampling.slots import SLOT_BYTES, SlotTable
from cmixup.sampling.stream import Rows

# Cell widths tried, in bandwidths, finest first: finer accepts more often, coarser takes less memory.
WIDTHS = (0.25, 0.5, 1.0, 2.0)
# Up to here cell numbers fit 16 bits, and a stable argsort is a radix sort, O(N).
RADIX_CELLS = 1 << 16
# Labels converted or slots built at once; bounds temporaries.
CHUNK = 1 << 18
# The table may take this much beside the 12 to 16 bytes a label, whatever the memory budget allows.
TABLE_BYTES_PER_LABEL, TABLE_BYTES_FREE = 8, 8 << 20


class Cells:
    """Exact partner draws for one-dimensional labels.

    Args:
        labels: (N,) float32 or float64; held, not copied.
        kernel: weights.
        memory_budget: bytes; where the slot table would exceed it, rows are built for each draw instead.
    """

    name = "cells"

    def __init__(self, labels: Any, kernel: Kernel, memory_budget: int) -> None:
        self.labels, self.kernel = labels, kernel
        n = len(labels)
        self._small = np.int32 if n < 2**31 else np.int64
        budget = min(memory_budget, max(TABLE_BYTES_FREE, TABLE_BYTES_PER_LABEL * n))
        self._lowest = float(labels.min())
        extent = float(labels.max()) - self._lowest
        self._reach = kernel.reach(n)
        self._lookup: Ints | None = None
        if extent == 0 or extent < (RADIX_CELLS - 1) * WIDTHS[0] * kernel.bandwidth:
            slots = self._group_by_number(extent, budget)
        else:
            slots = self._group_by_sorting(budget)
        #: None where rows are built for each draw.
        self.table = self._build_rows(self._low, self._high) if slots * SLOT_BYTES <= budget else None

    def draw(self, anchors: Ints, rng: np.random.Generator) -> Ints:
        """Partners (B,) int64 of anchors (B,) that are indices of labels."""
        partners = np.empty(len(anchors), dtype=np.int64)
        step = CHUNK if self.table is not None else CHUNK // 8
        for s in range(0, len(anchors), step):
            chunk = anchors[s : s + step]
            points = np.asarray(self.labels[chunk], dtype=np.float64)
            cells = self._cell_of(chunk, points)
            if self.table is not None:
                position = self.table.draw(cells, points, rng)
            else:
                used, row = np.unique(cells, return_inverse=True)
                position = self._draw_built(self._low[used], self._high[used], row, points, rng)
            partners[s : s + step] = self._finish(position, points, chunk, rng)
        return partners

    def draw_points(self, points: Floats, rng: np.random.Generator) -> Ints:
        """Partners (B,) int64 of labels (B,) float64 outside the data: each is a cell of its own."""
        used, row = np.unique(points, return_inverse=True)
        return self._finish(self._draw_built(used, used, row, points, rng), points, None, rng)

    @property
    def nbytes(self) -> int:
        """Bytes held beside the labels."""
        held = [self._values, self.order, self._low, self._high, self._first]
        held.append(self._cells if self._lookup is None else self._lookup)
        return sum(int(a.nbytes) for a in held) + (self.table.nbytes if self.table is not None else 0)

    def _finish(self, position: Ints, points: Floats, anchors: Ints | None, rng: np.random.Generator) -> Ints:
        """Indices of positions; anchors that were rejected in every round take their exact row."""
        partners = self.order.take(position).astype(np.int64)
        left = np.flatnonzero(position < 0)
        if left.size:
            own = None if anchors is None else anchors[left]
            partners[left] = Rows(self.labels, self.kernel).draw_points(points[left], rng, own)
        return partners

    # --- grouping -------------------------------------------------------------------------------------

    def _numbers(self, values: Any) -> Floats:
        numbers: Floats = np.asarray(values, dtype=np.float64) - self._lowest
        numbers *= self._scale
        return numbers

    def _group_by_number(self, extent: float, budget: int) -> int:
        """Radix-sort labels by cell number; returns how many slots the table will have at most."""
        n = len(self.labels)
        self._scale = 0.0 if extent == 0 else 1 / (WIDTHS[0] * self.kernel.bandwidth)
        numbers = np.empty(n, dtype=np.uint16)
        counts = np.zeros(RADIX_CELLS, dtype=np.int64)
        for s in range(0, n, CHUNK):
            numbers[s : s + CHUNK] = self._numbers(self.labels[s : s + CHUNK])
            counts += np.bincount(numbers[s : s + CHUNK], minlength=RADIX_CELLS)
        slots, reach = 0, Kernel(self.kernel.name, 1.0).reach(n)
        for shift, width in enumerate(WIDTHS):
            merged = counts.reshape(-1, 1 << shift).sum(axis=1)
            slots = _count_slots(merged > 0, reach / width)
            if slots * SLOT_BYTES <= budget:
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
        """Sort labels, cut where the cell number changes; returns how many slots the table will have."""
        n = len(self.labels)
        self.order = np.argsort(self.labels).astype(self._small)
        self._values = self._gather()
        slots = 0
        for width in WIDTHS:
            # With bandwidth 0 cells are groups of equal labels: any change cuts.
            self._scale = 1 / (width * self.kernel.bandwidth) if self.kernel.bandwidth > 0 else 1.0
            cut = np.ones(n + 1, dtype=bool)
            for s in range(1, n, CHUNK):
                run = self._values[s - 1 : s + CHUNK]
                if self.kernel.bandwidth > 0:
                    run = np.floor(self._numbers(run))
                cut[s : s + CHUNK][: len(run) - 1] = run[1:] != run[:-1]
            self._first = np.flatnonzero(cut)
            self._low = self._values[self._first[:-1]].astype(np.float64)
            self._high = self._values[self._first[1:] - 1].astype(np.float64)
            slots = sum(
                int(self._spans(self._low[s : s + CHUNK], self._high[s : s + CHUNK])[2].sum())
                for s in range(0, len(self._low), CHUNK)
            )
            if slots * SLOT_BYTES <= budget:
                break
        self._cells = self.anchor_rows()
        return slots

    def _gather(self) -> Any:
        """Labels in cell order, in their own dtype."""
        values = np.empty(len(self.labels), dtype=self.labels.dtype)
        for s in range(0, len(values), CHUNK):
            values[s : s + CHUNK] = self.labels[self.order[s : s + CHUNK]]
        return values

    def anchor_rows(self) -> Any:
        """Cell (N,) of each label."""
        cells = np.empty(len(self.order), dtype=self._small)
        cells[self.order] = np.repeat(np.arange(len(self._low), dtype=self._small), np.diff(self._first))
        return cells

    def _cell_of(self, anchors: Ints, points: Floats) -> Ints:
        if self._lookup is None:
            return self._cells[anchors].astype(np.int64)
        return self._lookup.take(self._numbers(points).astype(np.int64)).astype(np.int64)

    # --- slots ----------------------------------------------------------------------------------------

    def _spans(self, low: Floats, high: Floats) -> tuple[Ints, Ints, Ints]:
        """Near cells [left, right) of intervals [low, high], and the slots a row (two tails included)."""
        left = np.searchsorted(self._high, low - self._reach, "left")
        right = np.maximum(np.searchsorted(self._low, high + self._reach, "right"), left)
        width = right - left + (left > 0) + (right < len(self._low))
        return left, right, width

    def _build_rows(self, low: Floats, high: Floats) -> SlotTable:
        """Alias rows for anchors inside the intervals [low, high], (R,) float64 each."""
        tables, begin = [], 0
        ends = np.cumsum(self._spans(low, high)[2])
        while begin < len(low):
            stop = int(np.searchsorted(ends, (ends[begin - 1] if begin else 0) + CHUNK, "right"))
            stop = max(stop, begin + 1)
            tables.append(self._build_chunk(low[begin:stop], high[begin:stop]))
            begin = stop
        return SlotTable.join(tables)

    def _build_chunk(self, low: Floats, high: Floats) -> SlotTable:
        left, right, width = self._spans(low, high)
        row_start = np.concatenate([[0], np.cumsum(width)])
        row = np.repeat(np.arange(len(low)), width)
        begin = left - (left > 0)  # a tail stands where the nearest cell of that side would
        cell = np.arange(row_start[-1]) - row_start[row] + begin[row]
        gap = np.maximum(np.maximum(self._low[cell] - high[row], low[row] - self._high[cell]), 0.0)
        start, stop = self._first[cell], self._first[cell + 1]
        start[cell < left[row]] = 0
        stop[cell >= right[row]] = self._first[-1]
        return SlotTable.build(self.kernel, self._values, row_start=row_start, gap=gap, start=start, count=stop - start)

    def _draw_built(self, low: Floats, high: Floats, row: Ints, points: Floats, rng: np.random.Generator) -> Ints:
        """Draw with rows built for this call only, a bounded number of slots at a time."""
        by_row = np.argsort(row, kind="stable")
        ends = np.cumsum(self._spans(low, high)[2])
        position = np.empty(len(row), dtype=np.int64)
        begin = 0
        while begin < len(low):
            stop = int(np.searchsorted(ends, (ends[begin - 1] if begin else 0) + CHUNK, "right"))
            stop = max(stop, begin + 1)
            these = by_row[np.searchsorted(row[by_row], begin) : np.searchsorted(row[by_row], stop)]
            table = self._build_chunk(low[begin:stop], high[begin:stop])
            position[these] = table.draw(row[these] - begin, points[these], rng)
            begin = stop
        return position


def _count_slots(occupied: Any, reach: float) -> int:
    """Upper bound of the table's slots from which cells are occupied and the reach in cell widths."""
    before = np.concatenate([[0], np.cumsum(occupied)])
    cell = np.flatnonzero(occupied)
    near = int(min(np.ceil(reach) + 1, len(occupied)))
    high = before[np.minimum(cell + near + 1, len(occupied))]
    low = before[np.maximum(cell - near, 0)]
    return int((high - low + 2).sum())
