"""RegMixup: mixup beside the loss of the rows themselves (Pinto et al. 2022, NeurIPS, arXiv 2206.14502).

`L = l(f(x), y) + eta l(f(x~), y~)`, with lambdas gathered at 1/2 (Beta(a, a) with a of 10 to 20). Written from the
formula. Differences from the paper: the loss is the squared error, and partners are the pairing's. The authors'
repository (FrancescoPinto/RegMixup) draws one lambda a batch, here `lam_per` says whether a batch or an example has
one; it takes the mean over rows and mixed rows together, which with `eta` 1 is half of the sum here (Adam's steps
without weight decay do not depend on it).
"""

from torch import Tensor, nn

from cmixup.errors import check_nonnegative
from cmixup.methods.mix import Mix
from cmixup.mixing.base import Mixing
from cmixup.mixing.lam import Lam
from cmixup.pairing.base import Pairing
from cmixup.training.batch import Batch


class RegMixup(Mix):
    """Fits the rows, and `eta` times the mixed rows.

    Args:
        pairing, lam, layer, mixing: see `Mix`.
        eta: weight of the mixed rows, 0 or more; at 0 this is ERM.
    """

    per_run = ("pairing", "lam")

    def __init__(
        self, pairing: Pairing, lam: Lam, layer: str = "input", mixing: Mixing | None = None, *, eta: float = 1.0
    ):
        super().__init__(pairing, lam, layer, mixing)
        self.eta = check_nonnegative("eta", eta)

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        return self.error(model(batch.x), batch.y) + self.eta * super().loss(model, batch)
