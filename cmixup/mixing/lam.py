"""The mixing weight lambda."""

from __future__ import annotations

import numpy as np

from cmixup.errors import check_choice, check_positive
from cmixup.order import Order


class Beta:
    """lam ~ Beta(alpha, alpha), one an example (paper, Algorithm 1) or one a batch (released code).

    Args:
        alpha: concentration, above 0. Near 0 lambda is 0 or 1; large values gather it at 1/2.
        per: "example" or "batch".
    """

    def __init__(self, alpha: float, per: str = "example"):
        self.alpha = check_positive("alpha", alpha)
        self.per = check_choice("lam_per", per, ("example", "batch"))

    def draw(self, order: Order, rng: np.random.Generator) -> np.ndarray:
        """Return lambda for every row of an epoch, `(M,)` float32."""
        if self.per == "example":
            return rng.beta(self.alpha, self.alpha, len(order.index)).astype(np.float32)
        each = rng.beta(self.alpha, self.alpha, len(order.sizes)).astype(np.float32)
        return np.repeat(each, order.sizes)
