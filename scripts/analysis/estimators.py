"""Partners, mixed rows and estimators of the simulations of C-Mixup's theorems; all randomness comes in as arrays."""

from __future__ import annotations

from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from cmixup.sampling.inputs import Floats, Ints
from cmixup.sampling.kernels import Kernel

Rows = NDArray[np.floating[Any]]  # float32 is enough for weights
Sample = tuple[Rows, Floats]  # features (N, p) and labels (N,)

#: Kernel weights that are held at once: 2 MiB in float64, which stay in a cache.
WEIGHTS_PER_BLOCK = 1 << 18


def squared_distances(a: Rows, b: Rows) -> Rows:
    """Return the squared Euclidean distances (N, M) between the rows of `a` (N, d) and `b` (M, d)."""
    if a.shape[1] == 1:
        return np.square(a - b.T)  # exact, which labels a rounding error apart need
    squared = np.square(a).sum(axis=1)[:, None] + np.square(b).sum(axis=1) - 2 * (a @ b.T)
    return np.maximum(squared, 0, out=squared)


def draw_partners(queries: Rows, points: Rows, bandwidth: float, level: Floats, *, others: bool = False) -> Ints:
    """Choose a point for each query with probability proportional to exp(-d^2 / (2 bandwidth^2)).

    Args:
        queries: (N, d) labels or features, in the unit of `bandwidth`.
        points: (M, d) what is chosen from.
        bandwidth: of the Gaussian; 0 chooses among the nearest, infinity among all alike.
        level: (C, N) uniform numbers in [0, 1), one a choice; the choice is where the cumulated weights pass it.
        others: whether query i may not choose point i, as where both are the same rows.

    Returns:
        (C, N) indices of points, int64.
    """
    if np.isinf(bandwidth):  # what the kernel does, by less work
        chosen = (level * (len(points) - others)).astype(np.int64)
        return chosen + (chosen >= np.arange(len(queries))) if others else chosen
    kernel, chosen = Kernel("gaussian", bandwidth), np.empty(level.shape, dtype=np.int64)
    step = max(1, WEIGHTS_PER_BLOCK // len(points))
    for start in range(0, len(queries), step):
        stop = min(start + step, len(queries))
        distance = np.sqrt(squared_distances(queries[start:stop], points))
        diagonal = (np.arange(stop - start), np.arange(start, stop))
        if others:
            distance[diagonal] = np.inf
        nearest = distance.min(axis=1)
        if others:
            distance[diagonal] = nearest  # any finite number: its weight is set to 0
        weight = np.exp(-kernel.excess(distance, nearest[:, None]), dtype=np.float32)  # a sixth of float64's time
        if others:
            weight[diagonal] = 0
        cumulative = np.cumsum(weight, axis=1, dtype=np.float64)
        at = level[:, start:stop] * cumulative[:, -1]
        for k, row in enumerate(cumulative):
            chosen[:, start + k] = row.searchsorted(at[:, k], "right")
    return chosen


def distance_spread(a: Rows, b: Rows, *, others: bool = False) -> float:
    """Return s_d, the standard deviation of the squared distances of all rows of `a` (N, d) from all of `b` (M, d).

    The kernel over features exp(-d / (2 f s_d)), d a squared distance, is the Gaussian of bandwidth sqrt(f s_d).
    With `others` the pairs of row i with row i are left out, as where both are the same rows.
    """
    total = squares = 0.0
    for part in np.array_split(a, max(1, len(a) * len(b) // WEIGHTS_PER_BLOCK)):
        d = squared_distances(part, b)
        total += float(d.sum())
        squares += float(np.vdot(d, d))
    pairs = len(a) * (len(b) - 1 if others else len(b))  # a row is at distance 0 from itself
    mean = total / pairs
    return float(np.sqrt(squares / pairs - mean**2))


def mixed_sample(first: Sample, second: Sample, partner: Ints, lam: Floats) -> Sample:
    """Return lam first_i + (1 - lam) second_partner(i) for every copy, one below the other, of features and of labels.

    `partner` (C, N) are indices of rows of `second`, `lam` is (C, N).
    """
    (x, y), (other_x, other_y), weight = first, second, lam[..., None]
    mixed = weight * x + (1 - weight) * other_x[partner]
    return mixed.reshape(-1, x.shape[1]), (lam * y + (1 - lam) * other_y[partner]).reshape(-1)


def fit_direction(x: Rows, y: Floats) -> Floats:
    """Return the least-squares coefficients (p,) of y (N,) on x (N, p), without intercept, scaled to length 1."""
    direction = ridge_fit(x, y, 0.0)
    return direction / np.linalg.norm(direction)


def ridge_fit(x: Rows, y: Floats, penalty: float) -> Floats:
    """Return the minimiser (p,) of ||y - x theta||^2 + penalty ||theta||^2; without penalty that of least length."""
    if penalty == 0:
        return cast("Floats", np.linalg.lstsq(x, y, rcond=None)[0])
    return cast("Floats", np.linalg.solve(x.T @ x + penalty * np.eye(x.shape[1]), x.T @ y))


def nadaraya_watson(t: Floats, y: Floats, at: Floats, width: float) -> Floats:
    """Return the kernel estimate sum_i K_i y_i / sum_i K_i at every point, with K_i = exp(-(at - t_i)^2 / width^2).

    Values y (N,) are known at t (N,) and wanted at `at` (T,); `width` is in the unit of `t`.
    """
    estimate = np.empty(len(at))
    scaled, points = (np.asarray(v / width, dtype=np.float32) for v in (at, t))  # a third of float64's time
    step = max(1, WEIGHTS_PER_BLOCK // len(t))
    for start in range(0, len(at), step):
        energy = np.square(scaled[start : start + step, None] - points)
        energy -= energy.min(axis=1, keepdims=True)  # far from all points the nearest decides
        weight = np.exp(-energy)
        estimate[start : start + step] = (weight @ y.astype(np.float32)) / weight.sum(axis=1)
    return estimate
