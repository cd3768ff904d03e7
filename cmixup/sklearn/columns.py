"""The columns of a table as numbers: one for each level of a category, and one that says where a number is missing."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np

from cmixup.errors import InputError, format_value
from cmixup.sampling.inputs import Floats
from cmixup.sklearn.frames import in_numbers
from cmixup.tables.levels import Level, distinct, level_of, level_places

#: The levels of a column of categories, or None for a column of numbers.
Levels = list[Level] | None
#: A column of more levels has effects (`cmixup.sklearn.effects`) for a column a level; trees split so many by sets.
MOST_LEVELS = 255
#: Columns of more than so many levels have effects, too, where these have more than `MOST_TOGETHER` levels in all.
FEW_LEVELS, MOST_TOGETHER = 50, 1000


def categorical_columns(features: Any, X: Any) -> list[int]:
    """Return the positions of the columns that hold categories.

    Given are None, "from_dtype" (pandas' categories), or names, positions or a mask of the columns.
    """
    names = list(getattr(X, "columns", ()))
    if features is None:
        return []
    if isinstance(features, str) and features == "from_dtype":
        return [place for place, name in enumerate(names) if str(X.dtypes.iloc[place]) == "category"]
    count = np.shape(X)[1] if np.ndim(X) == 2 else 0
    is_list = not isinstance(features, str) and np.ndim(features) == 1
    entries = np.asarray(features, dtype=object).tolist() if is_list else []
    entries = [entry.item() if isinstance(entry, np.generic) else entry for entry in entries]  # NumPy's True is no bool
    if len(entries) == count and all(isinstance(entry, bool) for entry in entries):
        return np.flatnonzero(entries).tolist()
    places = [names.index(entry) if entry in names and not isinstance(entry, bool) else entry for entry in entries]
    if not (is_list and all(type(place) is int and 0 <= place < count for place in places)):
        expected = f'None, "from_dtype", or names, positions or a mask of the {count} columns'
        raise InputError(f"categorical_features must be {expected}, got {format_value(features)}")
    return sorted(set(places))


def levels_of(X: Any, categorical: Sequence[int], count: int) -> list[Levels]:
    """Return the levels of each of so many columns, sorted, numbers before text."""
    levels = list[Levels]([None] * count)
    for place in categorical:
        levels[place] = distinct({level for level in _levels(X, place) if level is not None})
    return levels


def many_levels(levels: Sequence[Levels]) -> list[int]:
    """Return the positions of the columns that have too many levels for a column of each."""
    counts = np.array([len(names or ()) for names in levels], dtype=np.int64)
    dense = counts[(counts > FEW_LEVELS) & (counts <= MOST_LEVELS)]
    return np.flatnonzero(counts > (FEW_LEVELS if dense.sum() > MOST_TOGETHER else MOST_LEVELS)).tolist()


def coded(X: Any, levels: Sequence[Levels]) -> tuple[Any, list[str]]:
    """Return the table with the number of its level for each category, NaN for a missing one, -1 for one not known.

    A warning names a column with more than half of its rows unknown. `in_numbers` says what becomes of times and text,
    and returns the kinds.
    """
    if not hasattr(X, "iloc"):  # for scikit-learn to refuse
        return X, []
    categories = {place: known for place, known in enumerate(levels) if known is not None}
    X, kinds = in_numbers(X, categories)
    for place, known in categories.items():
        column = _levels(X, place)
        counts = Counter(level for level in column if level is not None)
        places = level_places(f"column {X.columns[place]} of X", counts, known)
        codes = [np.nan if level is None else places[level] for level in column]
        X.isetitem(place, np.array(codes, dtype=np.float64))
    return X, kinds


def indicators_of(x: Floats, levels: Sequence[Levels]) -> Floats:
    """Return column and value (m, 2) of all indicator columns: each level in use, and gaps (the value NaN).

    Columns of many levels get none. `x: (N, d)` are the rows to learn from, coded.
    """
    indicators, many = [], many_levels(levels)
    for place, column_levels in enumerate(levels):
        if place in many:
            continue
        values = np.unique(x[:, place])
        indicators += [(place, value) for value in values if column_levels is not None or np.isnan(value)]
    return np.array(indicators, dtype=np.float64).reshape(-1, 2)


def widened(x: Floats, levels: Sequence[Levels], indicators: Floats) -> Floats:
    """Return the columns of numbers (n, .), NaN where one is missing, then a column for each indicator."""
    numbers = x[:, [column_levels is None for column_levels in levels]]
    wide = np.empty((len(x), numbers.shape[1] + len(indicators)))
    wide[:, : numbers.shape[1]] = numbers
    for column, (place, value) in zip(wide.T[numbers.shape[1] :], indicators, strict=True):
        column[:] = np.isnan(x[:, int(place)]) if np.isnan(value) else x[:, int(place)] == value
    return wide


def pieces_of(x: Floats, weight: Floats, most: int) -> Floats:
    """Return the pieces of a piecewise-linear encoding (Gorishniy et al. 2022, section 3.2), see `Pieces`.

    A column is cut at its quantiles, into `most` pieces or fewer: one for 48 rows, with gaps or not, and all pieces
    together are at most 500, and half as many as rows.

    Columns `x: (N, d)` are standardised, NaN where a number is missing. Of the m pieces (m, 5) are returned: column,
    lower end, width, and the piece's mean and standard deviation over the rows by their weight (N,).
    """
    n, d = x.shape
    count = min(most, n // 48, min(500, n // 2) // max(d, 1))
    pieces = []
    for place in range(d if count > 1 else 0):
        known = np.flatnonzero(~np.isnan(x[:, place]))
        order = known[np.argsort(x[known, place], kind="stable")]
        if not len(order):
            continue
        cumulative = np.cumsum(weight[order])
        cuts = np.searchsorted(cumulative, cumulative[-1] * np.arange(1, count) / count)
        edges = np.unique(x[order[[0, *cuts, -1]], place])
        if len(edges) < 3:
            continue
        low, width = edges[:-1], np.diff(edges)
        values = ((np.nan_to_num(x[:, [place]]) - low) / width).clip(0, 1)
        mean = np.average(values, axis=0, weights=weight)
        deviation = np.sqrt(np.average((values - mean) ** 2, axis=0, weights=weight))
        pieces.append(np.column_stack([np.full(len(low), place), low, width, mean, deviation])[deviation > 0])
    return np.concatenate([np.empty((0, 5)), *pieces])


def _levels(X: Any, place: int) -> list[Level | None]:
    """Return the values of a column as levels, None where one is missing."""
    return [level_of(value) for value in X.iloc[:, place]]
