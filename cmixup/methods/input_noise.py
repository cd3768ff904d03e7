"""Input noise: every row is fitted with normal noise on its features, anew each epoch.

Little noise acts as Tikhonov regularisation (Bishop 1995, "Training with noise is equivalent to Tikhonov
regularization", Neural Computation 7). It is the control for mixing: it moves rows as well, but in directions that know
neither other rows nor labels.
"""

import numpy as np
import torch
from torch import Tensor, nn

from cmixup.data import RegressionData
from cmixup.errors import InputError, check_nonnegative
from cmixup.methods.erm import ERM
from cmixup.seeding import Streams
from cmixup.training.batch import Batch, EpochBatches, step_seeds


class InputNoise(ERM):
    """Fits rows whose features have normal noise.

    Args:
        std: standard deviation of the noise, in units of the features, which datasets of tables standardise; 0 or more,
            and 0 is ERM.
    """

    per_run = ("std",)  # drawn for each row, so that runs of a stack may differ

    def __init__(self, std: float = 0.1):
        super().__init__()
        self.std = check_nonnegative("std", std)

    def fit(self, data: RegressionData, model: nn.Module, streams: Streams | None) -> None:
        x = data.train.x[torch.arange(min(2, len(data.train)))]
        if not (isinstance(x, Tensor) and x.is_floating_point()):
            actual = str(x.dtype) if isinstance(x, Tensor) else type(x).__name__
            raise InputError(f"method InputNoise needs inputs that are real numbers, {data.train.name} has {actual}")

    def draw(self, order: EpochBatches, streams: Streams) -> dict[str, np.ndarray]:
        std = np.full(len(order.index), self.std, dtype=np.float32)
        return {"noise_std": std, "seed": step_seeds(order.sizes, streams.mixing)}

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        assert batch.rng is not None  # drawn by `seed`
        std = batch.draws["noise_std"]
        noise = batch.rng.normal(batch.x) * std.reshape(*std.shape, *[1] * (batch.x.ndim - std.ndim))
        return self.error(model(batch.x + noise), batch.y)
