"""The contract of a pairing: who is mixed with whom."""

from abc import ABC, abstractmethod
from typing import ClassVar

import numpy as np
from torch import nn

from cmixup.data import Split
from cmixup.errors import InputError
from cmixup.training.batch import Batch, EpochBatches
from cmixup.training.training import Training


class Pairing(nn.Module, ABC):
    """Chooses the partners of all rows of an epoch at once.

    A pairing is an `nn.Module` so that its counts and learned values are saved with the method
    (`get_extra_state`); it has no parameters and is never called.
    """

    #: Whether `with_partners` chooses or makes the partners, such as by the current weights. Such a pairing overrides
    #: `named_draws`, since all randomness of an epoch is drawn before it: candidates and uniform numbers, or whatever
    #: else the step needs. Methods that read partners before the step refuse it.
    in_step: ClassVar[bool] = False

    @abstractmethod
    def fit(self, train: Split) -> None:
        """Prepare from the training split, once a run; labels are in their own unit."""

    def draw(self, order: EpochBatches, rng: np.random.Generator) -> np.ndarray:
        """Return the partner of every row in `order.index`, `(M,)` int64 rows of the training split."""
        raise InputError(f"pairing {type(self).__name__} chooses partners in the step and has none before it")

    def named_draws(self, order: EpochBatches, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Return the draws of an epoch by name, each aligned with `order.index`: the partners, if they are known."""
        return {"partner": self.draw(order, rng)}

    def refuse_gaps(self, train: Split) -> None:
        """Raise `InputError` if labels are missing, for a pairing that compares whole ones."""
        if bool(train.y.isnan().any()):
            raise InputError(f"pairing {type(self).__name__} takes no labels with gaps, which {train.name} has")

    def check_model(self, model: nn.Module) -> None:
        """Raise `InputError` if the pairing needs something that the model does not offer."""

    def begin(self, training: Training) -> None:
        """Prepare for the steps of a stack, once training begins; see `Method.begin`."""

    def with_partners(self, model: nn.Module, batch: Batch) -> Batch:
        """Return the batch with its partners, at the start of a step; here they are there already.

        Pairings compare `batch.labels`, which are in their own unit. A partner that is made here and is no row has its
        `y` in the loss's unit, as `batch.y` is.
        """
        return batch

    def check_batch(self, batch_size: int) -> None:
        """Raise `InputError` if full batches of `batch_size` rows do not suit the pairing."""

    def set_bandwidth(self, bandwidth: float | str | list | tuple) -> None:
        """Draw with another bandwidth, in any form that the constructor takes, from the next epoch on.

        A checkpoint keeps it. `InputError` is raised where a fitted pairing has no bandwidth that can change.
        """
        raise InputError(f"pairing {type(self).__name__} has no bandwidth that can change between epochs")

    def diagnostics(self) -> dict[str, float | str]:
        """Return facts about this pairing for a record (`effective_fraction`, `self_probability`, `verdict`)."""
        return {}
