"""The draws in torch, for labels on an accelerator: tables are copied from the host once, draws stay on the device.

The algorithms are those of `stream.py`, `rejection.py` and `slots.py`; on the CPU the NumPy forms are 2 to 4
times faster and are used instead.
"""

from __future__ import annotations

from abc import abstractmethod

import torch
from numpy.typing import NDArray
from torch import Tensor

from cmixup.errors import InputError
from cmixup.sampling.cells import Cells
from cmixup.sampling.choice import choose
from cmixup.sampling.inputs import Labels
from cmixup.sampling.kd import KDCells
from cmixup.sampling.kernels import Kernel
from cmixup.sampling.slots import SlotTable
from cmixup.sampling.stream import SamplingAlgorithm, round_limit

TORCH_ALGORITHMS = ("auto", "cells", "uniform", "kd", "rows")
# A block has (anchors x labels x dimensions) coordinate differences: 32 MiB in float64.
COORDINATES_PER_BLOCK = 1 << 22
ANCHORS_PER_BLOCK = 1024


def _distance(a: Tensor, b: Tensor, d: int) -> Tensor:
    difference = a - b
    return difference.abs() if d == 1 else difference.square().sum(-1).sqrt()


def _uniform(n: int, generator: torch.Generator) -> Tensor:
    return torch.rand(n, generator=generator, device=generator.device, dtype=torch.float64)


