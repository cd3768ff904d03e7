"""Empirical risk minimisation: no mixing."""

from __future__ import annotations

from torch import Tensor, nn

from cmixup.batch import Batch
from cmixup.methods.base import Method, squared_error


class ERM(Method):
    """Train on the mean squared error of the training rows as they are."""

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Return the mean squared error of the batch."""
        return squared_error(model(batch.x), batch.y)
