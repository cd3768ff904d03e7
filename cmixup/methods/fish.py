"""Fish, gradient matching between domains (Shi et al. 2021, arXiv 2104.09937; YugeTen/fish; DomainBed Fish).

Differences from these: inner steps are taken on the model itself instead of on a clone, and it is then moved back
towards a copy; the inner optimiser is that of training, its state carried on. An outer step uses `groups` minibatches
of the batch size, each of one domain, so an epoch has as many gradient evaluations as ERM's, up to rounding, and fewer
outer steps.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn

from cmixup.batch import Batch
from cmixup.data import Split
from cmixup.errors import InputError, as_number
from cmixup.methods.base import descend, squared_error
from cmixup.methods.domains import DomainMethod
from cmixup.order import Order, grouped
from cmixup.seeding import Streams

if TYPE_CHECKING:
    from cmixup.learner import Learner


class Fish(DomainMethod):
    """One optimiser step a domain, in random order, then `theta <- theta + meta_lr (theta_inner - theta)`.

    Args:
        groups: domains, and so inner steps, of an outer step.
        meta_lr: epsilon, the share of the way that is kept, in [0, 1].
    """

    def __init__(self, groups: int, meta_lr: float = 0.5):
        super().__init__(groups, standardise=False)
        self.batch_multiple = self.least_batch = 1
        self.meta_lr = as_number("meta_lr", meta_lr)
        if not 0 <= self.meta_lr <= 1:
            raise InputError(f"meta_lr must lie in [0, 1], got {meta_lr!r}")

    def order(self, train: Split, batch_size: int, streams: Streams, *, drop_last: bool, shuffle: bool = True) -> Order:
        """Return batches of `groups` minibatches, each `batch_size` rows of one domain; all are full."""
        return grouped(train.domain.numpy(), self.groups, batch_size, streams.order)

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Return the mean squared error of an inner step."""
        return squared_error(model(batch.x), batch.y)

    def step(self, learner: Learner, batch: Batch) -> Tensor:
        """Take the inner steps and move towards where they lead; returns the mean of their losses.

        Integer buffers (BatchNorm's counters) stay as the inner steps left them.
        """
        state = {name: value for name, value in learner.model.state_dict().items() if value.is_floating_point()}
        before = {name: value.clone() for name, value in state.items()}
        axis = batch.domain.ndim - 1
        parts = zip(*(rows.chunk(self.groups, dim=axis) for rows in (batch.x, batch.y, batch.domain)), strict=True)
        losses = [descend(self.loss(learner.model, Batch(*part)), learner.optimizer) for part in parts]
        with torch.no_grad():
            for name, value in state.items():
                value.copy_(before[name].lerp(value, self.meta_lr))
        return torch.stack(losses).mean(dim=0)
