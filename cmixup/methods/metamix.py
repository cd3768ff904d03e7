"""MetaMix (Yao et al. 2021, arXiv 2007.13040; huaxiuyao/MetaMix Pose/maml.py): MAML whose query is mixed with the
support in the outer loss.

Adapt to the clean support, then fit `lam x^s + (1 - lam) x^q` with the label mixed alike; the mixed query replaces the
query, in training alone. Differences from the original code, which follow the C-Mixup paper (Eq. 5, Algorithm 2) by
default: lambda is the support's weight, one a query (`lam_per: task` is MetaMix's), and inputs are mixed (`layer:
random` is MetaMix's: the encoder's output or after decoder block 1, 2 or 3; here one layer a batch, there one a task).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import Tensor, nn

from cmixup.backbone import Backbone, resolve_layer
from cmixup.batch import Batch
from cmixup.data import Split
from cmixup.errors import check_choice
from cmixup.methods.base import squared_error
from cmixup.methods.maml import MAML, Mixed
from cmixup.mixing import Beta, mix
from cmixup.order import Order
from cmixup.pairing.support import SupportPairing, SupportPermutation, SupportUniform
from cmixup.seeding import Streams


class MetaMix(MAML):
    """`MAML` with the query mixed with the support.

    Args:
        pairing: which support example each query is mixed with.
        inner_lr: see `MAML`.
        alpha: lam ~ Beta(alpha, alpha).
        lam_per: one lambda a "query" or a "task".
        layer: "input", "hidden", the name of a mix point, or "random": one of those after the input, for each batch.
        **others: inner_steps and so on, see `MAML`.
    """

    def __init__(
        self,
        pairing: SupportPairing,
        inner_lr: float,
        alpha: float,
        lam_per: str = "query",
        layer: str = "input",
        **others: Any,
    ):
        super().__init__(inner_lr, **others)
        self.pairing, self.layer = pairing, layer
        per = {"query": "example", "task": "batch"}[check_choice("lam_per", lam_per, ("query", "task"))]
        self.lam = Beta(alpha, per)

    def fit(self, train: Split, model: nn.Module) -> None:
        """Fit the pairing and look up the mix points."""
        super().fit(train, model)
        if self.layer == "random":
            hidden = model.layers[1:] if isinstance(model, Backbone) else ()
            self.points = hidden or (resolve_layer(model, "hidden"),)
        else:
            self.points = (resolve_layer(model, self.layer),)
        self.pairing.fit(train)

    def draw(self, order: Order, streams: Streams) -> dict[str, np.ndarray]:
        """Return `pair` and `lam`, both `(M, Q)`, and for random layers `point: (M,)`, equal within a batch."""
        pair = self.pairing.draw(order.index, streams.partners)
        n, q = pair.shape
        each = Order(np.repeat(order.index, q), np.full(n, q))  # what is a batch to Beta is a task here
        drawn = {"pair": pair, "lam": self.lam.draw(each, streams.lam).reshape(n, q)}
        if len(self.points) > 1:
            points = streams.mixing.integers(len(self.points), size=len(order.sizes))
            drawn["point"] = np.repeat(points, order.sizes)
        return drawn

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Return the mean squared error on the mixed query, weighted by the draw `weight` if there is one."""
        x: Any = batch.x
        draws = batch.draws
        pair, lam = draws["pair"], draws["lam"]
        point = self.points[int(draws["point"][0])] if "point" in draws else self.points[0]
        prediction = self.adapted(model, x, self.inner_steps, Mixed(pair, lam, point))
        target = mix(x.labels.gather(1, pair), batch.y, lam)
        if "weight" not in draws:
            return squared_error(prediction, target)
        return squared_error(prediction[..., None], target[..., None], draws["weight"]).mean()

    def facts(self) -> dict[str, float]:
        """Return the pairing's facts."""
        return self.pairing.facts()


def metamix(
    inner_lr: float,
    alpha: float,
    lam_per: str = "query",
    layer: str = "input",
    *,
    pairing: str = "permutation",
    inner_steps: int = 5,
    report_steps: int = 20,
    first_order: bool = False,
    adapt_encoder: bool = False,
) -> MetaMix:
    """Mix the query of each task with its support, paired at random.

    Args:
        inner_lr: step size of the inner loop.
        alpha: lam ~ Beta(alpha, alpha).
        lam_per: one lambda a "query" or a "task".
        layer: "input", "hidden", the name of a mix point, or "random".
        pairing: a "permutation" of the support (MetaMix's code), or "uniform" with replacement.
        inner_steps: of the inner loop.
        report_steps: test scores after this many steps are reported, too.
        first_order: leave out second derivatives.
        adapt_encoder: adapt the whole model instead of its decoder.
    """
    check_choice("pairing", pairing, ("permutation", "uniform"))
    who = SupportPermutation() if pairing == "permutation" else SupportUniform()
    return MetaMix(
        who, inner_lr, alpha, lam_per, layer, inner_steps=inner_steps, report_steps=report_steps,
        first_order=first_order, adapt_encoder=adapt_encoder,
    )  # fmt: skip
