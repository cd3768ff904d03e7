"""Partners, mixed rows and estimators of the simulations of C-Mixup's theorems; all randomness comes in as arrays."""

from typing import cast

import numpy as np
from scipy.spatial.distance import cdist

from cmixup.sampling.distance import Kernel
from cmixup.sampling.inputs import Floats, Ints

Sample = tuple[Floats, Floats]  # features (N, p) and labels (N,)


def draw_partners(queries: Floats, points: Floats, bandwidth: float, level: Floats, *, others: bool = False) -> Ints:
    """Choose a point for each query with probability proportional to exp(-d^2 / (2 bandwidth^2)).

    Args:
        queries: (N, d) labels or features, in the unit of `bandwidth`.
        points: (M, d) what is chosen from.
        bandwidth: of the Gaussian; 0 chooses among the nearest, infinity among all alike.
        level: (C, N) uniform numbers in [0, 1), one a choice; the choice is where the cumulated weights pass it.
        others: True where queries and points are the same rows, and none may choose itself.

    Returns:
        (C, N) indices of points, int64.
    """
    distance, itself = cdist(queries, points), np.arange(len(queries) if others else 0)
    distance[itself, itself] = np.inf
    nearest = distance.min(axis=1)
    distance[itself, itself] = nearest[itself]  # any finite number: its weight is set to 0
    weight = np.exp(-Kernel(bandwidth).excess(distance, nearest[:, None]))
    weight[itself, itself] = 0
    cumulative = np.cumsum(weight, axis=1)
    threshold = level * cumulative[:, -1]
    return np.stack([row.searchsorted(threshold[:, k], "right") for k, row in enumerate(cumulative)], axis=1)


def distance_spread(a: Floats, b: Floats, *, others: bool = False) -> float:
    """Return s_d, the standard deviation of the squared distances of all rows of `a` (N, d) from all of `b` (M, d).

    The kernel over features exp(-d / (2 f s_d)), d a squared distance, is the Gaussian of bandwidth sqrt(f s_d).
    With `others` the pairs of row i with row i are left out, as where both are the same rows.
    """
    squared = cdist(a, b, "sqeuclidean")
    return float((squared[~np.eye(len(a), dtype=bool)] if others else squared).std())


def mixed_sample(first: Sample, second: Sample, partner: Ints, lam: Floats) -> Sample:
    """Return lam first_i + (1 - lam) second_partner(i) for every copy, one below the other, of features and of labels.

    `partner` (C, N) are indices of rows of `second`, `lam` is (C, N).
    """
    (x, y), (other_x, other_y), weight = first, second, lam[..., None]
    mixed = weight * x + (1 - weight) * other_x[partner]
    return mixed.reshape(-1, x.shape[1]), (lam * y + (1 - lam) * other_y[partner]).reshape(-1)


def fit_direction(x: Floats, y: Floats) -> Floats:
    """Return the least-squares coefficients (p,) of y (N,) on x (N, p), without intercept, scaled to length 1."""
    direction = cast("Floats", np.linalg.lstsq(x, y, rcond=None)[0])
    return direction / np.linalg.norm(direction)


def ridge_fit(x: Floats, y: Floats, penalty: float) -> Floats:
    """Return the minimiser (p,) of ||y - x theta||^2 + penalty ||theta||^2."""
    return cast("Floats", np.linalg.solve(x.T @ x + penalty * np.eye(x.shape[1]), x.T @ y))


def nadaraya_watson(t: Floats, y: Floats, at: Floats, width: float) -> Floats:
    """Return the kernel estimate sum_i K_i y_i / sum_i K_i at every point, with K_i = exp(-(at - t_i)^2 / width^2).

    Values y (N,) are known at t (N,) and wanted at `at` (T,); `width` is in the unit of `t`.
    """
    energy = np.square((at[:, None] - t) / width)
    weight = np.exp(energy.min(axis=1, keepdims=True) - energy)  # far from all points the nearest decides
    return cast("Floats", weight @ y / weight.sum(axis=1))
