"""Local Mixup (Baena et al. 2022, arXiv 2201.04368; raphael-baena/Local-Mixup).

Differences from the original code: the weights are applied, to the loss of each example, and the sum is divided by
theirs (the image scripts' model hands back ones, so they train plain mixup; the notebook multiplies a loss that is
already averaged); distances are measured on standardised inputs; the threshold is a quantile of the training pairs'
distances; the configuration draws partners from the whole training set (the pairing `Permutation` is the original's);
labels are regression targets, mixed as values; the batch keeps its size, so fewer pairs count in a step. A step in
which no pair survives leaves the weights as they are; the optimiser's moments decay as by a zero gradient, for a model
of a stack as for one alone. Its loss counts as 0 in `train_loss`.
"""

import numpy as np
import torch
from torch import Tensor, nn

from cmixup.data import RegressionData
from cmixup.methods.mix import Mix
from cmixup.mixing.base import Mixing
from cmixup.mixing.lam import Lam
from cmixup.pairing.base import Pairing
from cmixup.pairing.decay import Decay
from cmixup.pairing.flat import Standardised
from cmixup.seeding import Streams
from cmixup.training.batch import Batch, EpochBatches
from cmixup.training.model_stack import ModelStack


class LocalMixup(Mix):
    """`Mix` with weights that decrease with the distance of a pair's inputs: `sum_b w_b l_b / max(sum_b w_b, tiny)`.

    Args:
        form: the weight by distance: `Threshold`, `Exponential` or `Knn`.
        pairing, lam, layer, mixing: see `Mix`. Distances are on inputs at every layer.
    """

    per_run = ("pairing", "lam", "form")

    def __init__(self, form: Decay, pairing: Pairing, lam: Lam, layer: str = "input", mixing: Mixing | None = None):
        super().__init__(pairing, lam, layer, mixing)
        self.form = form

    def fit(self, data: RegressionData, model: nn.Module, streams: Streams | None) -> None:
        self.check_partners("Local Mixup")
        super().fit(data, model, streams)
        self.inputs = Standardised(data.train.x)
        self.form.fit(self.inputs)

    def draw(self, order: EpochBatches, streams: Streams) -> dict[str, np.ndarray]:
        """Return the draws of `Mix` and `weight: (M,)` float32 of every row."""
        draws = super().draw(order, streams)
        distance = self.inputs.between(order.index, draws["partner"])
        return draws | {"weight": np.asarray(self.form(order.index, distance), dtype=np.float32)}

    def step(self, stack: ModelStack, batch: Batch) -> Tensor:
        """Take a step with those models that have at least one pair with weight."""
        is_empty = batch.draws["weight"].sum(dim=-1) == 0
        if not bool(is_empty.any()):
            return super().step(stack, batch)
        parameters = list(stack.model.parameters())
        before = [p.detach().clone() for p in parameters]
        loss = super().step(stack, batch)
        with torch.no_grad():
            for parameter, old in zip(parameters, before, strict=True):
                mask = is_empty.reshape(is_empty.shape + (1,) * (old.ndim - is_empty.ndim))
                parameter.copy_(torch.where(mask, old, parameter))
        return loss
