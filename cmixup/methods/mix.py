"""The composition behind most methods: who (pairing), how (mixing), where (layer), with what weight (lam)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np
from torch import Tensor, nn

from cmixup.backbone import resolve_layers
from cmixup.batch import Batch
from cmixup.data import Split
from cmixup.methods.base import Method, squared_error
from cmixup.mixing import Linear, mix
from cmixup.order import Order
from cmixup.pairing.base import Pairing
from cmixup.seeding import Streams

Mixing = Callable[[Any, Any, Mapping[str, Tensor]], tuple[Any, Tensor]]


class Lam(Protocol):
    """Draws the mixing weight of every row of an epoch."""

    def draw(self, order: Order, rng: np.random.Generator) -> np.ndarray:
        """Return `(M,)` float32 weights in [0, 1]."""
        ...


class Mix(Method):
    """Mix each row with a partner and fit the mixed label: `l(f(x~), lam y_i + (1 - lam) y_j)`.

    Args:
        pairing: who is mixed with whom.
        lam: with what weight, such as `Beta(alpha)`.
        layer: where; "input", "hidden" (the backbone's own mix point, or one of several that each batch draws) or the
            name of one of its mix points.
        mixing: how two states become one; linear by default.
    """

    def __init__(self, pairing: Pairing, lam: Lam, layer: str = "input", mixing: Mixing | None = None):
        self.pairing, self.lam, self.layer = pairing, lam, layer
        self.mixing = mixing or Linear()
        self.least_batch = getattr(pairing, "least_batch", 1)

    def fit(self, train: Split, model: nn.Module) -> None:
        """Fit the pairing and look up the mix point, or the points that each batch draws one of."""
        self.points = resolve_layers(model, self.layer)
        self.pairing.fit(train)

    def draw(self, order: Order, streams: Streams) -> dict[str, np.ndarray]:
        """Return the partner and lambda of every row, and the mix point of its batch if there are several."""
        draws = {
            "partner": self.pairing.draw(order, streams.partners),
            "lam": self.lam.draw(order, streams.lam),
        }
        if len(self.points) > 1:
            draws["point"] = np.repeat(streams.mixing.integers(len(self.points), size=len(order.sizes)), order.sizes)
        return draws

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Return the mean squared error of the mixed batch, weighted by the draw `weight` if there is one."""
        first, second = batch, batch.partner
        assert second is not None
        point = self.points[int(batch.draws["point"][0])] if "point" in batch.draws else self.points[0]
        if point == "input":
            mixed, weight = self.mixing(first.x, second.x, batch.draws)
            prediction = model(mixed)
        else:
            states = model.encode(first.x, point), model.encode(second.x, point)  # type: ignore[operator]
            mixed, weight = self.mixing(*states, batch.draws)
            prediction = model.decode(mixed, point)  # type: ignore[operator]
        return squared_error(prediction, mix(first.y, second.y, weight), batch.draws.get("weight"))

    def facts(self) -> dict[str, float]:
        """Return the pairing's facts."""
        return self.pairing.facts()
