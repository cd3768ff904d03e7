"""Normal noise on the features of rows, at any layer."""

from __future__ import annotations

from typing import Any

from cmixup.errors import check_nonnegative
from cmixup.methods.erm import ERM
from cmixup.mixing.base import Transform
from cmixup.seeding import StepRandom
from cmixup.training.batch import Batch

space = {"std": [0.01, 0.03, 0.1, 0.3], "layer": ["input", "hidden"]}


class Noise(Transform):
    """Adds normal noise to states, at the layer where rows are mixed or fitted.

    Args:
        std: standard deviation of the noise, 0 or more.
    """

    def __init__(self, std: float = 0.1):
        super().__init__()
        self.std = check_nonnegative("std", std)

    def forward(self, state: Any, rows: Batch, rng: StepRandom) -> Any:
        """Return the state with noise."""
        return state + self.std * rng.normal(state)


class FeatureNoise(ERM):
    """Fits noisy rows, which are not mixed.

    Args:
        std: see `Noise`.
        layer: see `ERM`.
    """

    def __init__(self, std: float = 0.1, layer: str = "input"):
        super().__init__(Noise(std), layer)
