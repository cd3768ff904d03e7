"""Partners that are means of rows with near labels."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

import numpy as np
from torch import Tensor, nn

from cmixup.data import Split
from cmixup.errors import check_count
from cmixup.methods.domains import Means
from cmixup.methods.mix import Mix
from cmixup.mixing.lam import Beta
from cmixup.pairing.base import Pairing
from cmixup.training.batch import Batch, EpochBatches

space = {"clusters": [2, 4, 8], "alpha": [0.2, 0.5, 1.0, 2.0], "layer": ["input", "hidden"]}


class Centres(Pairing):
    """Mixes a row with the mean of its batch's rows from the same quantile of labels.

    Args:
        clusters: quantiles, 1 or more.
    """

    in_step: ClassVar[bool] = True

    def __init__(self, clusters: int = 4):
        super().__init__()
        self.clusters = check_count("clusters", clusters, 1)

    def fit(self, train: Split) -> None:
        """Find the quantile of each row's label."""
        y = train.y.mean(dim=1).numpy()
        self._cluster = np.searchsorted(np.quantile(y, np.arange(1, self.clusters) / self.clusters), y)

    def named_draws(self, order: EpochBatches, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Return `cluster: (M,)` int64."""
        return {"cluster": self._cluster[order.index]}

    def with_partners(self, model: nn.Module, batch: Batch) -> Batch:
        """Return the batch with the means of its clusters as partners."""
        means, axes = Means(batch.draws["cluster"], batch.y.dtype), batch.y.ndim - 1

        def mean(rows: Tensor) -> Tensor:
            return means.centred(rows.flatten(start_dim=axes))[1].reshape(rows.shape)

        centres = Batch(mean(batch.x), mean(batch.y), batch.domain, labels=mean(batch.labels))
        return replace(batch, partner=centres)


class MixWithCentres(Mix):
    """Mixes rows with such means.

    Args:
        clusters: see `Centres`.
        alpha: of the beta distribution of the mixing weight.
        layer: see `Mix`.
    """

    def __init__(self, clusters: int = 4, alpha: float = 1.0, layer: str = "input"):
        super().__init__(Centres(clusters), Beta(alpha), layer)
