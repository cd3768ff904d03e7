"""The contract of a pairing: who is mixed with whom."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from torch import nn

from cmixup.data import Split
from cmixup.order import EpochBatches


class Pairing(nn.Module, ABC):
    """Chooses the partners of all rows of an epoch at once.

    A pairing is an `nn.Module` so that what its draws count or what was learned for it is saved with the method
    (`get_extra_state`); it has no parameters and is never called.
    """

    @abstractmethod
    def fit(self, train: Split) -> None:
        """Read what the pairing needs from the training split, once a run."""

    @abstractmethod
    def draw(self, order: EpochBatches, rng: np.random.Generator) -> np.ndarray:
        """Return the partner of every row in `order.index`, `(M,)` int64 rows of the training split."""

    def check_batch(self, batch_size: int) -> None:
        """Raise `InputError` if full batches of `batch_size` rows do not suit the pairing."""

    def diagnostics(self) -> dict[str, float | str]:
        """Return what a record should say of this pairing (`effective_fraction`, `self_probability`, `verdict`)."""
        return {}
