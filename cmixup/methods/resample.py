"""Resample only: the pairs of a mixing method, not mixed; the control that shows the effect of resampling alone.

Selective mixup draws its partners, and so trains on rows in other proportions than they come in; Teney, Wang and
Abbasnejad (2024, ICML, arXiv 2305.16817) trace much of its gains in classification to that. Here pairs are drawn as
C-Mixup does (or with any pairing), and each is trained on at one end or at both, with no point between them.
"""

from torch import Tensor, nn

from cmixup.errors import check_choice
from cmixup.methods.mix import Mix
from cmixup.mixing.lam import Lam
from cmixup.pairing.base import Pairing
from cmixup.training.batch import Batch


class Resample(Mix):
    """Fits the rows that a pairing draws, with their own labels.

    Args:
        pairing: who is drawn; a partner's marginal is `q(j) = (1/N) sum_i P(j|i)`.
        lam: the weight of the row, `1 - lam` that of its partner; used at both ends only.
        ends: "partner", the partners alone, each with weight 1, or "both", the row and its partner.
    """

    per_run = ("pairing", "lam")

    def __init__(self, pairing: Pairing, lam: Lam, ends: str = "partner"):
        super().__init__(pairing, lam)
        self.ends = check_choice("ends", ends, ("partner", "both"))

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        """Return the mean squared error of the partners, or of both ends by their weights."""
        partner = batch.rows("partner", "method Resample")
        if self.ends == "partner":
            return self.error(model(partner.x), partner.y)
        lam = batch.draws["lam"]
        row_error, partner_error = self.errors(model(batch.x), batch.y), self.errors(model(partner.x), partner.y)
        return (lam * row_error + (1 - lam) * partner_error).mean(dim=-1)
