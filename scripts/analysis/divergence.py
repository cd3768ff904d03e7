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
from scipy.spatial.distance import cdist
from scipy.special import logsumexp
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
    h, labels, codes = (t.detach().cpu().double().numpy() for t in (features, y.reshape(-1), domain))
    if max_domains is not None:
        names, counts = np.unique(codes, return_counts=True)
        kept = np.isin(codes, names[counts >= np.sort(counts)[-max_domains:][0]])
        h, labels, codes = h[kept], labels[kept], codes[kept]
    names, codes = np.unique(codes, return_inverse=True)
    if len(names) < 2:
        raise InputError(f"domain must have two values or more, got {names.tolist()}")
    cells = label_bins(labels) * len(names) + codes
    valid = np.bincount(cells, minlength=BINS * len(names)) >= MIN_POINTS
    pairs = int((valid.reshape(BINS, len(names)).sum(axis=1) ** 2).sum())
    if not pairs:
        return Invariance(math.nan, 0, 0.0)

    z = principal_components(h)
    groups = {cell: z[cells == cell] for cell in np.flatnonzero(valid)}
    # Scott's rule takes the spread and the number of the points that a density is estimated from, those of a cell: the
    # spread over all cells would be too wide, since it also holds what the label explains.
    used = np.concatenate(list(groups.values()))
    spread = np.sqrt(sum(np.square(g - g.mean(axis=0)).sum(axis=0) for g in groups.values()) / len(used))
    floor = MIN_RELATIVE_SPREAD * np.sqrt(np.square(used).mean(axis=0)).max()
    scott = (len(used) / len(groups)) ** (-1 / (z.shape[1] + 4))
    unit = np.maximum(spread, floor if floor > 0 else 1.0) * scott
    log_norm = z.shape[1] * (0.5 * math.log(2 * math.pi) + math.log(scott))
    total = 0.0
    for c in range(BINS):
        of_bin = [points / unit for cell, points in groups.items() if cell // len(names) == c]
        for points in of_bin:
            log_own = _log_density(points, points, log_norm, left_out=1)
            others = [other for other in of_bin if other is not points]
            total += sum(float((log_own - _log_density(points, other, log_norm)).mean()) for other in others)
    return Invariance(total / pairs, pairs, pairs / (BINS * len(names) ** 2))


def label_bins(labels: np.ndarray) -> np.ndarray:
    """Return the bin `(N,)` int64 of every label `(N,)`: of equal counts, except that equal labels share a bin."""
    edges = np.quantile(labels, np.arange(1, BINS) / BINS)
    return np.searchsorted(edges, labels, side="right")


def principal_components(h: np.ndarray) -> np.ndarray:
    """Return the first principal components `(N, COMPONENTS)` of standardised features `(N, D)`; a constant stays 0."""
    centred = h - h.mean(axis=0)
    spread = np.sqrt(np.square(centred).mean(axis=0))
    constant = spread <= MIN_RELATIVE_SPREAD * np.abs(h).max(axis=0)
    z = np.where(constant, 0.0, centred / np.where(constant, 1.0, spread))
    return z @ np.linalg.svd(z, full_matrices=False)[2][:COMPONENTS].T


def _log_density(at: np.ndarray, points: np.ndarray, log_norm: float, left_out: int = 0) -> np.ndarray:
    """Return the log density of `points` (n, r) at `at` (m, r), in units of the kernel; each may leave itself out."""
    log_kernel = -0.5 * cdist(at, points, "sqeuclidean")
    if left_out:
        np.fill_diagonal(log_kernel, -math.inf)
    density = logsumexp(log_kernel, axis=1) - math.log(len(points) - left_out) - log_norm
    return np.maximum(density, MIN_LOG_DENSITY)
