"""Invariant risk minimisation, IRMv1 (Arjovsky et al. 2019, arXiv 1907.02893; facebookresearch
/InvariantRiskMinimization; DomainBed domainbed/algorithms.py).

The penalty of a domain is the squared slope of its risk in a scale s of the prediction, at s = 1. Differences from
DomainBed: squared error in closed form instead of cross-entropy through autograd; the whole loss is divided by the
weight where that is above 1, as in the authors' code; domains with fewer than 8 rows in the batch get the plain square,
since the product of half batches is often negative there.
"""

from torch import Tensor

from cmixup.methods.domains import Outputs, Penalised, Term

FEW_ROWS = 8


def irm_penalty(outputs: Outputs) -> Tensor:
    """Return the mean over domains of `g_e^2`, `g_e = d/ds mean((s f - y)^2) = 2 mean(f (f - y))` at s = 1, `(...)`.

    A domain with 8 rows or more has the unbiased form g_e(even rows) g_e(odd rows), which may be negative. Slopes are
    averaged over label dimensions.
    """
    means = outputs.means
    slope = 2 * (outputs.prediction * (outputs.prediction - outputs.y)).mean(dim=-1)
    is_odd = means.same_domain.tril(-1).sum(dim=-1) % 2  # rank of each row in its domain
    is_small = (means.domain_size < FEW_ROWS).to(is_odd.dtype)
    halves = [(half + is_small).clamp_max(1.0) for half in (1 - is_odd, is_odd)]
    return means.across(means.within(slope, halves[0]) * means.within(slope, halves[1]))


def irm(groups: int, weight: float = 100.0, anneal: int = 500) -> Penalised:
    """Penalise domains whose risk a rescaled prediction would lower.

    Args:
        groups: domains a batch; the batch size must be a multiple of it, with two rows of each domain or more.
        weight: lambda, of the penalty after the annealing.
        anneal: optimiser steps with weight 1 before that.
    """
    return Penalised(groups, [Term("weight", irm_penalty, weight, anneal, before=1.0)], divide=True, min_rows=2)
