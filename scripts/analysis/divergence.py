"""How far a representation tells domains apart once the label is known (C-Mixup paper, analysis of learned invariance).

    Inv = 1 / (C E^2) sum_c sum_{e, e'} KL( P(h | label bin c, domain e) || P(h | label bin c, domain e') )

Lower is more invariant. The paper leaves open how bins are split, what h is reduced to, and how densities and their
divergence are estimated. Here bins have equal counts; h is reduced to the first principal components of its
standardised features; densities are estimated with Gaussian kernels that share one bandwidth; and a divergence is the
mean log ratio of two densities over the points of (c, e).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from cmixup.errors import InputError

BINS, COMPONENTS = 10, 2  # C, and the principal components: densities in more dimensions need far more points
MIN_POINTS = 5  # of a cell (bin, domain); pairs with a smaller one are left out of the mean
# Densities are at least exp of this, in units of the kernel's coordinates.
MIN_LOG_DENSITY = math.log(1e-12)
# A spread below this fraction of the largest spread, or of a feature's largest value, counts as none.
MIN_RELATIVE_SPREAD = 1e-8


@dataclass(frozen=True)
class Invariance:
    """The mean divergence over the pairs of cells that have enough points.

    Attributes:
        value: the divergence in nats; this estimate may be slightly negative where domains agree, and is NaN if no
            pair is valid.
        pairs: number of ordered pairs (bin, e, e') that `value` is the mean of; the pairs of a domain with itself
            count, and are 0.
        valid_fraction: `pairs` divided by the number of all pairs, C E^2.
    """

    value: float
    pairs: int
    valid_fraction: float


def learned_invariance(features: Tensor, y: Tensor, domain: Tensor, *, max_domains: int | None = None) -> Invariance:
    """Return the pairwise label-conditional divergence of a representation between domains.

    Args:
        features: `(N, D)`, the representation of every row, in evaluation mode.
        y: `(N,)` or `(N, 1)` float labels.
        domain: `(N,)` int64, the domain of every row.
        max_domains: number of domains looked at: those with most rows, and those as large as the last of them; all by
            default.

    Raises:
        InputError: features are not finite, or there is a single domain.
    """
    if not bool(torch.isfinite(features).all()):
        raise InputError("features has values that are not finite")
    h, labels, codes = features.detach().cpu().double(), y.cpu().double().reshape(-1).numpy(), domain.cpu().numpy()
    if max_domains is not None:
        kept = _of_largest(codes, max_domains)
        h, labels, codes = h[kept], labels[kept], codes[kept]
    names, codes = np.unique(codes, return_inverse=True)
    if len(names) < 2:
        raise InputError(f"domain must have two values or more, got {names.tolist()}")
    n_domains = len(names)
    cells = label_bins(labels) * n_domains + codes
    counts = np.bincount(cells, minlength=BINS * n_domains)
    valid = counts >= MIN_POINTS
    pairs = int((valid.reshape(BINS, n_domains).sum(axis=1) ** 2).sum())
    if not pairs:
        return Invariance(math.nan, 0, 0.0)

    used = torch.from_numpy(valid[cells])
    within = torch.from_numpy(cells)[used]
    z, scott = _kernel_coordinates(principal_components(h)[used], within)
    total = 0.0
    for c in range(BINS):
        here = within // n_domains == c
        total += float(_bin_divergence(z[here] / scott, within[here], scott))
    return Invariance(total / pairs, pairs, pairs / (BINS * n_domains**2))


def label_bins(labels: np.ndarray) -> np.ndarray:
    """Return the bin `(N,)` int64 of every label `(N,)`: of equal counts, except that equal labels share a bin."""
    edges = np.quantile(labels, np.arange(1, BINS) / BINS)
    return np.searchsorted(edges, labels, side="right")


def principal_components(h: Tensor) -> Tensor:
    """Return the first principal components `(N, COMPONENTS)` of standardised features `(N, D)`; a constant stays 0."""
    centred = h - h.mean(dim=0)
    spread = centred.square().mean(dim=0).sqrt()
    constant = spread <= MIN_RELATIVE_SPREAD * h.abs().amax(dim=0)
    z = torch.where(constant, 0.0, centred / torch.where(constant, 1.0, spread))
    _, _, directions = torch.linalg.svd(z, full_matrices=False)
    return z @ directions[:COMPONENTS].mT


def _kernel_coordinates(scores: Tensor, cell: Tensor) -> tuple[Tensor, float]:
    """Return scores in units of their spread inside cells, and Scott's factor n^(-1 / (r + 4)) for the mean cell.

    Scott's rule takes the spread and the number of the points that a density is estimated from, which are those of a
    cell. The spread over all cells would be too wide, since it also holds what the label explains.
    """
    _, inverse, counts = torch.unique(cell, return_inverse=True, return_counts=True)
    means = torch.zeros(len(counts), scores.shape[1], dtype=scores.dtype).index_add_(0, inverse, scores)
    inside = (scores - (means / counts[:, None])[inverse]).square().mean(dim=0).sqrt()
    floor = MIN_RELATIVE_SPREAD * scores.square().mean(dim=0).sqrt().amax()
    n = len(scores) / len(counts)
    return scores / inside.clamp_min(floor if floor > 0 else 1.0), n ** (-1 / (scores.shape[1] + 4))


def _bin_divergence(z: Tensor, cell: Tensor, scott: float) -> Tensor:
    """Return the sum over ordered pairs of the cells of one bin of the estimated divergence.

    A point is left out of its own domain's density where that is evaluated at the point.

    Args:
        z: `(M, r)` points in units of the kernel.
        cell: `(M,)` int64.
        scott: the kernel's width in the units of `MIN_LOG_DENSITY`.
    """
    groups = [torch.nonzero(cell == c)[:, 0] for c in torch.unique(cell)]
    log_kernel = -0.5 * torch.cdist(z, z, compute_mode="donot_use_mm_for_euclid_dist").square()
    log_norm = z.shape[1] * (0.5 * math.log(2 * math.pi) + math.log(scott))
    total = torch.zeros((), dtype=z.dtype)
    for members in groups:
        among = log_kernel[members][:, members].fill_diagonal_(-math.inf)
        log_own = _log_density(among, len(members) - 1, log_norm)
        for other in groups:
            if other is not members:
                total = total + (log_own - _log_density(log_kernel[members][:, other], len(other), log_norm)).mean()
    return total


def _log_density(log_kernel: Tensor, n: int, log_norm: float) -> Tensor:
    return (torch.logsumexp(log_kernel, dim=1) - math.log(n) - log_norm).clamp_min(MIN_LOG_DENSITY)


def _of_largest(codes: np.ndarray, n_domains: int) -> np.ndarray:
    """Return whether each row `(N,)` belongs to one of the `n_domains` domains with most rows; ties are kept."""
    names, inverse, counts = np.unique(codes, return_inverse=True, return_counts=True)
    return counts[inverse] >= np.sort(counts)[::-1][min(n_domains, len(names)) - 1]
