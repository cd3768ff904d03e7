"""The composition behind IRM, IB-IRM, V-REx and CORAL: mean risk over domains plus weighted penalties.

Weights may change once, after a number of optimiser steps ("annealing"); the optimiser then starts anew, as in
facebookresearch/DomainBed, since its moments belong to another loss.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from torch import Tensor, nn

from cmixup.batch import Batch
from cmixup.methods.base import squared_errors
from cmixup.methods.domains import DomainMethod, Means, check_steps, check_weight

if TYPE_CHECKING:
    from cmixup.learner import Learner
    from cmixup.training.trainer import Member


@dataclass(frozen=True)
class Outputs:
    """What a penalty sees of a batch.

    Attributes:
        prediction, y: `(..., B, d_y)`, standardised if the method does so.
        errors: `(..., B)` squared error of each row.
        features: `(..., B, D)`, or None where no penalty reads them.
        means: over the domains of the batch.
    """

    prediction: Tensor
    y: Tensor
    errors: Tensor
    features: Tensor | None
    means: Means


Penalty = Callable[[Outputs], Tensor]


@dataclass(frozen=True)
class Term:
    """A penalty and its weight.

    Args:
        name: how errors call the weight.
        penalty: from the outputs of a batch to `(...)`.
        weight: after the annealing.
        anneal: optimiser steps that it lasts.
        before: weight until then.
    """

    name: str
    penalty: Penalty
    weight: float
    anneal: int = 0
    before: float = 0.0

    def __post_init__(self) -> None:
        check_weight(self.name, self.weight)
        check_steps("anneal", self.anneal)

    def at(self, step: int) -> float:
        """Return the weight of a step, counted from 0."""
        return self.before if step < self.anneal else self.weight

    def switches(self, step: int) -> bool:
        """Return whether the weight changes at this step."""
        return step == self.anneal > 0 and self.before != self.weight


class Penalised(DomainMethod):
    """`mean_e R_e + sum_t weight_t penalty_t`, with R_e the mean squared error on domain e of the batch.

    Args:
        groups: domains a batch.
        terms: the penalties.
        standardise: compute the loss on standardised labels.
        divide: divide the whole loss by the first term's weight where that is above 1 (the original IRM code), which
            keeps the gradient's size; Adam's steps are the same without.
        rows: fewest rows of a domain in a batch.
        reads_features: whether a penalty reads features.
    """

    def __init__(
        self,
        groups: int,
        terms: Sequence[Term],
        *,
        standardise: bool = True,
        divide: bool = False,
        rows: int = 1,
        reads_features: bool = False,
    ):
        super().__init__(groups, standardise=standardise, rows=rows, reads_features=reads_features)
        self.terms, self.divide = tuple(terms), divide
        self.steps = 0

    def begin(self, learner: Learner, members: Sequence[Member]) -> None:
        """Start with the annealing."""
        super().begin(learner, members)
        self.steps = 0

    def state(self) -> dict[str, Any]:
        """Return the number of steps."""
        return {"steps": self.steps}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take back what `state` returned."""
        self.steps = state["steps"]

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Return the penalised risk, with the weights of the next step."""
        features = model.features(batch.x) if self.reads_features else None  # type: ignore[operator]
        prediction = model(batch.x) if features is None else model.head(features)  # type: ignore[operator]
        f, y, means = self.standard(prediction), self.standard(batch.y), Means(batch.domain, prediction.dtype)
        seen = Outputs(f, y, squared_errors(f, y), features, means)
        loss = means.across(seen.errors)
        weights = [term.at(self.steps) for term in self.terms]
        for term, weight in zip(self.terms, weights, strict=True):
            if weight:
                loss = loss + weight * term.penalty(seen)
        return loss / max(1.0, weights[0]) if self.divide else loss

    def step(self, learner: Learner, batch: Batch) -> Tensor:
        """Take one step; the optimiser starts anew where a weight switches."""
        if any(term.switches(self.steps) for term in self.terms):
            learner.optimizer.reset()
        loss = super().step(learner, batch)
        self.steps += 1
        return loss
