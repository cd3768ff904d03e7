"""What a method is to the trainer: the order of the rows, the draws of an epoch, a loss, a step, a prediction.

Randomness is drawn in one place (`order`, `draw`) and applied in another (`loss`), which is a pure function of the
model and the batch. `loss` must work with a leading axis of models on every tensor: reduce the last axes only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import torch
from torch import Tensor, nn

from cmixup.batch import Batch, Predict
from cmixup.data import Split
from cmixup.errors import InputError
from cmixup.optim import Optimizer
from cmixup.order import Order, in_turn, shuffled
from cmixup.seeding import Streams

if TYPE_CHECKING:
    from cmixup.learner import Learner
    from cmixup.training.trainer import Member


class Method:
    """A way to train; this base class is plain empirical risk minimisation but for the loss.

    Attributes:
        stackable: whether `loss` works on a stack of models. Otherwise seeds are trained one after another.
        episodic: whether a row of its data is a task (`cmixup.tasks.Tasks`).
        layer: where it mixes, as asked for; empty if it does not.
        needs_domains: whether the training split must have two domains or more.
        least_batch: the fewest rows a full batch must have.
        batch_multiple: what the rows of a full batch must be a multiple of.
    """

    stackable: ClassVar[bool] = True
    needs_domains: ClassVar[bool] = False
    episodic: ClassVar[bool] = False
    layer: str = ""
    least_batch: int = 1
    batch_multiple: int = 1

    def fit(self, train: Split, model: nn.Module) -> None:
        """Read what is needed from the training split and the model's shape, once, before training."""

    def search(self, train: Split, val: Split, model: nn.Module, streams: Streams) -> None:
        """Learn from the validation split what training will use, once, before it; `model` stays as it is."""

    def begin(self, learner: Learner, members: Sequence[Member]) -> None:
        """Prepare what lives as long as training does (networks of its own, state of every model), after `search`.

        Called once, on the method of the first of the stack's `members`: that one takes every step.
        """

    def order(self, train: Split, batch_size: int, streams: Streams, *, drop_last: bool, shuffle: bool = True) -> Order:
        """Return the rows of one epoch; domain-balanced methods, which draw them whatever `shuffle`, override this."""
        if not shuffle:
            return in_turn(len(train), batch_size, drop_last=drop_last)
        return shuffled(len(train), batch_size, streams.order, drop_last=drop_last)

    def draw(self, order: Order, streams: Streams) -> dict[str, np.ndarray]:
        """Return what the method draws for an epoch, each `(M,)` or `(M, n)` and aligned with `order.index`.

        The key `partner` is special: int64 rows, which the trainer fetches into `Batch.partner`.
        """
        return {}

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Return the training loss, a scalar, or `(E,)` for a stack of E models."""
        raise InputError(f"method {type(self).__name__} defines no loss")

    def step(self, learner: Learner, batch: Batch) -> Tensor:
        """Take one optimiser step and return the detached loss.

        Methods with several inner steps, networks of their own or searches that need gradients override this.
        """
        return descend(self.loss(learner.model, batch), learner.optimizer)

    def predict(self, model: nn.Module, x: Tensor) -> Tensor:
        """Return predictions `(..., B, d_y)`."""
        return model(x)

    def alternatives(self) -> Mapping[str, Predict]:
        """Return other ways to predict with the selected weights, by what their test scores' names end in."""
        return {}

    def state(self) -> dict[str, Any]:
        """Return what `step` changes in the method itself, for a checkpoint: tensors, numbers and containers of them.

        Draws are made again by themselves.
        """
        return {}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Take back what `state` returned, after `begin`."""

    def facts(self) -> dict[str, float]:
        """Return what a record should say of the fitted method, by name."""
        return {}


def descend(loss: Tensor, *optimizers: Optimizer) -> Tensor:
    """Take one step of each optimiser down the gradient of `loss`, a scalar or `(E,)`, and return it detached."""
    for optimizer in optimizers:
        optimizer.zero_grad()
    # The models of a stack share no parameter: the sum trains each on its own loss.
    loss.sum().backward()  # type: ignore[no-untyped-call]
    for optimizer in optimizers:
        optimizer.step()
    return loss.detach()


def squared_error(prediction: Tensor, target: Tensor, weight: Tensor | None = None) -> Tensor:
    """Return the mean squared error over rows and label dimensions, `(...)`: one value a model.

    Args:
        prediction, target: `(..., B, d_y)`.
        weight: `(..., B)`, 0 or more; rows count by their weight, and where all are 0 the error is 0.

    Raises:
        InputError: shapes that differ (a (B,) target would silently broadcast to (B, B)).
    """
    if weight is None:
        return _squares(prediction, target).mean(dim=(-2, -1))
    error = squared_errors(prediction, target)
    return (weight * error).sum(dim=-1) / weight.sum(dim=-1).clamp_min(torch.finfo(weight.dtype).tiny)


def squared_errors(prediction: Tensor, target: Tensor) -> Tensor:
    """Return the squared error of each row, averaged over label dimensions, `(..., B)`; see `squared_error`."""
    return _squares(prediction, target).mean(dim=-1)


def _squares(prediction: Tensor, target: Tensor) -> Tensor:
    if prediction.shape != target.shape:
        raise InputError(
            f"prediction and target must have the same shape, got {tuple(prediction.shape)} and {tuple(target.shape)}"
        )
    return (prediction - target).square()
