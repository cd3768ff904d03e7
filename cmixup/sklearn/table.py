"""Tables as the rows that networks and trees take: columns checked, categories as numbers, everything standardised.

Warnings name the problems of a table: leaking columns, row numbers and labels far outside.
"""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils.validation import _check_sample_weight, check_array, validate_data

from cmixup.errors import InputError, check_count
from cmixup.inputs.spread import is_new, varies, warn_of_new
from cmixup.sampling import inputs
from cmixup.sampling.inputs import Floats, Ints
from cmixup.sklearn.columns import (
    Levels,
    categorical_columns,
    coded,
    indicators_of,
    levels_of,
    many_levels,
    pieces_of,
    widened,
)
from cmixup.sklearn.effects import looked_up, places_of_levels
from cmixup.sklearn.frames import NO_TIMES, as_array, as_frame, as_labels, check_kinds
from cmixup.sklearn.options import check_size
from cmixup.sklearn.rows import Rows, merged, moments, standardised
from cmixup.sklearn.transforms import Transform
from cmixup.tables.checks import MIN_ROWS, far_rows, leaks, looks_like_id

NUMBERS: dict[str, Any] = {"dtype": np.float64, "ensure_all_finite": "allow-nan", "order": "C"}
#: Columns times outputs that are looked at, at most: a millisecond or two each.
MOST_LOOKS = 200
#: A level or gap of less weight than this share of a mean row counts as absent: its column would be huge and untrained.
LEAST_WEIGHT = 0.01


class Inputs(NamedTuple):
    """Rows without labels."""

    x: Floats  # (n, .) columns as they came but for those of many levels, NaN for gaps and the numbers of levels
    z: Floats  # (n, .) inputs of networks: standardised numbers and a column for each level and gap
    effects: Floats  # (M, n, E) inputs of each member for the columns of many levels
    given: Any  # (n, d) the rows as they were given, which a regressor of the user takes


