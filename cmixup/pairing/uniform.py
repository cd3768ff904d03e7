"""Partners drawn uniformly: plain mixup."""

from __future__ import annotations

import numpy as np

from cmixup.data import Split
from cmixup.order import Order


class Uniform:
    """Any training row with equal probability, with replacement, the row itself allowed (released C-Mixup code)."""

    def fit(self, train: Split) -> None:
        """Remember the number of training rows."""
        self.n_rows = len(train)

    def draw(self, order: Order, rng: np.random.Generator) -> np.ndarray:
        """Return partners `(M,)` int64 by inverse CDF of one uniform number a row."""
        return (rng.random(len(order.index)) * self.n_rows).astype(np.int64)

    def facts(self) -> dict[str, float]:
        """Every row is an effective partner."""
        return {"effective_fraction": 1.0, "self_probability": 1.0 / self.n_rows}


class Permutation:
    """A permutation of each batch: the original mixup code's pairing (Zhang et al. 2018)."""

    def fit(self, train: Split) -> None:
        """Remember the number of training rows."""
        self.n_rows = len(train)

    def draw(self, order: Order, rng: np.random.Generator) -> np.ndarray:
        """Return partners `(M,)` int64, each batch a permutation of itself."""
        return np.concatenate([rng.permutation(batch) for batch in order.batches()])

    def facts(self) -> dict[str, float]:
        """Over many epochs every row is an effective partner."""
        return {"effective_fraction": 1.0, "self_probability": 1.0 / self.n_rows}
