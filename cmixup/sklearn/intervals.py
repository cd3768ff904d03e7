"""Prediction intervals of an ensemble from the rows that its members held out: CV+ and jackknife+-after-bootstrap.

Barber, Candes, Ramdas and Tibshirani (2021), "Predictive inference with the jackknife+", Annals of Statistics 49(1),
section 3 (CV+); Kim, Xu and Barber (2020), NeurIPS, for rows that several members held out. A row's residual is that of
the mean of those members, and stands with this mean at the new point.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from cmixup.errors import InputError, as_number
from cmixup.sampling.inputs import Floats
from cmixup.sklearn.held_out import Part

#: A block of new rows holds so many ends of intervals.
ENDS_PER_BLOCK = 1 << 21


class Residuals(NamedTuple):
    """What held-out rows say of the error.

    Attributes:
        size: (k, d_y) float64 absolute residuals in label units, NaN where the label is missing.
        weight: (k,) float64 of the rows.
        members: (k, M) float64, 1 for the members that held the row out, else 0.
    """

    size: Floats
    weight: Floats
    members: Floats


def residuals_of(weight: Floats, parts: Sequence[Part], held: Sequence[Floats], labels: Floats) -> Residuals:
    """Return the residuals of the rows that members held out.

    Args:
        weight: (N,) of the rows.
        parts: of the members.
        held: for each member its predictions (k_m, d_y) of the rows that it holds out, in label units.
        labels: (N, d_y) in label units.
    """
    sums, members = np.zeros(labels.shape), np.zeros((len(labels), len(parts)))
    for member, (part, predicted_held) in enumerate(zip(parts, held, strict=True)):
        sums[part.held] += predicted_held
        members[part.held, member] = 1
    index = np.flatnonzero(members.any(axis=1))
    mean = sums[index] / members[index].sum(axis=1, keepdims=True)
    return Residuals(np.abs(labels[index] - mean), weight[index], members[index])


def check_coverage(coverage: float, residuals: Residuals) -> float:
    """Return the share of labels that an interval shall hold.

    Raises:
        InputError: it is not between 0 and 1, or rows were not held out, or too few.
    """
    share = as_number("coverage", coverage)
    if not 0 < share < 1:
        raise InputError(f"coverage must lie between 0 and 1, got {share!r}")
    counts = (~np.isnan(residuals.size)).sum(axis=0) if len(residuals.size) else np.zeros(1, dtype=np.int64)
    if not counts.min():
        raise InputError(
            f"coverage={share!r} needs a fit that held rows out, got one without (early_stopping, X_val, cv)"
        )
    needed = math.ceil(share / (1 - share) - 1e-9)
    if counts.min() < needed:
        raise InputError(f"coverage must go with {needed} rows held out or more, got {share!r} and {counts.min()} rows")
    return share


def interval(residuals: Residuals, predicted: Floats, share: float) -> tuple[Floats, Floats]:
    """Return the lower and the upper ends (n, d_y) of intervals that hold a share of new labels.

    The upper end is the smallest value with a share of `share (k + 1) / k` of the values mu_i(x) + R_i below or at it
    (by weight), mu_i(x) being the mean of the members that held row i out; the lower end mirrors it.

    Args:
        residuals: of k rows.
        predicted: (M, n, d_y) what each member predicts for the new rows, in label units.
        share: see `check_coverage`.
    """
    sets, which = np.unique(residuals.members, axis=0, return_inverse=True)
    means = np.einsum("sm,mnd->snd", sets / sets.sum(axis=1, keepdims=True), predicted)
    low, high = np.empty(predicted.shape[1:]), np.empty(predicted.shape[1:])
    step = max(1, ENDS_PER_BLOCK // max(1, len(residuals.size)))
    for output in range(predicted.shape[2]):
        known = ~np.isnan(residuals.size[:, output])
        size, weight, of = residuals.size[known, output], residuals.weight[known], which[known]
        for start in range(0, predicted.shape[1], step):
            block = means[of, start : start + step, output]
            high[start : start + step, output] = _quantile(block + size[:, None], weight, share)
            low[start : start + step, output] = -_quantile(size[:, None] - block, weight, share)
    return low, high


def _quantile(values: Floats, weight: Floats, share: float) -> Floats:
    """Return the value of each column (k, n) at which the weights (k,) reach `share (k + 1) / k` of their sum."""
    k = len(values)
    order = np.argsort(values, axis=0, kind="stable")
    reached = np.cumsum(weight[order], axis=0) / weight.sum()
    place = (reached < share * (k + 1) / k - 1e-12).sum(axis=0).clip(max=k - 1)
    return np.take_along_axis(values, np.take_along_axis(order, place[None], axis=0), axis=0)[0]
