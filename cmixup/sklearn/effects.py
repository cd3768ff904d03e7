"""Columns of many levels as statistics of the labels, which each member takes from the rows that it is trained on.

A level has two numbers for each output: the mean of its labels, and their mean residual from a linear model of the
columns and the other levels. Both are shrunken towards 0, that of all rows, as random effects are (best linear
unbiased prediction, Robinson 1991, Statistical Science 6(1)). Rows that a member is trained on have the statistics of
rows in other folds (target encoding, Micci-Barreca 2001, by cross-fitting): no row has its label among its inputs.
"""

from collections.abc import Sequence

import numpy as np

from cmixup.sampling.inputs import Floats, Ints
from cmixup.sklearn.columns import Levels, many_levels
from cmixup.sklearn.held_out import Part
from cmixup.sklearn.rows import Rows, fold_of

FOLDS, ROUNDS = 10, 3


def places_of_levels(x: Floats, levels: Sequence[Levels]) -> tuple[Ints, Ints]:
    """Return the row (n, c) of a table of effects for each level in rows (n, d), and how many rows columns have (c,).

    These are a column's levels, a gap, and one for all levels that training did not have.
    """
    many = many_levels(levels)
    sizes = np.array([len(levels[place] or ()) + 2 for place in many], dtype=np.int64)
    codes = np.where(np.isnan(x[:, many]), sizes - 2, x[:, many] % sizes)  # -1 becomes the last
    return np.cumsum(sizes) - sizes + codes.astype(np.int64), sizes


def looked_up(tables: Floats, places: Ints) -> Floats:
    """Return the effects (M, n, c F) of levels at places (n, c) in tables (M, S, F)."""
    return tables[:, places].reshape(len(tables), len(places), places.shape[1] * tables.shape[2])


def joined(values: Floats, effects: Floats) -> Floats:
    """Return columns (n, d) with the effects (M, n, E) of each member after them; where there are none, as they are."""
    if not effects.shape[2]:
        return values
    return np.concatenate([np.broadcast_to(values, (len(effects), *values.shape)), effects], axis=2)


def fit_effects(
    raw: Rows, rows: Rows, levels: Sequence[Levels], parts: Sequence[Part], seed: int
) -> tuple[Floats, Floats]:
    """Return each member's table of effects `(M, S, 2 d_y)` and the effects in its rows `(M, N, E)`, of deviation 1.

    `raw` has the numbers of levels, `rows` standardised columns and labels. Rows a member is trained on get effects
    from those in other folds, of other groups if there are two or more, rows held out those of the table.
    """
    places, sizes = places_of_levels(raw.x, levels)
    tables = np.zeros((len(parts), int(sizes.sum()), 2 * rows.y.shape[1]))
    effects = np.zeros((len(parts), len(rows), tables.shape[2] * len(sizes)))
    if not len(sizes):
        return tables, effects
    for member, part in enumerate(parts):
        train, weight = part.train, rows.weight / rows.weight[part.train].mean()
        slopes = _ridge_slopes(rows.x[train], rows.y[train], weight[train])
        residuals = rows.y - rows.x @ slopes
        tables[member] = _level_effects(places[train], rows.y[train], residuals[train], weight[train], sizes)
        effects[member] = looked_up(tables[[member]], places)[0]
        group = None if raw.group is None else raw.group[train]
        fold = fold_of(group, len(train), FOLDS, [seed, 1])
        for k in np.unique(fold):
            rest, fold_rows = train[fold != k], train[fold == k]
            table = _level_effects(places[rest], rows.y[rest], residuals[rest], weight[rest], sizes)
            effects[member, fold_rows] = looked_up(table[None], places[fold_rows])[0]
        scale = np.sqrt(np.average(effects[member, train] ** 2, axis=0, weights=weight[train]))
        scale = np.where(scale > 0, scale, 1.0)
        effects[member] /= scale
        tables[member] /= np.repeat(scale.reshape(len(sizes), -1), sizes, axis=0)
    return tables, effects


def _ridge_slopes(z: Floats, y: Floats, weight: Floats) -> Floats:
    """Return slopes (D, d_y) of a ridge regression, over the rows that have a label of the output."""
    slopes = np.zeros((z.shape[1], y.shape[1]))
    for output, known in enumerate(~np.isnan(y.T)):
        weighted = z[known].T * weight[known]
        slopes[:, output] = np.linalg.solve(weighted @ z[known] + np.eye(z.shape[1]), weighted @ y[known, output])
    return slopes


def _level_effects(places: Ints, y: Floats, residuals: Floats, weight: Floats, sizes: Ints) -> Floats:
    """Return a table (S, 2 d_y): of each level and output the mean of labels, and that of the rest in rounds."""
    table = np.zeros((sizes.sum(), 2, y.shape[1]))
    for output, known in enumerate(~np.isnan(y.T)):
        columns, share = places[known].T, weight[known]
        table[:, 0, output] = sum(_shrunken_means(column, y[known, output], share, len(table)) for column in columns)
        effect = np.zeros((len(sizes), len(table)))
        for _ in range(ROUNDS if len(sizes) > 1 else 1):
            for k, column in enumerate(columns):
                others = sum(effect[j, columns[j]] for j in range(len(sizes)) if j != k)
                effect[k] = _shrunken_means(column, residuals[known, output] - others, share, len(table))
        table[:, 1, output] = effect.sum(axis=0)
    return table.reshape(len(table), -1)


def _shrunken_means(places: Ints, values: Floats, weight: Floats, size: int) -> Floats:
    """Return the mean of values at each place (size,), shrunken towards 0 by the variances within and between places.

    It is 0 everywhere where places do not differ, or no two values have the same place.
    """
    count, sums = (np.bincount(places, weights, minlength=size) for weights in (weight, weight * values))
    means, n_filled = sums / np.maximum(count, np.finfo(np.float64).tiny), np.count_nonzero(count)
    if len(places) == n_filled:
        return np.zeros(size)
    within = weight @ (values - means[places]) ** 2 / (len(places) - n_filled)
    between = (count @ means**2 - n_filled * within) / count.sum()
    return sums / np.maximum(count + within / between, np.finfo(np.float64).tiny) if between > 0 else np.zeros(size)
