"""Mixup that keeps the variance: mixtures are narrower than the rows, so each is scaled about the mean of its batch.

lam a + (1 - lam) b of two independent rows has the variance of a row times lam^2 + (1 - lam)^2; see
arXiv:2503.02645 on weights that keep it.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

space = {"alpha": [0.1, 0.2, 0.5, 1.0, 2.0]}


def batch(x: Tensor, y: Tensor, rng: np.random.Generator, alpha: float = 1.0) -> tuple[Tensor, Tensor]:
    """Return the rows `(B, d)` and labels `(B, d_y)` of a batch, mixed with a permutation of them."""
    lam = torch.from_numpy(rng.beta(alpha, alpha, len(x))).to(x)[:, None]
    partner = torch.from_numpy(rng.permutation(len(x)))
    wider = (lam.square() + (1 - lam).square()).rsqrt()

    def mixed(rows: Tensor) -> Tensor:
        mean = rows.mean(dim=0)
        return mean + wider * (lam * (rows - mean) + (1 - lam) * (rows[partner] - mean))

    return mixed(x), mixed(y)
