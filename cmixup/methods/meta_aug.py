"""Meta-Aug (Rajendran et al. 2020, arXiv 2007.05549; google-research meta_augmentation/pose_regression): MAML on tasks
whose labels are all shifted by one random amount, so that a label cannot be told without the support.

Differences from the original: a shift is drawn afresh each time a task is used. Offsets are fractions of the full turn,
as in boschresearch's Pascal1D loader (its ShapeNet1D loader adds 0 to 2 to radians, probably by mistake).
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from cmixup.batch import Batch
from cmixup.errors import InputError, as_number, check_positive
from cmixup.methods.maml import MAML
from cmixup.order import Order
from cmixup.seeding import Streams


class MetaAug(MAML):
    """`MAML` that trains on y + u mod a full turn, u drawn for each task, for support and query alike.

    Args:
        inner_lr, inner_steps, report_steps, first_order, adapt_encoder: see `MAML`.
        n_offsets: u is one of 0, 1/M, ..., (M - 1)/M of a turn; 1 is MAML.
        spread: if above 0, u is uniform on [-spread, spread] of a turn instead.
        period: a full turn in label units.
    """

    def __init__(
        self,
        inner_lr: float,
        inner_steps: int = 5,
        report_steps: int = 20,
        *,
        n_offsets: int = 4,
        spread: float = 0.0,
        period: float = 10.0,
        first_order: bool = False,
        adapt_encoder: bool = False,
    ):
        super().__init__(inner_lr, inner_steps, report_steps, first_order=first_order, adapt_encoder=adapt_encoder)
        if isinstance(n_offsets, bool) or not isinstance(n_offsets, int) or n_offsets < 1:
            raise InputError(f"n_offsets must be a whole number, 1 or more, got {n_offsets!r}")
        self.spread = as_number("spread", spread)
        if not 0 <= self.spread <= 0.5:
            raise InputError(f"spread must lie in [0, 0.5], got {spread!r}")
        self.n_offsets, self.period = n_offsets, check_positive("period", period)

    def draw(self, order: Order, streams: Streams) -> dict[str, np.ndarray]:
        """Return the shift of every task, `offset: (M,)` float32 in label units."""
        n = len(order.index)
        if self.spread:
            turn = streams.mixing.uniform(-self.spread, self.spread, n)
        else:
            turn = streams.mixing.integers(self.n_offsets, size=n) / self.n_offsets
        return {"offset": (self.period * turn).astype(np.float32)}

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Return MAML's loss on the shifted labels."""
        x: Any = batch.x
        offset = batch.draws["offset"]
        return super().loss(
            model,
            replace(batch, x=x._replace(labels=self.shift(x.labels, offset)), y=self.shift(batch.y, offset)),
        )

    def shift(self, labels: Tensor, offset: Tensor) -> Tensor:
        """Return labels `(B, K)` shifted by `offset: (B,)`, in [0, period)."""
        shifted = torch.remainder(labels + offset[:, None], self.period)
        return torch.where(shifted < self.period, shifted, 0.0)  # the remainder of -1e-9 is rounded to the period
