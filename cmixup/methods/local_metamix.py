"""Local MetaMix: MetaMix with Local Mixup's weights (Baena et al. 2022, arXiv 2201.04368). No code was released for it.

The outer loss of each query is weighted by how near its image is to its partner's; the weights of a task are divided by
their sum. Distances are between pixels in [0, 1], not standardised, which would blow up the nearly constant ones; the
threshold is a quantile of the distances between different views of one training object.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import nn

from cmixup.data import Split
from cmixup.errors import check_choice
from cmixup.methods.local_mixup import Exponential, Threshold
from cmixup.methods.metamix import MetaMix
from cmixup.order import Order
from cmixup.pairing.support import SupportPairing, SupportPermutation, SupportUniform
from cmixup.seeding import Streams


class LocalMetaMix(MetaMix):
    """`MetaMix` with a weight for each query that decreases with the distance to its partner.

    Args:
        decay: the weight by distance.
        pairing, inner_lr, **others: see `MetaMix`.
    """

    def __init__(self, decay: Threshold | Exponential, pairing: SupportPairing, inner_lr: float, **others: Any):
        super().__init__(pairing, inner_lr, **others)
        self.decay = decay
        self._pairs, self._weight = 0, 0.0

    def fit(self, train: Split, model: nn.Module) -> None:
        """Fit the pairing, and the decay to the training objects."""
        super().fit(train, model)
        self.decay.fit(self.pairing.tasks)

    def draw(self, order: Order, streams: Streams) -> dict[str, np.ndarray]:
        """Return what `MetaMix` does, and `weight: (M, Q)` float32."""
        drawn = super().draw(order, streams)
        distance = self.pairing.tasks.distances(order.index)
        apart = np.take_along_axis(distance, drawn["pair"][:, :, None], axis=2)[:, :, 0]
        weight = np.asarray(self.decay(order.index, apart), dtype=np.float32)
        self._pairs += weight.size
        self._weight += float(weight.sum(dtype=np.float64))
        return drawn | {"weight": weight}

    def facts(self) -> dict[str, float]:
        """Return the mean weight of the pairs drawn (the kept fraction)."""
        return {"kept_fraction": self._weight / self._pairs} if self._pairs else {}


def local_metamix(
    inner_lr: float,
    alpha: float,
    lam_per: str = "query",
    layer: str = "input",
    *,
    form: str = "threshold",
    quantile: float = 0.25,
    a: float = 1.0,
    pairing: str = "permutation",
    inner_steps: int = 5,
    report_steps: int = 20,
    first_order: bool = False,
    adapt_encoder: bool = False,
) -> LocalMetaMix:
    """Mix as MetaMix and weigh each query's loss by how near its partner is.

    Args:
        inner_lr, alpha, lam_per, layer, pairing, inner_steps, report_steps, first_order, adapt_encoder: see `metamix`.
        form: "threshold" (with `quantile`) or "exponential" (with `a`).
        quantile: of the distances, up to which a pair counts; 1 is MetaMix.
        a: rate of exp(-a d / median(d)); 0 is MetaMix.
    """
    check_choice("form", form, ("threshold", "exponential"))
    check_choice("pairing", pairing, ("permutation", "uniform"))
    decay = Threshold(quantile) if form == "threshold" else Exponential(a)
    who = SupportPermutation() if pairing == "permutation" else SupportUniform()
    return LocalMetaMix(
        decay, who, inner_lr, alpha=alpha, lam_per=lam_per, layer=layer, inner_steps=inner_steps,
        report_steps=report_steps, first_order=first_order, adapt_encoder=adapt_encoder,
    )  # fmt: skip
