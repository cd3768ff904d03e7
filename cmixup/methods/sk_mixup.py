"""Similarity-kernel mixup: any pair, mixed the more the nearer (Bouniot et al. 2025, ICLR, arXiv 2311.01434).

`lam ~ Beta(alpha, alpha)` of each row is warped, `lam' = I^-1(lam; tau, tau)`, the quantile function of Beta(tau, tau)
at lam, with `tau = tau_max exp(-(d - 1) / (2 tau_std^2))` and d the pair's squared distance over its mean in the batch:
near pairs get a large tau, so a lambda near 1/2, and far ones a small tau, so one near 0 or 1.

Written from the formulas. Differences from the authors' code (qbouniot/sim_kernel_mixup): the distance for inputs is of
labels or of inputs, which are known before the step, not of hidden features; labels have the inputs' weight, where the
authors' regression code always gives them one of their own.
"""

import numpy as np
from torch import nn

from cmixup.data import RegressionData
from cmixup.errors import check_choice, check_positive
from cmixup.methods.mix import Mix
from cmixup.mixing.lam import Lam
from cmixup.pairing.base import Pairing
from cmixup.pairing.flat import Standardised
from cmixup.seeding import Streams
from cmixup.training.batch import EpochBatches

SMALLEST_TAU, LARGEST_TAU = 1e-3, 1e4  # beyond these lambda is 0 or 1, and 1/2, to the precision of float32


class SKMixup(Mix):
    """Mixes any pairs, with weights that depend on their distance.

    Args:
        pairing, lam, layer: see `Mix`; partners must be known before the step.
        tau_max, tau_std: of inputs; above 0, infinity allowed for `tau_std` (tau is `tau_max` for all pairs then).
        distance: of "labels" or "inputs" (standardised).
    """

    gaps = False
    per_run = ("pairing", "lam", "tau_max", "tau_std")

    def __init__(
        self, pairing: Pairing, lam: Lam, layer: str = "input", *, tau_max: float = 1.0, tau_std: float = 1.0,
        distance: str = "labels",
    ):  # fmt: skip
        super().__init__(pairing, lam, layer)
        self.tau_max, self.tau_std = check_positive("tau_max", tau_max), tau_std
        if tau_std != float("inf"):
            check_positive("tau_std", tau_std)
        self.distance = check_choice("distance", distance, ("labels", "inputs"))

    def fit(self, data: RegressionData, model: nn.Module, streams: Streams | None) -> None:
        self.check_partners("SK Mixup")
        super().fit(data, model, streams)
        self._labels = data.train.y.double().numpy()
        self._inputs = Standardised(data.train.x) if self.distance == "inputs" else None

    def draw(self, order: EpochBatches, streams: Streams) -> dict[str, np.ndarray]:
        """Return the draws of `Mix` with `lam` warped."""
        draws = super().draw(order, streams)
        lam, partner = draws["lam"].astype(np.float64), draws["partner"]
        if self._inputs is None:
            squared = np.square(self._labels[order.index] - self._labels[partner]).sum(axis=1)
        else:
            squared = np.square(self._inputs.between(order.index, partner))
        return draws | {"lam": warp(lam, squared, order.sizes, self.tau_max, self.tau_std)}


def warp(lam: np.ndarray, d: np.ndarray, sizes: np.ndarray, tau_max: float, tau_std: float) -> np.ndarray:
    """Return `I^-1(lam; tau, tau)`, `(M,)` float32, for `lam: (M,)` in [0, 1] in batches of `sizes: (G,)` rows.

    Squared distances `d: (M,)` are divided by their mean in each batch (by 1 where that is 0); tau is `tau_max` at 1.
    """
    from scipy.special import betaincinv

    starts = np.cumsum(sizes) - sizes
    mean = np.repeat(np.add.reduceat(d, starts) / sizes, sizes)
    relative = d / np.where(mean > 0, mean, 1.0)
    log_tau = np.log(tau_max) - (relative - 1) / (2 * tau_std * tau_std)
    tau = np.exp(np.clip(log_tau, np.log(SMALLEST_TAU), np.log(LARGEST_TAU)))
    quantile: np.ndarray = betaincinv(tau, tau, lam).astype(np.float32)
    return quantile
