"""The base of methods for several training domains, and the composition of IRM, IB-IRM, V-REx and CORAL.

They need scaled labels (`train.label_scaling`): penalties of IRM and V-REx grow with the fourth power of the label's
unit, and weights such as 100 were chosen for losses of about 1. Dividing a loss by var(y) changes nothing for Adam,
whose steps do not depend on the loss's scale; with SGD it divides the learning rate by var(y), and weight decay counts
relative to the scaled loss.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from cmixup.backbone import Backbone, evaluating
from cmixup.data import RegressionData, Split
from cmixup.errors import InputError, check_count, check_nonnegative
from cmixup.mixing.linear import in_32_bits
from cmixup.seeding import Streams
from cmixup.training.batch import Batch, EpochBatches, domain_batches
from cmixup.training.method import Method, squared_errors
from cmixup.training.model_stack import KeepsState, ModelStack


class DomainMethod(Method):
    """A method whose loss reads domains."""

    domains = True
    domain_ids: Tensor  #: `(n_domains,)` int64 training domains, ascending; `(E, n_domains)` in a stack

    def fit(self, data: RegressionData, model: nn.Module, streams: Streams | None) -> None:
        self.register_buffer("domain_ids", torch.from_numpy(np.unique(data.train.domain.numpy())))

    def domain_index(self, domain: Tensor) -> Tensor:
        """Return domains `(..., B)` as their places 0, 1, ... among the ascending training domains."""
        return torch.searchsorted(self.domain_ids, domain.contiguous())


class DomainBatchMethod(DomainMethod):
    """A `DomainMethod` whose batches hold `groups` domains with as many rows of each, `min_rows` or more.

    Where it reads `model.features`, `n_features` is their width.
    """

    def __init__(self, groups: int, *, min_rows: int = 1, reads_features: bool = False):
        super().__init__()
        self.groups, self.min_rows, self.reads_features = check_count("groups", groups, 1), min_rows, reads_features

    def fit(self, data: RegressionData, model: nn.Module, streams: Streams | None) -> None:
        """Find the domains, and refuse a model without features, or whose prediction is more than their head."""
        super().fit(data, model, streams)
        if not self.reads_features:
            return
        name = type(model).__name__
        if not isinstance(model, Backbone):
            raise InputError(f"model must be a Backbone with features for this method, got {name}")
        x = data.train.x[torch.arange(min(2, len(data.train)))]
        with evaluating(model):
            features = model.features(x)
            head_agrees = torch.allclose(model.head(features), model(x), rtol=1e-4, atol=1e-6)
        if not head_agrees:
            raise InputError(f"model must predict head(features(x)) for this method; a part of {name} goes another way")
        self.n_features = features.shape[-1]

    def check_batch(self, batch_size: int) -> None:
        least = self.groups * self.min_rows
        if batch_size % self.groups or batch_size < least:
            expected = f"a multiple of groups = {self.groups}, {least} or more"
            raise InputError(f"batch_size must be {expected}, got {batch_size}")

    def order(self, train: Split, batch_size: int, streams: Streams, **batching: bool) -> EpochBatches:
        """Return batches of `groups` domains; all are full, so `drop_last` has no effect."""
        return domain_batches(train.domain.numpy(), self.groups, batch_size // self.groups, streams.order)


class Means:
    """Takes means over the rows of a domain and over the domains of a batch, whatever their ids, sizes and order.

    The domain of each row is `(..., B)`, whose leading axes are models of a stack; `same_domain: (..., B, B)` is 1
    where two rows are of one domain, and `domain_size: (..., B)` counts the rows of a row's domain. With
    `weight: (..., B)`, 1 / (n_domains * domain_size), `sum_i weight_i v_i` is the mean of the domain means.
    """

    def __init__(self, domain: Tensor, dtype: torch.dtype = torch.float32):
        self.same_domain = (domain.unsqueeze(-1) == domain.unsqueeze(-2)).to(dtype)
        self.domain_size = self.same_domain.sum(dim=-1)
        self.n_domains = self.domain_size.reciprocal().sum(dim=-1).round()
        self.weight = 1 / (self.domain_size * self.n_domains.unsqueeze(-1))

    def within(self, values: Tensor, weight: Tensor | None = None) -> Tensor:
        """Return for each row the mean over its domain of `values: (..., B)`, weighted by `weight: (..., B)`.

        Where the weights of a domain are all 0 the mean is 0.
        """
        if weight is None:
            return (self.same_domain @ values.unsqueeze(-1)).squeeze(-1) / self.domain_size
        total = self.same_domain @ torch.stack([values * weight, weight], dim=-1)
        return total[..., 0] / total[..., 1].clamp_min(1e-12)

    def centred(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Return `values: (..., B, D)` minus the mean of their domain, and these means, `(..., B, D)`."""
        mean = self.same_domain @ values / self.domain_size.unsqueeze(-1)
        return values - mean, mean

    def across(self, values: Tensor) -> Tensor:
        """Return the mean over domains of the mean of `values: (..., B)` in each, `(...)`."""
        return (self.weight * values).sum(dim=-1)


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

    Weights may change once, after a number of optimiser steps ("annealing"); the optimiser then starts anew, as in
    facebookresearch/DomainBed, since its moments belong to another loss.

    Args:
        groups: domains a batch.
        terms: the penalties.
        divide: divide the whole loss by the first term's weight where that is above 1 (the original IRM code), which
            keeps the gradient's size; Adam's steps are the same without.
        batches: see `DomainBatchMethod`.
    """

    kept_state = ("steps",)

    def __init__(self, groups: int, terms: Sequence[Term], *, divide: bool = False, **batches: Any):
        super().__init__(groups, **batches)
        self.terms, self.divide = tuple(terms), divide
        self.steps = 0

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        features = model.features(batch.x) if self.reads_features else None  # type: ignore[operator]
        prediction = model(batch.x) if features is None else model.head(features)  # type: ignore[operator]
        errors = squared_errors(prediction, batch.y)
        mean = prediction.mean(dim=-3) if prediction.ndim > batch.y.ndim else prediction
        means, promoted = Means(batch.domain, errors.dtype), features if features is None else features.to(errors.dtype)
        outputs = Outputs(mean, batch.y, errors, promoted, means)
        loss = means.across(outputs.errors)
        weights = [term.at(self.steps) for term in self.terms]
        with in_32_bits(errors.device):
            for term, weight in zip(self.terms, weights, strict=True):
                if weight:
                    loss = loss + weight * term.penalty(outputs)
        return loss / max(1.0, weights[0]) if self.divide else loss

    def step(self, stack: ModelStack, batch: Batch) -> Tensor:
        if self.steps and any(term.at(self.steps) != term.at(self.steps - 1) for term in self.terms):
            stack.optimizer.reset()
        loss = super().step(stack, batch)
        self.steps += 1
        return loss