@dataclass
class Table:
    """What `fit` has seen of columns and labels: how the rows of `predict` are read, and outputs become labels."""

    levels: list[Levels]  # of each column
    one_dimensional: bool  # whether labels came as (n,)
    transform: Transform  # of labels
    indicators: Floats  # (m, 2) see `indicators_of`
    x_mean: Floats  # (D,) moments of columns, see `moments`
    x_scale: Floats
    y_mean: Floats  # (d_y,) those of labels
    y_scale: Floats
    pieces: Floats  # (p, 5) see `pieces_of`
    effects: Floats  # (M, S, 2 d_y) each member's table, see `fit_effects`
    kinds: list[str]  # the kind of each column, see `in_numbers`
    constant: Floats  # (d,) the value of each column that does not vary, NaN for those that do

    @property
    def unit(self) -> float:
        """One standard deviation in the unit of the argument `bandwidth`."""
        return float(self.y_scale[0]) if len(self.y_scale) == 1 and self.y_scale[0] > 0 else 1.0

    def deviations(self, labels: Floats) -> Floats:
        """Return labels (..., d_y) in fitted units as deviations."""
        return standardised(labels, self.y_mean, self.y_scale)

    def inputs(self, estimator: Any, X: Any) -> Inputs:
        """Return rows as networks and trees take them."""
        X, names = as_array("X", X), _names(estimator)
        if len(np.shape(X)) != 1:  # other shapes are refused below, by name
            validate_data(estimator, X, reset=False, skip_check_array=True)
        x, kinds = coded(as_frame(X), self.levels)
        if hasattr(x, "iloc") and all(isinstance(dtype, np.dtype) and dtype.kind in "biuf" for dtype in x.dtypes):
            x = x.to_numpy(np.float64)  # scikit-learn looks at each column of a frame
        x = check_array(x, estimator=estimator, input_name="X", **NUMBERS)
        check_kinds(check_size("X", x), kinds, self.kinds, names)
        constant = np.flatnonzero(~np.isnan(self.constant))
        new = constant[is_new(x[:, constant], self.constant[constant])]
        warn_of_new([f"column {names[place]}" for place in new], "X")
        return self.inputs_of(settled(x, self.constant), X)

    def inputs_of(self, x: Floats, given: Any = None) -> Inputs:
        """Return columns (n, d) that are numbers already as networks and trees take them."""
        effects = looked_up(self.effects, places_of_levels(x, self.levels)[0])
        return Inputs(self.for_trees(x), self.columns_of(x), effects, given)

    def for_trees(self, x: Floats) -> Floats:
        """Return the columns (n, .) that trees take as they came: all but those of many levels."""
        return np.delete(x, many_levels(self.levels), axis=1)

    def columns_of(self, x: Floats) -> Floats:
        """Return the standardised numbers of columns (n, d), and a column for each level and gap."""
        wide = widened(x, self.levels, self.indicators)
        return np.nan_to_num(standardised(wide, self.x_mean, self.x_scale), copy=False)

    def by_label(self, values: Any) -> Any:
        """Return outputs `(..., d_y q)` as `(..., d_y, q)`."""
        return values.reshape(*values.shape[:-1], len(self.y_mean), values.shape[-1] // len(self.y_mean))

    def in_label_units(self, by_label: Floats, *, infinite: bool = False) -> Floats:
        """Return outputs `(..., d_y, q)` in deviations as labels in their own units, see `Transform.back`."""
        return self.transform.back(by_label * self.y_scale[:, None] + self.y_mean[:, None], infinite=infinite)

    def shaped(self, labels: Floats) -> Floats:
        """Return labels (n, d_y, ...) without the axis of outputs where they came so."""
        return labels[:, 0] if self.one_dimensional else labels


def fit_table(estimator: Any, X: Any, y: Any, sample_weight: Any, **apart: Ints | None) -> tuple[Table, Rows, Ints]:
    """Return the table of `fit`, without effects, and its different rows: numbers of levels, transformed labels.

    Rows are kept `apart`, and the place of each given row is returned, as in `merged`.
    """
    y, sample_weight = as_labels("y", y), as_array("sample_weight", sample_weight)
    X = as_frame(X)
    categorical = categorical_columns(estimator.categorical_features, X)
    levels = levels_of(X, categorical, np.shape(X)[1]) if categorical else []
    several_outputs = isinstance(y, np.ndarray) and y.ndim == 2 and y.shape[1] > 1 and y.dtype.kind == "f"
    gaps = np.isnan(y) if several_outputs else np.zeros(1, dtype=bool)
    X, kinds = coded(X, levels)
    filled = np.where(gaps, 0.0, y) if gaps.any() else y
    X, y = validate_data(estimator, X, filled, multi_output=True, y_numeric=True, ensure_min_samples=2, **NUMBERS)
    levels = levels or [None] * X.shape[1]
    weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    if not weight.any():
        raise InputError("Sample weights must contain at least one non-zero number.")
    labels = check_size("y", np.asarray(y, dtype=np.float64).reshape(len(y), -1))
    if gaps.any():
        labels = np.where(gaps, np.nan, labels)
        inputs.as_labels("y", np.where(weight[:, None] > 0, labels, 0.0), gaps=True)
        inputs.check_common("y", known := labels[weight > 0])
        if (empty := np.isnan(known).all(axis=0)).any():
            raise InputError(f"y must have a label of each output, got none of output {int(empty.argmax())}")
    if not weight.all():
        X, levels = kept_levels(X, levels, weight > 0)
    weighted_rows = check_size("X", X)[weight > 0]
    low, high = np.fmin.reduce(weighted_rows, axis=0), np.fmax.reduce(weighted_rows, axis=0)
    constant = np.where(varies(low, high, len(X)), np.nan, low)
    X, weighted = settled(X, constant), np.where(weight[:, None] > 0, labels, np.nan)
    warn_of_traps(X, weighted, levels, _names(estimator), [kind != NO_TIMES for kind in kinds])
    rows, place = merged(X, labels, weight, **apart)
    transform = Transform.fit(estimator.target_transform, rows.y)
    rows = replace(rows, y=transform.apply(rows.y))
    indicators = indicators_of(rows.x, levels)
    wide = widened(rows.x, levels, indicators)
    x_stats, y_stats, count = moments(wide, rows.weight), moments(rows.y, rows.weight), levels.count(None)
    x_stats[1][count:] *= x_stats[1][count:] ** 2 * (place >= 0).sum() > LEAST_WEIGHT
    numbers = standardised(wide[:, :count], x_stats[0][:count], x_stats[1][:count])
    n_pieces = check_count("n_pieces", estimator.n_pieces)
    pieces, no_effects = pieces_of(numbers, rows.weight, n_pieces), np.empty((0, 0, 0))
    table = Table(levels, y.ndim == 1, transform, indicators, *x_stats, *y_stats, pieces, no_effects, kinds, constant)
    return table, rows, place


def kept_levels(x: Floats, levels: Sequence[Levels], mask: Any) -> tuple[Floats, list[Levels]]:
    """Return coded columns (n, d) and their levels without those that only rows outside the `mask` have."""
    x, levels = x.copy(), list(levels)
    for place, names in enumerate(levels):
        if names is not None:
            codes = np.unique(x[mask & ~np.isnan(x[:, place]), place])
            levels[place] = [names[int(code)] for code in codes]
            x[:, place] = np.where(np.isnan(x[:, place]), np.nan, np.searchsorted(codes, x[:, place]))
    return x, levels


def settled(x: Floats, constant: Floats) -> Floats:
    """Return columns (n, d) with the value that those of `Table.constant` had in training; gaps stay."""
    return x if np.isnan(constant).all() else np.where(np.isnan(constant) | np.isnan(x), x, constant)


def _names(estimator: Any) -> Sequence[object]:
    """Return the names of the columns, or their positions."""
    names: Sequence[object] = getattr(estimator, "feature_names_in_", range(estimator.n_features_in_))
    return names


def warn_of_traps(
    x: Floats, y: Floats, levels: Sequence[Levels], names: Sequence[object], times: Sequence[bool]
) -> None:
    """Warn of the problems that `cmixup.tables.checks` finds in coded columns (N, d), a line each; all columns stay.

    Columns of `times` number no rows.
    """
    n, d = x.shape
    if n < MIN_ROWS or d * y.shape[1] > MOST_LOOKS:
        return
    columns = dict(enumerate(x.T))
    leaked = leaks(columns, y, [place for place, column_levels in enumerate(levels) if column_levels is not None])
    for place, column in columns.items():
        name = f"column {names[place]} of X"
        if place in leaked:
            _warn(f"{name} alone predicts y nearly (rank correlation {leaked[place][1]:.3f}): leave it out if it is "
                  "known only once y is")  # fmt: skip
        elif d > 1 and levels[place] is None and not times[place] and looks_like_id(column):
            _warn(f"{name} looks like an ID (nearly as many whole numbers as rows): leave it out if it numbers them")
    for labels in y.T:
        if rows := far_rows(labels, range(n)):
            _warn(f"y lies far outside in rows {rows}: fix them if these are mistakes, or fit its logarithm")


def _warn(text: str) -> None:
    warnings.warn(text, UserWarning, stacklevel=5)  # of the caller of `fit`
