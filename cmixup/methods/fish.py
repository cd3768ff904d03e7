"""Fish, gradient matching between domains (Shi et al. 2021, arXiv 2104.09937; YugeTen/fish; DomainBed Fish).

Differences from these: inner steps are taken on the model itself instead of on a clone, and it is then moved back
towards a copy; the inner optimiser is that of training, its state carried on. An outer step uses `groups` minibatches
of the batch size, each of one domain, so an epoch has as many gradient evaluations as ERM's, up to rounding, and fewer
outer steps.
"""

import torch
from torch import Tensor, nn

from cmixup.data import Split
from cmixup.errors import check_between, check_count
from cmixup.methods.domains import DomainMethod
from cmixup.seeding import Streams
from cmixup.training.batch import Batch, EpochBatches, domain_batches
from cmixup.training.losses import LOSSES
from cmixup.training.model_stack import ModelStack
from cmixup.training.optim import descend


class Fish(DomainMethod):
    """Takes one optimiser step a domain, in random order, then `theta <- theta + meta_lr (theta_inner - theta)`.

    Args:
        groups: domains, and so inner steps, of an outer step.
        meta_lr: epsilon, the share of the way that is kept, in [0, 1].
    """

    losses = tuple(LOSSES)

    def __init__(self, groups: int, meta_lr: float = 0.5):
        super().__init__()
        self.groups, self.meta_lr = check_count("groups", groups, 1), check_between("meta_lr", meta_lr, 0, 1)

    def order(self, train: Split, batch_size: int, streams: Streams, **batching: bool) -> EpochBatches:
        """Return batches of `groups` minibatches, each `batch_size` rows of one domain; all are full."""
        return domain_batches(train.domain.numpy(), self.groups, batch_size, streams.order)

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        return self.error(model(batch.x), batch.y)

    def step(self, stack: ModelStack, batch: Batch) -> Tensor:
        """Take the inner steps and move towards where they lead; returns the mean of their losses.

        Integer buffers (BatchNorm's counters) stay as the inner steps left them.
        """
        state = {name: value for name, value in stack.model.state_dict().items() if value.is_floating_point()}
        start = {name: value.clone() for name, value in state.items()}
        axis = batch.domain.ndim - 1
        parts = [
            batch.picked(lambda rows, g=g: rows.chunk(self.groups, dim=axis)[g])  # type: ignore[misc]
            for g in range(self.groups)
        ]
        losses = [descend(self.loss(stack.model, part), stack.optimizer) for part in parts]
        with torch.no_grad():
            for name, value in state.items():
                value.copy_(start[name].lerp(value, self.meta_lr))
        return torch.stack(losses).mean(dim=0)
