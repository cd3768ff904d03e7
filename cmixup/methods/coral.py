"""Deep CORAL (Sun and Saenko 2016, arXiv 1607.01719) in the form of DomainBed and WILDS: means and covariances.

Differences from these: covariances are compared through the Gram matrix of the batch, (B, B) instead of one (D, D)
matrix a domain, with the same value. The paper has no term for means and divides by 4 D^2.
"""

from torch import Tensor

from cmixup.methods.domains import Outputs, Penalised, Term


def coral_penalty(outputs: Outputs) -> Tensor:
    """Return the mean over pairs of domains of `mean((m_e - m_e')^2) + mean((C_e - C_e')^2)`, `(...)`.

    m is the mean of the features `(D,)` of a domain. C is their covariance `(D, D)` with n_e - 1, 0 for a single row.
    mean( ) is over entries. The penalty of one domain is 0.
    """
    assert outputs.features is not None
    means, width = outputs.means, outputs.features.shape[-1]
    offset, mean = means.centred(outputs.features)
    # The mean over pairs of ||a_e - a_e'||^2 is 2 E / (E - 1) times the mean of ||a_e - mean(a)||^2.
    offsets = mean - (means.weight.unsqueeze(-1) * mean).sum(dim=-2, keepdim=True)
    mean_term = means.across(offsets.square().mean(dim=-1))
    # <C_e, C_e'> is the sum of squared Gram entries of their rows over (n_e - 1)(n_e' - 1).
    gram = (offset @ offset.mT).square()
    v = means.weight * means.domain_size / (means.domain_size - 1).clamp_min(1)
    n_domains = means.n_domains[..., None, None]
    pairs = v.unsqueeze(-1) * v.unsqueeze(-2)
    covariance_term = (gram * pairs * (n_domains * means.same_domain - 1)).sum(dim=(-2, -1))
    return 2 * means.n_domains / (means.n_domains - 1).clamp_min(1) * (mean_term + covariance_term / width**2)


def coral(groups: int, weight: float = 1.0) -> Penalised:
    """Penalise differences of the features' means and covariances between domains.

    Args:
        groups: domains a batch; the batch size must be a multiple of it, with two rows of each domain or more.
        weight: gamma, of the penalty.
    """
    return Penalised(groups, [Term("weight", coral_penalty, weight)], min_rows=2, reads_features=True)
