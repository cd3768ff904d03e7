"""C-Mixup with a bandwidth that is learned by EXP3 (Auer et al. 2002)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import nn

from cmixup.data import RegressionData
from cmixup.errors import check_between
from cmixup.methods.mix import Mix
from cmixup.mixing.lam import Beta
from cmixup.pairing.label import LabelDistance
from cmixup.sampling.sampler import PartnerSampler
from cmixup.seeding import Streams
from cmixup.training.batch import EpochBatches

BANDWIDTHS = [["std", 0.03], ["std", 0.1], ["std", 0.3], ["std", 1.0]]
space = {"rate": [0.1, 0.3], "alpha": [0.2, 0.5, 1.0, 2.0], "layer": ["input", "hidden"]}


class LearnedBandwidth(Mix):
    """Draws a bandwidth every epoch; its reward is 1 if validation gains, 0 if it loses, and 1/2 if neither.

    Args:
        bandwidths: in any form of `LabelDistance`.
        alpha: of the beta distribution of the mixing weight.
        layer: see `Mix`.
        rate: of learning, and the share of epochs whose bandwidth is drawn uniformly (gamma), 0 to 1.
    """

    pairing: LabelDistance

    def __init__(self, bandwidths: list | None = None, alpha: float = 1.0, layer: str = "input", *, rate: float = 0.1):
        bandwidths = bandwidths or BANDWIDTHS
        super().__init__(LabelDistance(bandwidths[0]), Beta(alpha), layer)
        self.bandwidths, self.rate = bandwidths, check_between("rate", rate, 0, 1)

    def fit(self, data: RegressionData, model: nn.Module, streams: Streams | None) -> None:
        """Make a sampler for each bandwidth; all are as likely."""
        super().fit(data, model, streams)
        self._samplers = [PartnerSampler(data.train.y.numpy(), bandwidth) for bandwidth in self.bandwidths]
        self.log_weight, self.arm, self.last = np.zeros(len(self.bandwidths)), 0, float("nan")

    @property
    def chances(self) -> np.ndarray:
        """The probability of each bandwidth."""
        weight = np.exp(self.log_weight - self.log_weight.max())
        return (1 - self.rate) * weight / weight.sum() + self.rate / len(weight)

    def draw(self, order: EpochBatches, streams: Streams) -> dict[str, np.ndarray]:
        """Return the draws of `Mix`, with partners by the bandwidth of this epoch."""
        self.arm = int(streams.mixing.choice(len(self.bandwidths), p=self.chances))
        self.pairing.sampler = self._samplers[self.arm]
        return super().draw(order, streams)

    def end_epoch(self, epoch: int, error: float) -> None:
        """Add the reward over its probability to the weight; the first epoch has none to compare with, and earns 0."""
        reward = np.nan_to_num((1 + np.sign(self.last - error)) / 2)
        self.log_weight[self.arm] += self.rate / len(self.bandwidths) * reward / self.chances[self.arm]
        self.last = error

    def diagnostics(self) -> dict[str, float | str]:
        """Return the pairing's diagnostics and the probabilities."""
        return super().diagnostics() | {f"chance_{k}": float(p) for k, p in enumerate(self.chances)}

    def get_extra_state(self) -> dict[str, Any]:
        """Return what epochs have taught."""
        return {"log_weight": torch.from_numpy(self.log_weight), "arm": self.arm, "last": self.last}

    def set_extra_state(self, state: Mapping[str, Any]) -> None:
        """Load what `get_extra_state` returned."""
        self.log_weight, self.arm, self.last = state["log_weight"].numpy(), state["arm"], state["last"]
        self.pairing.sampler = self._samplers[self.arm]
