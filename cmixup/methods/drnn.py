"""DRNN, domain-adversarial training (Ganin and Lempitsky 2015, arXiv 1409.7495; DANN in p-lambda/wilds examples and
DomainBed).

A network tells the domain of a row from the features; they are trained to mislead it, by a gradient that is reversed on
the way back. Differences from WILDS: the classifier has two hidden layers of 128 instead of 1024 and no BatchNorm, so
that those of a stack run as one; the regressor has one learning rate instead of two; the risk is on standardised
labels. Against DomainBed: one joint step instead of alternating ones.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import torch
from torch import Tensor, nn

from cmixup.backbone import StackLinear
from cmixup.batch import Batch
from cmixup.errors import InputError, check_positive
from cmixup.learner import Learner
from cmixup.methods.base import descend, squared_error
from cmixup.methods.domains import DomainMethod, check_steps, check_weight
from cmixup.seeding import torch_seed

if TYPE_CHECKING:
    from cmixup.training.trainer import Member


class Reverse(torch.autograd.Function):
    """The identity, whose gradient is multiplied by -c on the way back."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, c: float) -> Tensor:
        """Return `x`."""
        ctx.c = c
        return x.view_as(x)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        """Return the reversed gradient."""
        return -ctx.c * gradients[0], None


class DomainClassifier(nn.Module):
    """From features `(..., B, D)` to logits `(..., B, n_domains)`: two hidden layers with ReLU.

    Args:
        in_features: D.
        n_domains: classes.
        width: of the hidden layers.
    """

    stackable: ClassVar[bool] = True

    def __init__(self, in_features: int, n_domains: int, width: int):
        super().__init__()
        self.linear1 = StackLinear(in_features, width)
        self.linear2 = StackLinear(width, width)
        self.out = StackLinear(width, n_domains)

    def forward(self, features: Tensor) -> Tensor:
        """Return the logits."""
        return self.out(self.linear2(self.linear1(features).relu()).relu())


def cross_entropy(logits: Tensor, place: Tensor) -> Tensor:
    """Return the mean over rows of `-log softmax`, `(...)`, from `(..., B, n)` logits and `(..., B)` classes."""
    return -logits.log_softmax(dim=-1).gather(-1, place.unsqueeze(-1)).mean(dim=(-2, -1))


class DRNN(DomainMethod):
    """`MSE(head(h), y) + weight * CE(D(reverse(h)), domain)`: D descends the cross-entropy, the features ascend it.

    Args:
        groups: domains a batch; the batch size must be a multiple of it.
        weight: w, of the cross-entropy.
        reversal: c, the factor of the reversed gradient.
        ramp: optimiser steps in which c grows as reversal * (2 / (1 + exp(-10 p)) - 1), p from 0 to 1; 0 for none.
        width: of the classifier's hidden layers.
        classifier_lr: learning rate of the classifier (Adam).
        standardise: compute the risk on standardised labels.
    """

    def __init__(
        self,
        groups: int,
        weight: float = 0.1,
        *,
        reversal: float = 1.0,
        ramp: int = 0,
        width: int = 128,
        classifier_lr: float = 1e-3,
        standardise: bool = True,
    ):
        super().__init__(groups, standardise=standardise, reads_features=True)
        self.weight, self.reversal = check_weight("weight", weight), check_weight("reversal", reversal)
        self.ramp, self.classifier_lr = check_steps("ramp", ramp), check_positive("classifier_lr", classifier_lr)
        if isinstance(width, bool) or not isinstance(width, int) or width < 1:
            raise InputError(f"width must be a whole number, 1 or more, got {width!r}")
        self.classifier_width = width
        self.steps = 0

    def begin(self, learner: Learner, members: Sequence[Member]) -> None:
        """Make a classifier for every member."""
        super().begin(learner, members)
        classifiers = []
        for member in members:
            with torch_seed(int(member.streams.mixing.integers(2**62))):
                classifiers.append(DomainClassifier(self.width, self.domains.shape[-1], self.classifier_width))
        self.steps = 0
        self.classifier = Learner(classifiers, learner.device, "adam", self.classifier_lr)

    def state(self) -> dict[str, Any]:
        """Return the classifiers and the number of steps."""
        return {"steps": self.steps, "classifier": self.classifier.progress()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take back what `state` returned."""
        self.steps = state["steps"]
        self.classifier.resume(state["classifier"])

    @property
    def factor(self) -> float:
        """Return c of the next step."""
        if self.steps >= self.ramp:
            return self.reversal
        return self.reversal * (2 / (1 + math.exp(-10 * self.steps / self.ramp)) - 1)

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Return the risk plus the weighted cross-entropy, with c of the next step."""
        features = model.features(batch.x)  # type: ignore[operator]
        prediction = model.head(features)  # type: ignore[operator]
        risk = squared_error(self.standard(prediction), self.standard(batch.y))
        logits = self.classifier.model(Reverse.apply(features, self.factor))  # type: ignore[no-untyped-call]
        return risk + self.weight * cross_entropy(logits, self.places(batch.domain))

    def step(self, learner: Learner, batch: Batch) -> Tensor:
        """Take one step of the regressor and one of the classifier."""
        loss = descend(self.loss(learner.model, batch), learner.optimizer, self.classifier.optimizer)
        self.steps += 1
        return loss
