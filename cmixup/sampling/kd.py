"""Labels of a few dimensions: k-d leaves, alias rows and accept/reject, which generalise `cells.py`.

Leaves are cut at medians of the widest dimension (Bentley 1975) and keep tight boxes. The row of a leaf has one
slot for every leaf, and a slot's gap is the smallest distance of the two boxes.
"""

from itertools import pairwise

import numpy as np

from cmixup.errors import InputError
from cmixup.sampling.distance import Kernel
from cmixup.sampling.inputs import Floats, Ints, Labels
from cmixup.sampling.slots import ANCHORS_PER_CHUNK, BYTES_PER_SLOT, SlotTable
from cmixup.sampling.stream import Rejection, Round

MAX_LEAVES = 2048
# A block of box distances has (leaves x leaves x dimensions) coordinate differences: 16 MiB in float64.
COORDINATES_PER_BLOCK = 1 << 21


class KDCells(Rejection):
    """Exact partner draws for labels of up to about 16 dimensions, copied once in leaf order, within the budget."""

    name = "kd"
    at_once = ANCHORS_PER_CHUNK

    def __init__(self, labels: Labels, kernel: Kernel, memory_budget: int) -> None:
        leaves, needed = n_leaves(len(labels)), bytes_needed(labels)
        if needed > memory_budget:
            raise InputError(f"method kd needs {needed} bytes, above memory_budget={memory_budget}")
        super().__init__(labels, kernel)
        values = np.array(labels, dtype=np.float64).reshape(len(labels), -1)
        self.order, first = _leaf_order(values, leaves)
        values = values[self.order]
        size = np.diff(first)
        self._leaf = np.empty(len(labels), dtype=np.int64)
        self._leaf[self.order] = np.repeat(np.arange(leaves), size)
        low = np.minimum.reduceat(values, first[:-1])
        high = np.maximum.reduceat(values, first[:-1])
        self._values = values[:, 0] if labels.ndim == 1 else values
        self.table = SlotTable(
            kernel,
            self._values,
            row_start=np.arange(leaves + 1) * leaves,
            gap=_box_distance(low, high).ravel(),
            start=np.tile(first[:-1], leaves),
            count=np.tile(size, leaves),
        )

    def propose(self, anchors: Ints, rng: np.random.Generator) -> Round:
        """Play one round of the slots."""
        position, refused = self.table.propose(self._leaf[anchors], self.distances.at(anchors), rng)
        return self.order[position], refused


def n_leaves(n: int) -> int:
    """Return a power of two: about 8 labels a leaf or more, at most about 8 sqrt(n) (64 n slots) and `MAX_LEAVES`."""
    wanted = min(n / 8, 8 * n**0.5, MAX_LEAVES)
    return 1 << max(0, round(np.log2(max(wanted, 1))))


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
            along = part[:, np.argmax(np.ptp(part, axis=0))]
            middle = (stop - start) // 2
            order[start:stop] = run[np.argpartition(along, middle)]
            cuts.append(start + middle)
        first = np.sort(np.concatenate([first, cuts]))
    return order, first


def _box_distance(low: Floats, high: Floats) -> Floats:
    """Return the smallest distances (L, L) of boxes given by their lowest and highest corners (L, d)."""
    step = max(1, COORDINATES_PER_BLOCK // low.size)
    rows = []
    for s in range(0, len(low), step):
        a = slice(s, s + step)
        between = np.maximum(low[None, :, :] - high[a, None, :], low[a, None, :] - high[None, :, :])
        np.maximum(between, 0.0, out=between)
        # The result is a hair too small, so that no order of summation (torch has its own) puts a pair nearer than
        # its boxes.
        rows.append(np.sqrt(np.einsum("...d,...d->...", between, between)) * (1 - 1e-12))
    return np.concatenate(rows)
