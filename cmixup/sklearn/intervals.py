"""Prediction intervals from rows that members held out: residuals of these rows in units of a spread that follows X.

An interval ends where the prediction lies a quantile of held-out residuals away (jackknife and CV, see Barber, Candes,
Ramdas and Tibshirani 2021, Annals of Statistics 49(1), section 2). The residual of a row is that of the mean of the
members that held it out. It is divided by a spread which trees predict from the row (locally weighted conformal
inference, Lei et al. 2018, JASA 113, section 5.2), shrunken towards one width for all rows as far as makes intervals of
held-out rows better. Of fitted quantiles the residual is the label's distance from the lowest or the highest, below 0
between them. Their distance from each other is the spread (conformalised quantile regression, Romano, Patterson and
Candes 2019, NeurIPS).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from cmixup.errors import InputError, as_number
from cmixup.sampling.inputs import Floats
from cmixup.sklearn.columns import Levels
from cmixup.sklearn.held_out import Part
from cmixup.sklearn.options import Settings
from cmixup.sklearn.rows import Rows, fold_of
from cmixup.sklearn.table import Table
from cmixup.sklearn.trees import Trees, fit_trees, predict_trees, tree_levels

#: A spread needs so many held-out rows; trees predict it for the rows of other folds than their own.
FEWEST_ROWS, FOLDS = 100, 5
#: Of a residual the gamma likelihood fits the logarithm of the mean, so that small spreads count as much as large ones.
SPREAD_TREES = {"loss": "gamma", "max_iter": 40, "max_leaf_nodes": 5, "min_samples_leaf": 30}
LEAST = 1e-3  # of the mean residual: the gamma likelihood takes no 0
#: The coverage at which intervals with a spread and those of one width are compared.
COMPARED_AT = 0.9
#: How far the spread of a row may follow X: 0 is one width for all rows, and a little of that stays in each.
SHARES = (0.0, 0.5, 0.75, 0.9, 0.97, 0.99)


@dataclass
class Intervals:
    """The residuals of rows that members held out, in deviations of the labels and units of their spread."""

    residuals: Floats  # (k, d_y) NaN where the label is missing
    weights: Floats  # (k,) above 0
    shares: Floats  # (d_y,) how far the spread follows X, one of `SHARES`
    trees: Trees | None  # of each fold, that predict the logarithm of a row's absolute residual relative to the mean

    def widths(self, share: float, x: Floats, levels: Sequence[Levels], relative: Floats) -> Floats:
        """Return how far intervals (n, d_y) of rows reach beyond predictions; one row where all are as wide.

        x are rows as `fit_spread` takes them, and `relative` (n, d_y) the widths between outer quantiles.
        """
        half = residual_quantile(self.residuals, self.weights, share)[None]
        if self.trees is not None:
            relative = np.exp(predict_trees(self.trees, x, levels, range(len(self.trees.starts)), 1)).mean(axis=0)
        return half * _spread(relative, self.shares) if self.shares.any() else half


def fit_intervals(rows: Rows, predicted: Floats, table: Table, settings: Settings, seed: int) -> Intervals:
    """Return the intervals of rows, columns as they came and labels in deviations, from `held_out_means` (k, d_y q).

    The spread of a row follows X as far as gives the lowest interval score (Gneiting and Raftery 2007, section 6.2).
    """
    by_label, trees = table.by_label(predicted), None
    excess = np.maximum(by_label[..., 0] - rows.y, rows.y - by_label[..., -1])
    relative = by_label[..., -1] - by_label[..., 0]
    if not settings.loss.quantiles and len(rows) >= FEWEST_ROWS:
        x, levels = np.hstack([table.for_trees(rows.x), predicted]), tree_levels(table.levels, predicted.shape[1])
        trees, relative = fit_spread(replace(rows, x=x, y=excess), levels, settings.threads, seed)
    spreads = [_spread(relative, np.full(excess.shape[1], share)) for share in SHARES]
    scores = [_interval_score(excess, spread, rows.weight) for spread in spreads if len(rows)]
    best = np.argmin(scores, axis=0) if len(rows) else np.zeros(excess.shape[1], dtype=np.int64)
    shares = np.array(SHARES)[best]
    return Intervals(excess / _spread(relative, shares), rows.weight, shares, trees if shares.any() else None)


def fit_spread(rows: Rows, levels: Sequence[Levels], threads: int | None, seed: int) -> tuple[Trees, Floats]:
    """Return trees of absolute residuals relative to their mean, and predictions of those of other folds (k, d_y).

    Rows have columns as trees take them, then the predictions, and absolute residuals (k, d_y) for labels;
    folds hold whole groups, where there are several.
    """
    k, outputs = rows.y.shape
    fold = fold_of(rows.group, k, FOLDS, [seed, 2])
    parts = [Part(np.flatnonzero(fold != f), np.flatnonzero(fold == f)) for f in range(fold.max() + 1)]
    known = ~np.isnan(rows.y)
    mean = rows.weight @ np.nan_to_num(rows.y) / np.maximum(rows.weight @ known, np.finfo(np.float64).tiny)
    relative = Rows(rows.x, np.maximum(rows.y / np.where(mean > 0, mean, 1.0), LEAST), rows.weight)
    trees = fit_trees(relative, levels, parts, threads, np.empty((len(parts), k, 0)), options=[SPREAD_TREES] * outputs)
    predicted = np.empty(rows.y.shape)
    for f, part in enumerate(parts):
        predicted[part.held] = np.exp(predict_trees(trees, rows.x[part.held], levels, [f], 1)[0])
    return trees, predicted


def _spread(relative: Floats, shares: Floats) -> Floats:
    """Return the spread (n, d_y) of rows, about 1 in the mean: shares (d_y,) of it are relative residuals."""
    return 1 - shares + shares * relative.clip(min=0)


def check_coverage(coverage: float, residuals: Floats) -> float:
    """Return the share of labels that an interval shall hold, for which enough rows must have been held out."""
    share = as_number("coverage", coverage)
    if not 0 < share < 1:
        raise InputError(f"coverage must lie between 0 and 1, got {share!r}")
    counts = (~np.isnan(residuals)).sum(axis=0) if len(residuals) else np.zeros(1, dtype=np.int64)
    if not counts.min():
        raise InputError(f"coverage={share!r} needs a fit that held rows out, got one without (early_stopping, cv)")
    needed = math.ceil(share / (1 - share) - 1e-9)
    if counts.min() < needed:
        raise InputError(f"coverage must go with {needed} rows held out or more, got {share!r} and {counts.min()} rows")
    return share


def residual_quantile(residuals: Floats, weights: Floats, share: float) -> Floats:
    """Return the smallest residuals (d_y,) at or below which lies a share of `share (k + 1) / k` of the weights (k,).

    Residuals (k, d_y) are NaN where the label is missing. Where all are, the quantile is NaN.
    """
    quantiles = []
    for column in residuals.T:
        if not (known := ~np.isnan(column)).any():
            quantiles.append(np.nan)
            continue
        values, weight = column[known], weights[known]
        order = np.argsort(values, kind="stable")
        cumulative = np.cumsum(weight[order]) / weight.sum()
        place = int((cumulative < share * (len(values) + 1) / len(values) - 1e-12).sum())
        quantiles.append(values[order[min(place, len(values) - 1)]])
    return np.array(quantiles)


def _interval_score(size: Floats, spread: Floats, weight: Floats) -> Floats:
    """Return half the mean interval score (d_y,) of residuals (k, d_y): width, and distance outside by its share."""
    half = residual_quantile(size / spread, weight, COMPARED_AT) * spread
    scores = half + np.maximum(size - half, 0) / (1 - COMPARED_AT)
    weights = ~np.isnan(size) * weight[:, None]
    return (np.nan_to_num(scores) * weights).sum(axis=0) / np.maximum(weights.sum(axis=0), np.finfo(np.float64).tiny)
