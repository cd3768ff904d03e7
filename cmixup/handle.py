"""The training as a method, its pairing and its mixing see it, from before the first step on, and what they keep."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from cmixup.batch import Batch, EpochBatches
from cmixup.data import RegressionData
from cmixup.model_stack import ModelStack
from cmixup.optim import Optimizer
from cmixup.seeding import Streams

#: Told how many of how many steps of a search are done.
SearchCallback = Callable[[int, int], None]


class Training(Protocol):
    """The training of E runs as one stack; tensors have a leading axis of E, or none where E is 1."""

    stack: ModelStack  #: The models with their optimiser, freshly initialised when training begins.
    data: Sequence[RegressionData]  #: Of each run; the test split must not be read.
    methods: Sequence[Any]  #: The fitted method of each run.
    streams: Sequence[Streams]  #: Of each run.
    resumed: bool  #: Whether runs go on from a checkpoint, which holds the findings of a search before training.
    on_search: SearchCallback | None  #: Told of the steps of such a search.

    def read(self, split: str, rows: np.ndarray | Tensor) -> Batch:
        """Return rows of "train" or "val" as a step gets them: on the device, labels as the loss sees them.

        Rows are `(E, B)` int64, or `(B,)` for the same rows of every run.
        """
        ...

    def batches(self, orders: Sequence[EpochBatches], draws: Sequence[Mapping[str, np.ndarray]]) -> Iterator[Batch]:
        """Yield the batches of an epoch from the order and the draws of each run; see `Method.draw`."""
        ...

    def run_epoch(self, orders: Sequence[EpochBatches], draws: Sequence[Mapping[str, np.ndarray]]) -> Tensor:
        """Take the method's step on each of these batches and return the losses, `(n_batches,)` or `(n_batches, E)`."""
        ...

    def predict(self, split: str) -> Tensor:
        """Return the current predictions for a whole split, `(..., N, d_y)` in label units, in evaluation mode."""
        ...

    def validate(self) -> Tensor:
        """Return the current selection score of each run on its validation split, `(E,)` float64 on the CPU."""
        ...


class KeepsState(nn.Module):
    """A part whose attributes named in `kept_state` are saved with it: numbers, arrays and an optimiser."""

    kept_state: ClassVar[tuple[str, ...]] = ()

    def get_extra_state(self) -> dict[str, Any]:
        """Return the attributes as a checkpoint holds them; an optimiser that is not made yet is None."""
        state = {name: getattr(self, name, None) for name in self.kept_state}
        state |= {name: torch.from_numpy(value) for name, value in state.items() if isinstance(value, np.ndarray)}
        return {name: value.state_dict() if isinstance(value, Optimizer) else value for name, value in state.items()}

    def set_extra_state(self, state: Mapping[str, Any]) -> None:
        """Load the result of `get_extra_state`."""
        for name, value in state.items():
            if isinstance(optimizer := getattr(self, name, None), Optimizer):
                optimizer.load_state_dict(value)
            else:
                setattr(self, name, value.numpy() if isinstance(value, Tensor) else value)
