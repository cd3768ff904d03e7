"""Mixup that ends before training does: after some epochs every row is fitted as it is (timm's `mixup_off_epoch`)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from cmixup.errors import check_count
from cmixup.methods.mix import Mix
from cmixup.mixing.lam import Beta
from cmixup.pairing.uniform import Uniform
from cmixup.seeding import Streams
from cmixup.training.batch import EpochBatches

space = {"epochs": [10, 20, 40, 80], "alpha": [0.2, 0.5, 1.0, 2.0], "layer": ["input", "hidden"]}


class MixThenStop(Mix):
    """Mixes rows with any others in the first epochs, and not at all afterwards.

    Args:
        epochs: in which rows are mixed.
        alpha: of the beta distribution of the mixing weight.
        layer: see `Mix`.
    """

    def __init__(self, epochs: int = 40, alpha: float = 1.0, layer: str = "input"):
        super().__init__(Uniform(), Beta(alpha), layer)
        self.epochs, self._epoch = check_count("epochs", epochs), 0

    def draw(self, order: EpochBatches, streams: Streams) -> dict[str, np.ndarray]:
        """Return the draws of `Mix`, in later epochs with a weight of 1 for every row itself."""
        self._epoch += 1
        draws = super().draw(order, streams)
        return draws if self._epoch <= self.epochs else {**draws, "lam": np.ones_like(draws["lam"])}

    def get_extra_state(self) -> dict[str, Any]:
        """Return how many epochs have been drawn."""
        return {"epoch": self._epoch}

    def set_extra_state(self, state: Mapping[str, Any]) -> None:
        """Load what `get_extra_state` returned."""
        self._epoch = state["epoch"]