class TorchStreamedSampler(SamplingAlgorithm):
    """`StreamedSampler` on a device.

    Args:
        labels: (N,) or (N, d) float32 or float64 tensor; held, not copied.
        kernel: the kernel that gives the weights.
    """

    name = "rows"

    def __init__(self, labels: Tensor, kernel: Kernel) -> None:
        self.labels, self.kernel = labels, kernel
        self.d = 1 if labels.ndim == 1 else labels.shape[1]

    def draw(self, anchors: Tensor, generator: torch.Generator) -> Tensor:
        """Return partners (B,) int64 for `anchors` (B,) int64, indices of labels."""
        return self.draw_points(self.labels[anchors].double(), generator)

    def draw_points(self, points: Tensor, generator: torch.Generator) -> Tensor:
        """Return partners (B,) int64 for labels, (B,) or (B, d) float64."""
        if not len(points):
            return points.new_empty(0, dtype=torch.int64)
        return torch.cat([self._draw_part(part, generator) for part in torch.split(points, ANCHORS_PER_BLOCK)])

    def _draw_part(self, points: Tensor, generator: torch.Generator) -> Tensor:
        nearest = mass = partner = torch.empty(0)
        step = max(1, COORDINATES_PER_BLOCK // (len(points) * self.d))
        for start in range(0, len(self.labels), step):
            distance = _distance(points[:, None], self.labels[start : start + step].double(), self.d)
            nearest_here = distance.min(1).values
            cumulative = torch.exp(-self.kernel.excess(distance, nearest_here[:, None])).cumsum(1)
            total = cumulative[:, -1]
            level = _uniform(len(points), generator) * total
            candidate = start + torch.searchsorted(cumulative, level[:, None], right=True)[:, 0]
            # A scan on a device may round so that the last sum is not the largest: stay inside the block.
            candidate.clamp_(max=min(start + step, len(self.labels)) - 1)
            if start == 0:
                nearest, mass, partner = nearest_here, total, candidate
                continue
            closest = torch.minimum(nearest, nearest_here)
            old = mass * torch.exp(-self.kernel.excess(nearest, closest))
            new = total * torch.exp(-self.kernel.excess(nearest_here, closest))
            newer = _uniform(len(points), generator) * (old + new) < new
            nearest, mass, partner = closest, old + new, torch.where(newer, candidate, partner)
        return partner


class TorchRejection(SamplingAlgorithm):
    """`Rejection` on a device; arguments are those of `TorchStreamedSampler`."""

    def __init__(self, labels: Tensor, kernel: Kernel) -> None:
        self._streamed = TorchStreamedSampler(labels, kernel)

    def draw(self, anchors: Tensor, generator: torch.Generator) -> Tensor:
        """Return partners (B,) int64 for `anchors` (B,) int64, indices of labels."""
        labels, kernel = self._streamed.labels, self._streamed.kernel
        points = labels[anchors].double()
        partners = torch.empty_like(anchors)
        pending = torch.arange(len(anchors), device=anchors.device)
        for _ in range(round_limit(labels)):
            if not len(pending):
                return partners
            proposal, gap = self.propose(anchors[pending], generator)
            partners[pending] = proposal
            distance = _distance(labels[proposal].double(), points[pending], self._streamed.d)
            weight = torch.exp(-kernel.excess(distance, gap))
            pending = pending[_uniform(len(pending), generator) >= weight]
        if len(pending):
            partners[pending] = self._streamed.draw_points(points[pending], generator)
        return partners

    @abstractmethod
    def propose(self, anchors: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Return the partners proposed, (B,) int64, and the distances (B,) float64 whose weight proposes them."""


class TorchUniformRejection(TorchRejection):
    """`UniformRejection` on a device."""

    name = "uniform"

    def propose(self, anchors: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Propose any partner."""
        uniform = _uniform(len(anchors), generator)
        return (uniform * len(self._streamed.labels)).long(), torch.zeros_like(uniform)


class TorchSlots(TorchRejection):
    """`Cells` or `KDCells` on a device, with the tables that those built on the host.

    Args:
        labels: (N,) or (N, d) float32 or float64 tensor; held, not copied.
        host: the sampler built from the same labels.
        table: its slot table.
    """

    def __init__(self, labels: Tensor, host: Cells | KDCells, table: SlotTable) -> None:
        super().__init__(labels, table.kernel)
        self.name = host.name

        def moved(array: NDArray) -> Tensor:
            return torch.from_numpy(array).to(labels.device)

        self._stay, self._gap = moved(table.stay), moved(table.gap)
        self._row_start = moved(table.row_start)
        self._move, self._start, self._count = moved(table.move), moved(table.start), moved(table.count)
        self._order, self._row_of = moved(host.order), moved(host.anchor_rows())

    def propose(self, anchors: Tensor, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """Propose a slot of the anchor's row, and one of its labels."""
        row = self._row_of[anchors].long()
        first = self._row_start[row]
        toss = _uniform(len(anchors), generator) * (self._row_start[row + 1] - first)
        slot = toss.long()
        leave = toss - slot >= self._stay[slot + first]
        slot += first
        slot = torch.where(leave, self._move[slot].long(), slot)
        inside = (_uniform(len(anchors), generator) * self._count[slot]).long()
        return self._order[self._start[slot] + inside].long(), self._gap[slot]


def choose_torch(labels: Tensor, host: Labels, kernel: Kernel, name: str, budget: int) -> tuple[SamplingAlgorithm, str]:
    """Build a sampling algorithm that draws on the labels' device, as `choice.choose` does on the host.

    Args:
        labels: (N,) or (N, d) float32 or float64 tensor.
        host: the same labels in NumPy.
        kernel, budget: see `choice.choose`.
        name: one of `TORCH_ALGORITHMS`.

    Raises:
        InputError: the algorithm has no torch form, does not take these labels, or not within the budget.
    """
    if name not in TORCH_ALGORITHMS:
        raise InputError(f"method must be one of {', '.join(TORCH_ALGORITHMS)} on {labels.device}, got {name!r}")
    built, reason = choose(host, kernel, name, budget, slots_alone=True)
    if built.name == "uniform":
        return TorchUniformRejection(labels, kernel), reason
    if isinstance(built, Cells | KDCells):
        if built.table is not None:
            return TorchSlots(labels, built, built.table), reason
        if name == "cells":
            raise InputError(f"method cells needs a larger table than memory_budget={budget} allows")
        reason = "no table suits"
    return TorchStreamedSampler(labels, kernel), reason
