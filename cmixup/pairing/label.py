"""Partners with near labels: C-Mixup's pairing (Yao et al. 2022, Eq. 6)."""

from __future__ import annotations

import numpy as np

from cmixup.data import Split
from cmixup.errors import check_bandwidth
from cmixup.order import Order
from cmixup.pairing.sampler import PartnerSampler


class LabelDistance:
    """P(j|i) ~ exp(-||y_i - y_j||^2 / (2 bandwidth^2)) over all training rows, the row itself included.

    Args:
        bandwidth: sigma in label units, 0 or more. 0 pairs equal labels only; infinity is plain mixup.
    """

    def __init__(self, bandwidth: float):
        self.bandwidth = check_bandwidth(bandwidth)

    def fit(self, train: Split) -> None:
        """Build the sampler from the training labels."""
        self.sampler = PartnerSampler(train.y.numpy(), self.bandwidth)

    def draw(self, order: Order, rng: np.random.Generator) -> np.ndarray:
        """Return partners `(M,)` int64, drawn for the whole epoch in one call."""
        return self.sampler.draw(order.index, rng)

    def facts(self) -> dict[str, float]:
        """Median effective-partner fraction and median probability of drawing oneself."""
        n_rows = len(self.sampler)
        return {
            "effective_fraction": float(np.median(self.sampler.effective_partners())) / n_rows,
            "self_probability": float(np.median(self.sampler.self_probability())),
        }
