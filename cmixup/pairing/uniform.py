"""Partners drawn uniformly: the pairing of mixup and Manifold Mixup."""

import numpy as np

from cmixup.data import Split
from cmixup.pairing.base import Pairing
from cmixup.training.batch import EpochBatches


class Uniform(Pairing):
    """Draws any training row with equal probability, with replacement, itself allowed (released C-Mixup code)."""

    def fit(self, train: Split) -> None:
        self.n_rows = len(train)

    def draw(self, order: EpochBatches, rng: np.random.Generator) -> np.ndarray:
        """Return partners `(M,)` int64 by inverse CDF of one uniform number a row."""
        return (rng.random(len(order.index)) * self.n_rows).astype(np.int64)

    def diagnostics(self) -> dict[str, float | str]:
        return {"effective_fraction": 1.0, "self_probability": 1.0 / self.n_rows}


class Permutation(Uniform):
    """Permutes each batch: the pairing of the original mixup code (Zhang et al. 2018)."""

    def draw(self, order: EpochBatches, rng: np.random.Generator) -> np.ndarray:
        return np.concatenate([rng.permutation(batch) for batch in order.batches()])
