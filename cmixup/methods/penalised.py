"""The composition behind IRM, IB-IRM, V-REx and CORAL: mean risk over domains plus weighted penalties.

Weights may change once, after a number of optimiser steps ("annealing"); the optimiser then starts anew, as in
facebookresearch/DomainBed, since its moments belong to another loss.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from cmixup.batch import Batch
from cmixup.errors import check_count, check_nonnegative
from cmixup.methods.base import squared_errors
from cmixup.methods.domains import DomainBatchMethod, Means
from cmixup.model_stack import KeepsState, ModelStack


@dataclass(frozen=True)
class Outputs:
    """The outputs of a model on a batch, as penalties see them."""

    prediction: Tensor  # (..., B, d_y), in the loss's units; of members, as TabM's, the mean
    y: Tensor  # alike
    errors: Tensor  # (..., B), the squared error of each row
    features: Tensor | None  # (..., B, D), where a penalty reads them
    means: Means  # over the domains of the batch


@dataclass(frozen=True)
class Term:
    """A penalty and its weight."""

    name: str  # of the weight, in errors
    penalty: Callable[[Outputs], Tensor]  # from the outputs of a batch to (...)
    weight: float
    anneal: int = 0  # steps for which `before` is the weight
    before: float = 0.0

    def __post_init__(self) -> None:
        check_nonnegative(self.name, self.weight)
        check_count("anneal", self.anneal, what="a whole number of optimiser steps")

    def at(self, step: int) -> float:
        """Return the weight of a step, counted from 0."""
        return self.before if step < self.anneal else self.weight


class Penalised(KeepsState, DomainBatchMethod):
    """`mean_e R_e + sum_t weight_t penalty_t`, with R_e the mean squared error on domain e of the batch.

    Args:
        groups: domains a batch.
        terms: the penalties.
        divide: divide the whole loss by the first term's weight where that is above 1 (the original IRM code), which
            keeps the gradient's size; Adam's steps are the same without.
        min_rows: fewest rows of a domain in a batch.
        reads_features: whether a penalty reads features.
    """

    kept_state = ("steps",)

    def __init__(
        self,
        groups: int,
        terms: Sequence[Term],
        *,
        divide: bool = False,
        min_rows: int = 1,
        reads_features: bool = False,
    ):
        super().__init__(groups, min_rows=min_rows, reads_features=reads_features)
        self.terms, self.divide = tuple(terms), divide
        self.steps = 0

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Return the penalised risk, with the weights of the next step."""
        features = model.features(batch.x) if self.reads_features else None  # type: ignore[operator]
        prediction = model(batch.x) if features is None else model.head(features)  # type: ignore[operator]
        means, errors = Means(batch.domain, prediction.dtype), squared_errors(prediction, batch.y)
        mean = prediction.mean(dim=-3) if prediction.ndim > batch.y.ndim else prediction
        outputs = Outputs(mean, batch.y, errors, features, means)
        loss = means.across(outputs.errors)
        weights = [term.at(self.steps) for term in self.terms]
        for term, weight in zip(self.terms, weights, strict=True):
            if weight:
                loss = loss + weight * term.penalty(outputs)
        return loss / max(1.0, weights[0]) if self.divide else loss

    def step(self, stack: ModelStack, batch: Batch) -> Tensor:
        """Take one step; the optimiser starts anew where a weight switches."""
        if self.steps and any(term.at(self.steps) != term.at(self.steps - 1) for term in self.terms):
            stack.optimizer.reset()
        loss = super().step(stack, batch)
        self.steps += 1
        return loss
