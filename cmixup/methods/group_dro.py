"""GroupDRO, distributionally robust optimisation over domains (Sagawa et al. 2019, arXiv 1911.08731; p-lambda/wilds
examples/algorithms/groupDRO.py).

Differences from WILDS: weights are kept as logarithms; the risk is meant for scaled labels (`train.label_scaling`),
so that eta does not depend on their unit. Against DomainBed: weights belong to training domains, not to places in the
batch.
"""

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from cmixup.data import RegressionData, Split
from cmixup.errors import check_nonnegative
from cmixup.methods.domains import DomainMethod
from cmixup.mixing.linear import in_32_bits
from cmixup.seeding import Streams
from cmixup.training.batch import Batch, EpochBatches, domain_balanced
from cmixup.training.losses import LOSSES
from cmixup.training.model_stack import ModelStack
from cmixup.training.optim import descend


class GroupDRO(DomainMethod):
    """Minimises `sum_e q_e R_e`, with `q_e ~ q_e exp(eta R_e)` over all training domains, updated before each step.

    Rows are drawn with weights 1/n_e, with replacement. A domain that is absent from a batch has R_e = 0 there.

    Args:
        eta: step size of the weights.
    """

    log_q: Tensor  #: `(n_domains,)` float, by ascending domain; `(E, n_domains)` in a stack
    losses = tuple(LOSSES)

    def __init__(self, eta: float = 0.01):
        super().__init__()
        self.eta = check_nonnegative("eta", eta)

    def fit(self, data: RegressionData, model: nn.Module, streams: Streams | None) -> None:
        super().fit(data, model, streams)
        n_domains = len(self.domain_ids)
        self.register_buffer("log_q", torch.full((n_domains,), -math.log(n_domains), dtype=data.train.y.dtype))

    def order(self, train: Split, batch_size: int, streams: Streams, **batching: bool) -> EpochBatches:
        return domain_balanced(train.domain.numpy(), batch_size, streams.order, drop_last=batching["drop_last"])

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        return self._weigh(model, batch)[0]

    def step(self, stack: ModelStack, batch: Batch) -> Tensor:
        loss, self.log_q = self._weigh(stack.model, batch)
        return descend(loss, stack.optimizer)

    def diagnostics(self) -> dict[str, float | str]:
        return {"largest_weight": float(self.log_q.exp().max())}

    def _weigh(self, model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
        errors = self.errors(model(batch.x), batch.y)
        membership = one_hot(self.domain_index(batch.domain), self.domain_ids.shape[-1]).to(errors.dtype)
        with in_32_bits(errors.device):
            risk = (errors.unsqueeze(-2) @ membership).squeeze(-2) / membership.sum(dim=-2).clamp_min(1)
        log_q = (self.log_q + self.eta * risk.detach()).log_softmax(dim=-1)
        return (log_q.exp() * risk).sum(dim=-1), log_q
