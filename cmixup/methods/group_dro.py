"""GroupDRO, distributionally robust optimisation over domains (Sagawa et al. 2019, arXiv 1911.08731; p-lambda/wilds
examples/algorithms/groupDRO.py).

Differences from WILDS: weights are kept as logarithms; the risk is on standardised labels, so that eta does not depend
on their unit. Against DomainBed: weights belong to training domains, not to places in the batch.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from cmixup.batch import Batch
from cmixup.data import Split
from cmixup.methods.base import descend, squared_errors
from cmixup.methods.domains import DomainMethod, check_weight
from cmixup.order import Order, balanced
from cmixup.seeding import Streams

if TYPE_CHECKING:
    from cmixup.learner import Learner
    from cmixup.training.trainer import Member


class GroupDRO(DomainMethod):
    """`sum_e q_e R_e`, with `q_e ~ q_e exp(eta R_e)` over all training domains, updated before each step.

    Rows are drawn with weights 1/n_e, with replacement. A domain that is absent from a batch has R_e = 0 there.

    Args:
        eta: step size of the weights.
        standardise: compute the risk on standardised labels.

    Attributes:
        log_q: `(..., n_domains)`, by ascending domain; leading axes are models of a stack.
    """

    def __init__(self, eta: float = 0.01, *, standardise: bool = True):
        super().__init__(1, standardise=standardise)
        self.eta = check_weight("eta", eta)

    def fit(self, train: Split, model: nn.Module) -> None:
        """Start from uniform weights."""
        super().fit(train, model)
        self.log_q = torch.full(self.domains.shape, -math.log(len(self.domains)))
        self._leader, self._place = self, 0

    def begin(self, learner: Learner, members: Sequence[Member]) -> None:
        """Take weights for every member."""
        super().begin(learner, members)
        self.log_q = torch.full_like(self.domains, -math.log(self.domains.shape[-1]), dtype=self.spread.dtype)
        for place, member in enumerate(members):
            if isinstance(member.method, GroupDRO):
                member.method.follow(self, place)

    def follow(self, leader: GroupDRO, place: int) -> None:
        """Take the facts of this member of a stack from the method that takes its steps."""
        self._leader, self._place = leader, place

    def order(self, train: Split, batch_size: int, streams: Streams, *, drop_last: bool, shuffle: bool = True) -> Order:
        """Return rows of every domain alike, with replacement."""
        return balanced(train.domain.numpy(), batch_size, streams.order, drop_last=drop_last)

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Return the weighted risk, with the weights that follow from this batch."""
        return self._weigh(model, batch)[0]

    def step(self, learner: Learner, batch: Batch) -> Tensor:
        """Update the weights, then take one step."""
        loss, self.log_q = self._weigh(learner.model, batch)
        return descend(loss, learner.optimizer)

    def state(self) -> dict[str, Any]:
        """Return the weights of all domains."""
        return {"log_q": self.log_q}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take back what `state` returned."""
        self.log_q = state["log_q"].to(self.log_q)

    def facts(self) -> dict[str, float]:
        """Return the number of training domains and the largest of their weights."""
        q = self._leader.log_q.reshape(-1, self._leader.log_q.shape[-1])[self._place].exp()
        return super().facts() | {"largest_weight": float(q.max())}

    def _weigh(self, model: nn.Module, batch: Batch) -> tuple[Tensor, Tensor]:
        errors = squared_errors(self.standard(model(batch.x)), self.standard(batch.y))
        rows = one_hot(self.places(batch.domain), self.domains.shape[-1]).to(errors.dtype)
        risk = (errors.unsqueeze(-2) @ rows).squeeze(-2) / rows.sum(dim=-2).clamp_min(1)
        log_q = (self.log_q + self.eta * risk.detach()).log_softmax(dim=-1)
        return (log_q.exp() * risk).sum(dim=-1), log_q
