"""Empirical risk minimisation: no mixing."""

import numpy as np
from torch import Tensor, nn

from cmixup.backbone import decode_from, encode_to, resolve_layer
from cmixup.data import RegressionData
from cmixup.mixing.base import Transform
from cmixup.seeding import Streams
from cmixup.training.batch import Batch, EpochBatches, step_seeds
from cmixup.training.losses import LOSSES
from cmixup.training.method import Method


class ERM(Method):
    """Train on the mean error of the training rows as they are, or as a transformation makes them.

    Args:
        transform: changes the states of rows; None fits the rows as they are.
        layer: where: "input", "hidden" for the backbone's own mix point, or the name of one.
    """

    losses = tuple(LOSSES)

    def __init__(self, transform: Transform | None = None, layer: str = "input"):
        super().__init__()
        self.transform, self.layer = transform, layer

    def fit(self, data: RegressionData, model: nn.Module, streams: Streams | None) -> None:
        self.point = resolve_layer(model, self.layer)

    def draw(self, order: EpochBatches, streams: Streams) -> dict[str, np.ndarray]:
        return {} if self.transform is None else {"seed": step_seeds(order.sizes, streams.mixing)}

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        if self.transform is None:
            return self.error(model(batch.x), batch.y)
        state = self.transform.of(encode_to(model, batch.x, self.point), batch, batch.rng)
        return self.error(decode_from(model, state, self.point), batch.y)
