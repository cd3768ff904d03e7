"""MetaMix (Yao et al. 2021, arXiv 2007.13040; huaxiuyao/MetaMix Pose/maml.py): MAML whose query is mixed with the
support in the outer loss.

Adapt to the clean support, then fit `lam x^s + (1 - lam) x^q` with the label mixed alike; the mixed query replaces the
query, in training alone. Differences from the original code, which follow the C-Mixup paper (Eq. 5, Algorithm 2) by
default: lambda is the support's weight, one a query (`lam_per: task` is MetaMix's), and inputs are mixed (`layer:
random` is MetaMix's: the encoder's output or after decoder block 1, 2 or 3; here one layer a batch, there one a task).
"""

from typing import Any

import numpy as np
from torch import Tensor, nn

from cmixup.backbone import Backbone, resolve_layer
from cmixup.data import RegressionData
from cmixup.methods.maml import MAML, InnerLoop, Mixed
from cmixup.mixing.lam import Lam
from cmixup.mixing.linear import interpolate
from cmixup.pairing.support import SupportPairing
from cmixup.seeding import Streams
from cmixup.training.batch import Batch, EpochBatches
from cmixup.training.method import squared_error


class MetaMix(MAML):
    """`MAML` with the query mixed with the support.

    Args:
        pairing: which support example each query is mixed with.
        lam: the weight of the support, such as `TaskBeta(alpha)`.
        inner: see `MAML`.
        layer: "input", "hidden", the name of a mix point, or "random": one of those after the input, for each batch.
    """

    def __init__(self, pairing: SupportPairing, lam: Lam, inner: InnerLoop, layer: str = "input"):
        super().__init__(inner)
        self.pairing, self.lam, self.layer = pairing, lam, layer

    def fit(self, data: RegressionData, model: nn.Module, streams: Streams | None) -> None:
        super().fit(data, model, streams)
        if self.layer == "random":
            hidden = model.layers[1:] if isinstance(model, Backbone) else ()
            self.layers = hidden or (resolve_layer(model, "hidden"),)
        else:
            self.layers = (resolve_layer(model, self.layer),)
        self.pairing.fit(data.train)

    def draw(self, order: EpochBatches, streams: Streams) -> dict[str, np.ndarray]:
        """Return `pair` and `lam`, both `(M, Q)`, and for random layers `layer: (M,)`, equal within a batch."""
        pair = self.pairing.draw(order.index, streams.partners)
        lam = self.lam.draw(np.full(len(pair), pair.shape[1]), streams.lam).reshape(pair.shape)
        draws = {"pair": pair, "lam": lam}
        if len(self.layers) > 1:
            layers = streams.mixing.integers(len(self.layers), size=len(order.sizes))
            draws["layer"] = np.repeat(layers, order.sizes)
        return draws

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Return the mean squared error on the mixed query, weighted by the draw `weight` if there is one."""
        x: Any = batch.x
        draws = batch.draws
        pair, lam = draws["pair"], draws["lam"]
        layer = self.layers[int(draws["layer"][0])] if "layer" in draws else self.layers[0]
        prediction = self.adapted(model, x, self.inner.inner_steps, Mixed(pair, lam, layer))
        target = interpolate(x.labels.gather(1, pair), batch.y, lam)
        if "weight" not in draws:
            return squared_error(prediction, target)
        return squared_error(prediction[..., None], target[..., None], draws["weight"]).mean()

    def diagnostics(self) -> dict[str, float | str]:
        return self.pairing.diagnostics()
