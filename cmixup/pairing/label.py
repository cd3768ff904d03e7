"""Partners with near labels: C-Mixup's pairing (Yao et al. 2022, Eq. 6)."""

from __future__ import annotations

import numpy as np

from cmixup.data import Split
from cmixup.order import Order
from cmixup.sampling.bandwidth import diagnose, resolve_bandwidth
from cmixup.sampling.sampler import PartnerSampler


class LabelDistance:
    """P(j|i) ~ exp(-||y_i - y_j||^2 / (2 bandwidth^2)) over all training rows, the row itself included.

    Args:
        bandwidth: sigma in label units, 0 or more (0 pairs equal labels only; infinity is plain mixup), "auto",
            ("fraction", f) for the sigma at which the median effective-partner fraction is f, or ("std", c) for c
            standard deviations of the training labels.

    Raises:
        InputError: any other bandwidth.
    """

    def __init__(self, bandwidth: float | str | list | tuple):
        resolve_bandwidth(np.zeros(1), bandwidth)  # refuses a bad value before any data is read
        self.bandwidth = bandwidth

    def fit(self, train: Split) -> None:
        """Build the sampler from the training labels."""
        self._labels = train.y.numpy()
        self.sampler = PartnerSampler(self._labels, self.bandwidth)

    def draw(self, order: Order, rng: np.random.Generator) -> np.ndarray:
        """Return partners `(M,)` int64, drawn for the whole epoch in one call."""
        return self.sampler.draw(order.index, rng)

    def facts(self) -> dict[str, float]:
        """Return the bandwidth in use and what it does to the pairs, see `BandwidthReport`."""
        report = diagnose(self._labels, self.sampler.bandwidth)
        names = ("bandwidth", "effective_fraction", "self_probability", "equal_label_probability")
        return {name: getattr(report, name) for name in names}
