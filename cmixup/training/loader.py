"""The rows of a split on the device, gathered into batches for one model or a stack of models."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cmixup.batch import Batch
from cmixup.data import ManyViews, Sampled, Split
from cmixup.errors import InputError
from cmixup.order import EpochBatches

CHUNK_BYTES = 32 * 2**20  # rows gathered at once; slices of it are the batches
WHICH = ("partner", "view", "partner_view")  # draws that say what to read


class Rows:
    """The rows of one split for every run of a stack.

    Tensors live on the device; inputs that are not tensors are read when a batch asks for them. What comes out is
    `(B, ...)` for one run and `(E, B, ...)` for a stack of E.

    Args:
        splits: one split a run, all of one shape.
        device: where batches go.

    Attributes:
        home: the device of row numbers. That is the CPU where inputs are read on demand, so that reading the next
            batch does not wait until the device is done with this one.

    Raises:
        InputError: splits that differ in shape.
    """

    def __init__(self, splits: Sequence[Split], device: torch.device):
        shapes = {(len(s), tuple(s.y.shape), tuple(s.x.shape) if isinstance(s.x, Tensor) else ()) for s in splits}
        if len(shapes) > 1:
            raise InputError(f"all runs of a stack need splits of one shape, got {sorted(map(str, shapes))}")
        self.device, self.size, self.n_rows = device, len(splits), len(splits[0])
        resident = [s.x for s in splits if isinstance(s.x, Tensor)]
        if len(resident) < len(splits) and len(splits) > 1:
            raise InputError("inputs that are read on demand cannot be stacked")
        self._x = torch.cat(resident).to(device) if resident else splits[0].x
        self.home = device if resident else torch.device("cpu")
        self._y = torch.cat([s.y for s in splits]).to(device)
        self._domain = torch.cat([s.domain for s in splits]).to(device)
        # Rows of all runs lie one after another, so that one index reaches any of them.
        self._start = torch.arange(self.size, device=self.home)[:, None] * self.n_rows

    @property
    def y(self) -> Tensor:
        """All labels, `(N, d_y)` or `(E, N, d_y)`."""
        return self._shaped(self._y, self.n_rows)

    @property
    def domain(self) -> Tensor:
        """All domains, `(N,)` or `(E, N)`."""
        return self._shaped(self._domain, self.n_rows)

    def fetch(self, index: Tensor, view: Tensor | None = None) -> Batch:
        """Return the rows `index: (E, B)` int64, at `home`.

        Args:
            index: which rows.
            view: `(E, B)` int64, which view of each; used where inputs are `Sampled`.
        """
        flat = (index + self._start).reshape(-1)
        if isinstance(self._x, Tensor):
            x = self._x.index_select(0, flat)
        elif view is not None and isinstance(self._x, Sampled):
            x = self._x.sample(flat, view.reshape(-1)).to(self.device, non_blocking=True)
        else:
            x = _each(lambda part: part.to(self.device, non_blocking=True), self._x[flat])
        count, flat = index.shape[1], flat.to(self.device)
        y, domain = self._y.index_select(0, flat), self._domain.index_select(0, flat)
        return Batch(
            _each(lambda part: self._shaped(part, count), x), self._shaped(y, count), self._shaped(domain, count)
        )

    @property
    def has_views(self) -> bool:
        """Whether rows have many views."""
        return isinstance(self._x, ManyViews)

    def all_views(self, row: int, size: int) -> Iterator[Tensor]:
        """Yield all views of one row in blocks `(b, ...)` of at most `size`."""
        assert isinstance(self._x, ManyViews)
        for block in self._x.all_views(row, size):
            yield block.to(self.device, non_blocking=True)

    def batches(self, orders: Sequence[EpochBatches], draws: Sequence[dict[str, np.ndarray]]) -> Iterator[Batch]:
        """Yield the batches of one epoch.

        Args:
            orders: the rows of the epoch, one order a run.
            draws: what each run's method drew, aligned with its order; `partner` and, for `Sampled` inputs, `view`
                and `partner_view` are used here, the rest goes into the batches.
        """
        sizes = orders[0].sizes.tolist()
        if any(order.sizes.tolist() != sizes for order in orders):
            raise InputError("all runs of a stack need batches of the same sizes")
        index = self._aligned([order.index for order in orders], self.home)
        drawn = {name: self._aligned([d[name] for d in draws], self.home if name in WHICH else self.device)
                 for name in draws[0]}  # fmt: skip
        partner, view, partner_view = (drawn.pop(name, None) for name in WHICH)
        start = 0
        for group in self._groups(sizes):
            rows = slice(start, start + sum(group))
            start = rows.stop
            mine = self._split(self.fetch(index[:, rows], _part(view, rows)), group)
            theirs: Sequence[Batch | None] = [None] * len(group)
            if partner is not None:
                theirs = self._split(self.fetch(partner[:, rows], _part(partner_view, rows)), group)
            extra = {name: self._pieces(value[:, rows].reshape(*self._lead(sum(group)), *value.shape[2:]), group)
                     for name, value in drawn.items()}  # fmt: skip
            for b, (own, other) in enumerate(zip(mine, theirs, strict=True)):
                yield Batch(own.x, own.y, own.domain, other, {name: pieces[b] for name, pieces in extra.items()})

    def _aligned(self, arrays: list[np.ndarray], device: torch.device) -> Tensor:
        return torch.from_numpy(np.stack(arrays)).to(device)

    def _lead(self, count: int) -> tuple[int, ...]:
        return (count,) if self.size == 1 else (self.size, count)

    def _shaped(self, rows: Tensor, count: int) -> Tensor:
        return rows.reshape(*self._lead(count), *rows.shape[1:])

    def _pieces(self, value: Tensor, sizes: list[int]) -> tuple[Tensor, ...]:
        return torch.split(value, sizes, dim=0 if self.size == 1 else 1)

    def _split(self, rows: Batch, sizes: list[int]) -> list[Batch]:
        if len(sizes) == 1:
            return [rows]
        columns = (self._pieces(value, sizes) for value in (rows.x, rows.y, rows.domain))
        return [Batch(x, y, domain) for x, y, domain in zip(*columns, strict=True)]

    def _groups(self, sizes: list[int]) -> Iterator[list[int]]:
        """Group batches so that those of one group are gathered at once within `CHUNK_BYTES`."""
        row = 4 * (self._x[0].numel() + self._y[0].numel()) if isinstance(self._x, Tensor) else CHUNK_BYTES
        room = CHUNK_BYTES // (2 * row * self.size)
        group: list[int] = []
        for size in sizes:
            if group and sum(group) + size > room:
                yield group
                group = []
            group.append(size)
        if group:
            yield group


def _part(draws: Tensor | None, columns: slice) -> Tensor | None:
    return None if draws is None else draws[:, columns]


def _each(change: Callable[[Tensor], Tensor], x: Any) -> Any:
    """Return `x`, a tensor or a named tuple of tensors, with each tensor changed."""
    return change(x) if isinstance(x, Tensor) else type(x)(*map(change, x))
