"""Partners with near labels: C-Mixup's pairing (Yao et al. 2022, Eq. 6)."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from cmixup.data import Split
from cmixup.errors import check_choice
from cmixup.pairing.base import Pairing
from cmixup.sampling.bandwidth import diagnose, parse_bandwidth
from cmixup.sampling.choice import ALGORITHMS
from cmixup.sampling.sampler import PartnerSampler
from cmixup.training.batch import EpochBatches


class LabelDistance(Pairing):
    """Draws with P(j|i) ~ exp(-||y_i - y_j||^2 / (2 bandwidth^2)) over all training rows, the row itself included.

    Args:
        bandwidth: sigma in label units, 0 or more (0 pairs equal labels only; infinity is plain mixup), or a form of
            `parse_bandwidth`: "auto", ("fraction", f), ("std", c), ("median", c).
        sampler: the algorithm of `PartnerSampler`; the draws of two algorithms differ.
    """

    def __init__(self, bandwidth: float | str | list | tuple, sampler: str = "auto"):
        super().__init__()
        parse_bandwidth(bandwidth)  # refuses a bad value before any data is read
        self.bandwidth = bandwidth
        self.algorithm = check_choice("sampler", sampler, ALGORITHMS)

    def fit(self, train: Split) -> None:
        self.fit_labels(train.y.numpy())

    def fit_labels(self, labels: np.ndarray) -> None:
        """Build the sampler from labels `(N, d_y)`; rows drawn are rows of this array."""
        self._labels = labels
        self.sampler = PartnerSampler(labels, self.bandwidth, method=self.algorithm)

    def set_bandwidth(self, bandwidth: float | str | list | tuple) -> None:
        parse_bandwidth(bandwidth)
        if repr(bandwidth) == repr(self.bandwidth):
            return
        self.bandwidth = bandwidth
        if hasattr(self, "_labels"):
            self.fit_labels(self._labels)

    def get_extra_state(self) -> dict[str, Any]:
        """Return the bandwidth in use."""
        return {"bandwidth": self.bandwidth}

    def set_extra_state(self, state: Mapping[str, Any]) -> None:
        """Load the result of `get_extra_state`."""
        self.set_bandwidth(state["bandwidth"])

    def draw(self, order: EpochBatches, rng: np.random.Generator) -> np.ndarray:
        return self.sampler.draw(order.index, rng)

    def diagnostics(self) -> dict[str, float | str]:
        """Return the bandwidth in use and its effect on the pairs, in numbers and words; see `BandwidthReport`."""
        report = diagnose(self._labels, self.sampler.bandwidth)
        names = ("bandwidth", "effective_fraction", "self_probability", "equal_label_probability", "verdict")
        return {name: getattr(report, name) for name in names}
