"""Meta-Aug (Rajendran et al. 2020, arXiv 2007.05549; google-research meta_augmentation/pose_regression): MAML on tasks
whose labels are all shifted by one random amount, so that a label depends on the support.

Differences from the original: a shift is drawn afresh each time a task is used. Offsets are fractions of the full turn,
as in boschresearch's Pascal1D loader (its ShapeNet1D loader adds 0 to 2 to radians, probably by mistake).
"""

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from cmixup.errors import check_count, check_positive
from cmixup.methods.maml import MAML, InnerLoop
from cmixup.seeding import Streams
from cmixup.training.batch import Batch, EpochBatches
from cmixup.training.losses import LabelScaling
from cmixup.training.training import Training


class MetaAug(MAML):
    """`MAML` that trains on y + u mod a full turn, u drawn for each task, for support and query alike.

    Args:
        inner: see `MAML`.
        n_offsets: u is one of 0, 1/M, ..., (M - 1)/M of a turn; 1 is MAML.
        period: a full turn in label units.
    """

    def __init__(self, inner: InnerLoop, n_offsets: int = 4, period: float = 10.0):
        super().__init__(inner)
        self._units = LabelScaling()
        self.n_offsets, self.period = check_count("n_offsets", n_offsets, 1), check_positive("period", period)

    def begin(self, training: Training) -> None:
        self._units = training.stack.labels

    def draw(self, order: EpochBatches, streams: Streams) -> dict[str, np.ndarray]:
        """Return the shift of every task, `offset: (M,)` float32 in label units."""
        turn = streams.mixing.integers(self.n_offsets, size=len(order.index)) / self.n_offsets
        return {"offset": (self.period * turn).astype(np.float32)}

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        x: Any = batch.x
        units, offset = self._units, batch.draws["offset"]
        labels, y = (units.scale(self.shift(units.to_labels(v), offset)) for v in (x.labels, batch.y))
        return super().loss(model, replace(batch, x=x._replace(labels=labels), y=y))

    def shift(self, labels: Tensor, offset: Tensor) -> Tensor:
        """Return labels `(B, K)` shifted by `offset: (B,)`, in [0, period)."""
        shifted = torch.remainder(labels + offset[:, None], self.period)
        return torch.where(shifted < self.period, shifted, 0.0)  # the remainder of -1e-9 is rounded to the period
