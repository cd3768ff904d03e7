"""What methods for several training domains share: batches of domains, means over domains, standardised labels.

Labels are standardised inside the loss, with the training split's mean and standard deviation: penalties of IRM and
V-REx grow with the fourth power of the label's unit, weights such as 100 were chosen for losses of about 1, and a
method should not change with the unit. Predictions stay in label units. Dividing a loss by var(y) changes nothing for
Adam, whose steps do not depend on the loss's scale; with SGD it divides the learning rate by var(y), and weight decay
counts relative to the scaled loss.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from cmixup.backbone import Backbone
from cmixup.data import Split
from cmixup.errors import InputError, as_number
from cmixup.methods.base import Method
from cmixup.order import Order, grouped
from cmixup.seeding import Streams

if TYPE_CHECKING:
    from cmixup.learner import Learner
    from cmixup.training.trainer import Member


class DomainMethod(Method):
    """A method that reads domains; its batches hold `groups` domains with as many rows of each (`order.grouped`).

    Args:
        groups: domains a batch.
        standardise: compute the loss on standardised labels.
        rows: fewest rows of a domain in a batch.
        reads_features: whether the loss reads `model.features`.
    """

    needs_domains: ClassVar[bool] = True

    def __init__(self, groups: int, *, standardise: bool = True, rows: int = 1, reads_features: bool = False):
        if isinstance(groups, bool) or not isinstance(groups, int) or groups < 1:
            raise InputError(f"groups must be a whole number, 1 or more, got {groups!r}")
        self.groups, self.standardise, self.reads_features = groups, standardise, reads_features
        self.batch_multiple, self.least_batch = groups, groups * rows

    def fit(self, train: Split, model: nn.Module) -> None:
        """Find the domains and the mean and standard deviation of the labels.

        Raises:
            InputError: a single domain, fewer domains than `groups`, a model without the features that are read.
        """
        self.domains = torch.from_numpy(np.unique(train.domain.numpy()))
        count = len(self.domains)
        if count < 2:
            raise InputError(
                f"{type(self).__name__} needs training rows of two or more domains, {train.name} has {count}"
            )
        if self.groups > count:
            raise InputError(f"groups must be at most the number of training domains, got {self.groups} for {count}")
        if self.reads_features:
            self.width = check_features(model, train)
        # One scale for every label dimension, so that each keeps its share of the squared error.
        self.centre = train.y.mean(dim=0)
        spread = train.y.double().var(dim=0, correction=0).mean().sqrt()
        self.spread = torch.where(spread > 0, spread, 1.0).to(train.y.dtype)

    def begin(self, learner: Learner, members: Sequence[Member]) -> None:
        """Take the domains and labels of every member, onto the device."""
        methods = [member.method for member in members]
        counts = {len(method.domains) for method in methods if isinstance(method, DomainMethod)}
        if len(counts) > 1:
            raise InputError(f"all runs of a stack need as many training domains, got {sorted(counts)}")
        for name, axes in (("domains", 0), ("centre", 1), ("spread", 2)):
            each = torch.stack([getattr(method, name) for method in methods])
            stacked = each.reshape(len(methods), *[1] * axes, *each.shape[1:])
            setattr(self, name, (stacked if len(methods) > 1 else each[0]).to(learner.device))

    def order(self, train: Split, batch_size: int, streams: Streams, *, drop_last: bool, shuffle: bool = True) -> Order:
        """Return batches of `groups` domains; all are full, so `drop_last` says nothing.

        Raises:
            InputError: a batch size that is no multiple of `groups`, or too small.
        """
        if batch_size % self.batch_multiple or batch_size < self.least_batch:
            raise InputError(
                f"batch_size must be a multiple of groups, {self.least_batch} or more, got batch_size {batch_size} "
                f"for groups {self.groups}"
            )
        return grouped(train.domain.numpy(), self.groups, batch_size // self.groups, streams.order)

    def standard(self, values: Tensor) -> Tensor:
        """Return labels or predictions `(..., B, d_y)` in standard units, or as they are without `standardise`."""
        return (values - self.centre) / self.spread if self.standardise else values

    def places(self, domain: Tensor) -> Tensor:
        """Return domains `(..., B)` as places 0, 1, ... in the ascending training domains."""
        return torch.searchsorted(self.domains, domain.contiguous())

    def facts(self) -> dict[str, float]:
        """Return the number of training domains."""
        return {"n_domains": float(self.domains.shape[-1])}


class Means:
    """Means over the rows of a domain and over the domains of a batch, whatever their ids, sizes and order.

    Args:
        domain: `(..., B)` domain of each row; leading axes are models of a stack.
        dtype: of the values that means are taken of.

    Attributes:
        same: `(..., B, B)` float, 1 where two rows are of one domain.
        count: `(..., B)` rows of each row's domain.
        share: `(..., B)` weights with which a sum over rows is the mean over domains of their means; they sum to 1.
        number: `(...)` domains in the batch.
    """

    def __init__(self, domain: Tensor, dtype: torch.dtype = torch.float32):
        self.same = (domain.unsqueeze(-1) == domain.unsqueeze(-2)).to(dtype)
        self.count = self.same.sum(dim=-1)
        self.number = self.count.reciprocal().sum(dim=-1).round()
        self.share = 1 / (self.count * self.number.unsqueeze(-1))

    def within(self, values: Tensor, weight: Tensor | None = None) -> Tensor:
        """Return for each row the mean over its domain of `values: (..., B)`, weighted by `weight: (..., B)`.

        Where the weights of a domain are all 0 the mean is 0.
        """
        if weight is None:
            return (self.same @ values.unsqueeze(-1)).squeeze(-1) / self.count
        total = self.same @ torch.stack([values * weight, weight], dim=-1)
        return total[..., 0] / total[..., 1].clamp_min(1e-12)

    def centred(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Return `values: (..., B, D)` minus the mean of their domain, and these means, `(..., B, D)`."""
        mean = self.same @ values / self.count.unsqueeze(-1)
        return values - mean, mean

    def across(self, values: Tensor) -> Tensor:
        """Return the mean over domains of the mean of `values: (..., B)` in each, `(...)`."""
        return (self.share * values).sum(dim=-1)


def check_features(model: nn.Module, train: Split) -> int:
    """Return the width of the model's features.

    Raises:
        InputError: a model without features, or one whose prediction is more than `head(features(x))`.
    """
    if not isinstance(model, Backbone):
        raise InputError(f"model must be a Backbone with features for this method, got {type(model).__name__}")
    training = model.training
    x = train.x[torch.arange(min(2, len(train)))]
    model.eval()
    with torch.no_grad():
        features = model.features(x)
        same = torch.allclose(model.head(features), model(x), rtol=1e-4, atol=1e-6)
    model.train(training)
    if not same:
        raise InputError(
            f"model must predict head(features(x)) for this method; a part of {type(model).__name__} goes another way"
        )
    return features.shape[-1]


def check_weight(name: str, value: float) -> float:
    """Return `value` as a float if it is finite and 0 or more, else raise `InputError`."""
    value = as_number(name, value)
    if not 0 <= value < float("inf"):
        raise InputError(f"{name} must be a finite number, 0 or more, got {value!r}")
    return value


def check_steps(name: str, value: int) -> int:
    """Return `value` if it is a whole number, 0 or more, else raise `InputError`."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or value < 0:
        raise InputError(f"{name} must be a whole number of optimiser steps, 0 or more, got {value!r}")
    return int(value)
