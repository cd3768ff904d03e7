"""What the library computes, written down slowly: every pair, every definition, nothing shared with its code."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

Wide = np.longdouble


def distances(a: np.ndarray, b: np.ndarray, period: np.ndarray | None = None) -> np.ndarray:
    """Return the distances `(n, m)` of rows `(n, d)` and `(m, d)`, in extended precision."""
    gap = np.abs(a.astype(Wide)[:, None] - b.astype(Wide)[None])
    if period is not None:
        for c, length in enumerate(period):
            if length > 0:
                turned = np.fmod(gap[..., c], Wide(length))
                gap[..., c] = np.minimum(turned, Wide(length) - turned)
    found: np.ndarray = np.sqrt((gap * gap).sum(-1))
    return found


def probabilities(distance: np.ndarray, s: float, kernel: str) -> np.ndarray:
    """Return the rows P of distances `(n, m)`: K(d) / sum of K, its limit where the kernel is 0 everywhere.

    The distances of "cosine" are those of unit vectors.
    """
    nearest = distance.min(axis=1, keepdims=True)
    if kernel == "tophat":
        weight = (distance <= np.maximum(nearest, Wide(s))).astype(Wide)
    elif s == 0:
        weight = (distance <= nearest).astype(Wide)
    elif math.isinf(s):
        weight = np.ones_like(distance)
    else:
        wide = Wide(s)
        with np.errstate(over="ignore"):
            if kernel == "laplace":
                energy = (distance - nearest) / wide
            else:  # of unit vectors 1 - cos is half the squared distance
                energy = ((distance / wide) ** 2 - (nearest / wide) ** 2) / (4 if kernel == "cosine" else 2)
        weight = np.exp(-energy)
    found: np.ndarray = weight / weight.sum(axis=1, keepdims=True)
    return found


def ranks(values: np.ndarray, among: np.ndarray) -> np.ndarray:
    """Return (mean rank - 1/2) / N of values `(n, d)` that are `among` `(N, d)`, output by output."""
    found = np.empty_like(values)
    for place, value in np.ndenumerate(values):
        column = among[:, place[1]]
        found[place] = ((column < value).sum() + (column == value).sum() / 2) / len(column)
    return found


def units(vectors: np.ndarray) -> np.ndarray:
    """Return vectors `(n, d)` divided by their lengths, in extended precision."""
    wide = vectors.astype(Wide)
    found: np.ndarray = wide / np.sqrt((wide * wide).sum(axis=1, keepdims=True))
    return found


def effective(rows: np.ndarray) -> np.ndarray:
    """Return 1 / sum of squares of every row."""
    found: np.ndarray = 1 / (rows * rows).sum(axis=1)
    return found


def mixed(first: np.ndarray, second: np.ndarray, lam: Any) -> np.ndarray:
    """Return lam * first + (1 - lam) * second in extended precision, lambda with the leading axes of the states."""
    weight = np.asarray(lam, dtype=Wide)
    weight = weight.reshape(weight.shape + (1,) * (first.ndim - weight.ndim))
    found: np.ndarray = weight * first.astype(Wide) + (1 - weight) * second.astype(Wide)
    return found


def strange_share(counts: np.ndarray, probability: np.ndarray) -> float:
    """Return the probability of draws at least as far from `probability` as these counts, by chi-square.

    Cells expected less often than 5 times are put together.
    """
    from scipy.stats import chi2

    total = counts.sum()
    large = probability * total >= 5
    seen = np.append(counts[large], counts[~large].sum())
    expected = np.append(probability[large] * total, probability[~large].sum() * total)
    kept = expected > 0
    if (seen[~kept] > 0).any():
        return 0.0
    if kept.sum() < 2:
        return 1.0
    statistic = (((seen - expected)[kept]) ** 2 / expected[kept]).sum()
    return float(chi2.sf(float(statistic), int(kept.sum()) - 1))
