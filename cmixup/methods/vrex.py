"""V-REx, risk extrapolation by variance (Krueger et al. 2021, arXiv 2003.00688; DomainBed VREx).

Differences from DomainBed: squared error; the whole loss is divided by the weight where that is
above 1, as in the authors' code.
"""

from torch import Tensor

from cmixup.methods.domains import Outputs, Penalised, Term


def vrex_penalty(outputs: Outputs) -> Tensor:
    """Return the population variance of the domains' risks, `(...)`; 0 for one domain."""
    means = outputs.means
    risk = means.within(outputs.errors)
    return means.across((risk - means.across(risk).unsqueeze(-1)).square())


def vrex(groups: int, weight: float = 10.0, anneal: int = 500) -> Penalised:
    """Penalise the variance of the risk over domains.

    Args:
        groups: domains a batch; the batch size must be a multiple of it.
        weight: lambda, of the penalty after the annealing.
        anneal: optimiser steps with weight 1 before that.
    """
    return Penalised(groups, [Term("weight", vrex_penalty, weight, anneal, before=1.0)], divide=True)
