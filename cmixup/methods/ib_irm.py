"""IB-IRM, IRM with an information bottleneck (Ahuja et al. 2021, arXiv 2106.06607; ahujak/IB-IRM; DomainBed IB_IRM).

The differences of `cmixup.methods.irm`, whose penalty it has; the bottleneck is on penultimate features as in DomainBed
(some of the authors' experiments take logits). Each weight has its annealing, and the loss is divided by IRM's weight.
"""

from torch import Tensor

from cmixup.methods.domains import Outputs, Penalised, Term
from cmixup.methods.irm import irm_penalty


def bottleneck_penalty(outputs: Outputs) -> Tensor:
    """Return the mean over domains and features of the variance (n_e - 1) of a feature inside a domain, `(...)`."""
    assert outputs.features is not None
    offset, _ = outputs.means.centred(outputs.features)
    count = outputs.means.domain_size
    return outputs.means.across(offset.square().mean(dim=-1) * count / (count - 1).clamp_min(1))


def ib_irm(
    groups: int, weight: float = 100.0, anneal: int = 500, *, ib_weight: float = 100.0, ib_anneal: int = 500
) -> Penalised:
    """Penalise IRM's slopes and the variance of features inside domains.

    Args:
        groups, weight, anneal: see `irm`.
        ib_weight: weight of the variance after its annealing.
        ib_anneal: optimiser steps without it.
    """
    irm_term = Term("weight", irm_penalty, weight, anneal, before=1.0)
    terms = [irm_term, Term("ib_weight", bottleneck_penalty, ib_weight, ib_anneal)]
    return Penalised(groups, terms, divide=True, min_rows=2, reads_features=True)
