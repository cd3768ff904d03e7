"""Local MetaMix: MetaMix with Local Mixup's weights (Baena et al. 2022, arXiv 2201.04368). No code was released for it.

The outer loss of each query is weighted by how near its image is to its partner's; the weights of a task are divided by
their sum. Distances are between pixels in [0, 1], not standardised, which would blow up the nearly constant ones; the
threshold is a quantile of the distances between different views of one training object. A batch without any weight
takes no step, and its loss counts as 0.
"""

import numpy as np
from torch import Tensor, nn

from cmixup.data import RegressionData
from cmixup.methods.maml import InnerLoop
from cmixup.methods.metamix import MetaMix
from cmixup.mixing.lam import Lam
from cmixup.pairing.decay import Exponential, Threshold
from cmixup.pairing.support import SupportPairing
from cmixup.seeding import Streams
from cmixup.training.batch import Batch, EpochBatches
from cmixup.training.model_stack import ModelStack


class LocalMetaMix(MetaMix):
    """`MetaMix` with a weight for each query that decreases with the distance to its partner.

    Args:
        form: the weight by distance: `Threshold` or `Exponential`.
        pairing, lam, inner, layer: see `MetaMix`.
    """

    def __init__(
        self, form: Threshold | Exponential, pairing: SupportPairing, lam: Lam, inner: InnerLoop, layer: str = "input"
    ):
        super().__init__(pairing, lam, inner, layer)
        self.form = form

    def fit(self, data: RegressionData, model: nn.Module, streams: Streams | None) -> None:
        super().fit(data, model, streams)
        self.form.fit(self.pairing.tasks)

    def draw(self, order: EpochBatches, streams: Streams) -> dict[str, np.ndarray]:
        """Return the draws of `MetaMix` and `weight: (M, Q)` float32."""
        draws = super().draw(order, streams)
        distances = self.pairing.tasks.distances(order.index)
        distance = np.take_along_axis(distances, draws["pair"][:, :, None], axis=2)[:, :, 0]
        return draws | {"weight": np.asarray(self.form(order.index, distance), dtype=np.float32)}

    def step(self, stack: ModelStack, batch: Batch) -> Tensor:
        return super().step(stack, batch) if bool(batch.draws["weight"].any()) else batch.y.new_zeros(())
