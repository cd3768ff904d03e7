"""The contract of a mixing: how two examples become one."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar

import numpy as np
from torch import Tensor, nn

from cmixup.data import Split
from cmixup.errors import InputError
from cmixup.seeding import StepRandom, Streams
from cmixup.training.batch import Batch, EpochBatches
from cmixup.training.model_stack import ModelStack
from cmixup.training.optim import descend
from cmixup.training.training import Training
from cmixup.tree import leaves

Loss = Callable[[nn.Module, Batch], Tensor]


class Transform(nn.Module, ABC):
    """Changes the states of rows, each by itself, before they are mixed or fitted."""

    @abstractmethod
    def forward(self, state: Any, rows: Batch, rng: StepRandom) -> Any:
        """Return the changed state, of the same shape.

        Args:
            state: `(..., B, *features)`, or a tuple of such tensors.
            rows: the batch that it is of, with labels and domains; for a `Mix` also that of the partners.
            rng: random numbers of this step.
        """

    def of(self, state: Any, rows: Batch, rng: StepRandom | None) -> Any:
        """Return the changed state, or raise `InputError` if its shapes are others than before."""
        changed = self(state, rows, rng)
        before, after = ([tuple(getattr(leaf, "shape", ())) for leaf in leaves(tree)] for tree in (state, changed))
        if before != after:
            raise InputError(f"transform {type(self).__name__} must return a state of shape {before}, got {after}")
        return changed


class Mixing(nn.Module, ABC):
    """Mixes inputs or hidden states of pairs of examples.

    A subclass implements `forward`. It may draw (`draw`), look at gradients before the batch is mixed (`step`), and own
    a network: parameters made in its constructor, in `fit` or in `begin`, trained in `step`. In a stack of E runs,
    parameters and buffers have a leading axis of E, as those of a method do.
    """

    images: ClassVar[bool] = False  #: whether states must be images or feature maps `(..., C, H, W)`
    inputs: ClassVar[bool] = False  #: whether it mixes inputs alone
    #: Independent draws of partner and lambda that a step uses, 1 or 2. The second are `Batch.other` and the draw
    #: `other_lam`.
    pairs: ClassVar[int] = 1
    stackable: ClassVar[bool] = True  #: see `Method`

    @abstractmethod
    def forward(self, first: Any, second: Any, draws: Mapping[str, Tensor]) -> tuple[Any, Tensor]:
        """Return the mixed state, and the weight `(..., B)` that the label of `first` gets.

        Args:
            first, second: states of one shape `(..., B, *features)`, or tuples of such tensors.
            draws: the batch's draws; `lam: (..., B)` and those of `draw`.
        """

    def fit(self, train: Split, model: nn.Module, streams: Streams | None) -> None:
        """Prepare for one run, and refuse data or a model that do not suit; see `Method.fit`."""

    def draw(self, order: EpochBatches, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Return the mixing's draws of an epoch beside lambda, each `(M, ...)`, aligned with `order.index`."""
        return {}

    def begin(self, training: Training) -> None:
        """Make optimisers of networks that the mixing owns; see `Method.begin`."""

    def step(self, loss: Loss, stack: ModelStack, batch: Batch) -> Tensor:
        """Take one optimiser step on `loss(stack.model, batch)` and return the detached loss.

        A mixing that looks at gradients takes them here and adds its findings to the batch's draws; one that owns a
        network lets its optimiser step, too.
        """
        return descend(loss(stack.model, batch), stack.optimizer)
