"""The one interface through which every method learns who is mixed with whom."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from cmixup.data import Split
from cmixup.order import Order


class Pairing(Protocol):
    """Chooses the partners of all rows of an epoch at once."""

    def fit(self, train: Split) -> None:
        """Read what the pairing needs from the training split, once a run."""
        ...

    def draw(self, order: Order, rng: np.random.Generator) -> np.ndarray:
        """Return the partner of every row in `order.index`, `(M,)` int64 rows of the training split."""
        ...

    def facts(self) -> dict[str, float]:
        """Return what a record should say of this pairing (`effective_fraction`, `self_probability`)."""
        ...
