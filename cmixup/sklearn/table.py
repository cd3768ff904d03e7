"""Tables as the rows that networks and trees take: columns checked, categories as numbers, everything standardised.

What a table may hide is said as warnings: leaking columns, row numbers and labels far outside.
"""

import warnings
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import _check_sample_weight, check_array, validate_data

from cmixup.errors import InputError, check_count
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
from cmixup.sklearn.frames import as_array, as_labels
from cmixup.sklearn.losses import fit_transform, transformed
from cmixup.sklearn.options import check_size
from cmixup.sklearn.rows import Rows, merged, moments, standardised
from cmixup.tables.checks import MIN_ROWS, far_rows, leaks, looks_like_id

NUMBERS: dict[str, Any] = {"dtype": np.float64, "ensure_all_finite": "allow-nan", "order": "C"}
#: Columns times outputs that are looked at, at most: a millisecond or two each.
MOST_LOOKS = 200


class Inputs(NamedTuple):
    """Rows without labels."""

    x: Floats  # (n, .) columns as they came but for those of many levels, NaN for gaps and the numbers of levels
    z: Floats  # (n, .) what networks take: standardised numbers and a column for each level and gap
    effects: Floats  # (M, n, E) what each member takes for the columns of many levels


class TableEstimator(BaseEstimator):
    """Reads tables: what `fit` has seen of columns and labels says how the rows of `predict` are read."""

    categorical_features: Any
    n_pieces: int
    target_transform: Any
    target_transform_: Any
    n_features_in_: int
    x_mean_: Floats
    x_scale_: Floats
    y_mean_: Floats
    y_scale_: Floats
    _levels: list[Levels]
    _one_dimensional: bool
    _indicators: Floats
    _effects: Floats
    _pieces: Floats

    def _read(self, X: Any, y: Any, sample_weight: Any, apart: Ints | None = None, group: Ints | None = None) -> Rows:
        """Return the different rows of a table, categories as numbers of their levels and labels transformed."""
        y, sample_weight = as_labels("y", y, warn=True), as_array("sample_weight", sample_weight)
        categorical = categorical_columns(self.categorical_features, X)
        self._levels = levels_of(X, categorical, np.shape(X)[1]) if categorical else []
        filled, gaps = _without_gaps(y)
        X, y = validate_data(
            self, coded(X, self._levels), filled, multi_output=True, y_numeric=True, ensure_min_samples=2, **NUMBERS
        )
        self._levels, self._one_dimensional = self._levels or [None] * X.shape[1], y.ndim == 1
        weight = _check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
        if not weight.any():
            raise InputError("Sample weights must contain at least one non-zero number.")
        labels = check_size("y", np.asarray(y, dtype=np.float64).reshape(len(y), -1))
        if gaps is not None:
            labels = np.where(gaps.reshape(labels.shape), np.nan, labels)
            _check_gaps(labels, weight)
        names = getattr(self, "feature_names_in_", range(X.shape[1]))
        warn_of_traps(check_size("X", X), np.where(weight[:, None] > 0, labels, np.nan), self._levels, names)
        rows = merged(X, labels, weight, apart, group)
        self.target_transform_ = fit_transform(self.target_transform, rows.y)
        return replace(rows, y=transformed(self.target_transform_, rows.y))

    def _with_validation(self, rows: Rows, X_val: Any, y_val: Any) -> Rows:
        """Return rows with those of `X_val` behind them, each of weight 1."""
        X_val, y_val = as_array("X_val", X_val), as_labels("y_val", y_val)
        try:
            if any(levels is not None for levels in self._levels):
                validate_data(self, X_val, reset=False, skip_check_array=True)
            x = check_size("X_val", validate_data(self, coded(X_val, self._levels), reset=False, **NUMBERS))
        except (TypeError, ValueError, IndexError) as error:
            raise InputError(f"X_val must have rows, and the columns of X: {error}") from None
        outputs = () if self._one_dimensional else (rows.y.shape[1],)
        finite: Any = "allow-nan" if outputs > (1,) else True
        try:
            y = check_array(y_val, ensure_2d=False, dtype=np.float64, ensure_all_finite=finite, input_name="y_val")
        except (TypeError, ValueError) as error:
            raise InputError(f"y_val must be labels of {len(x)} rows: {error}") from None
        if y.shape != (len(x), *outputs):
            raise InputError(f"y_val must have shape {(len(x), *outputs)} as X_val and y, got {y.shape}")
        y = transformed(self.target_transform_, check_size("y_val", y.reshape(len(x), -1)), "y_val")
        if (empty := np.isnan(y).all(axis=1)).any():
            raise InputError(f"y_val must have a label in each row, got none in row {int(empty.argmax())}")
        weight = np.concatenate([rows.weight, np.ones(len(x))])
        return Rows(np.concatenate([rows.x, x]), np.concatenate([rows.y, y]), weight)

    def _encoded(self, rows: Rows) -> Rows:
        """Fit to rows how inputs and labels become those of the networks, and return them as such."""
        self._indicators = indicators_of(rows.x, self._levels)
        x = widened(rows.x, self._levels, self._indicators)
        self.x_mean_, self.x_scale_ = moments(x, rows.weight)
        self.y_mean_, self.y_scale_ = moments(rows.y, rows.weight)
        x = standardised(x, self.x_mean_, self.x_scale_)
        self._pieces = pieces_of(x[:, : self._levels.count(None)], rows.weight, check_count("n_pieces", self.n_pieces))
        return self._standardised(rows)

    def _standardised(self, rows: Rows) -> Rows:
        """Return rows as the networks take them, with labels in standard deviations."""
        y = standardised(rows.y, self.y_mean_, self.y_scale_)
        return Rows(self._columns_of(rows.x), y, rows.weight, rows.apart)

    def _inputs(self, X: Any) -> Inputs:
        """Return rows as networks and trees take them."""
        X = as_array("X", X)
        if all(levels is None for levels in self._levels):
            return self._inputs_of(check_size("X", validate_data(self, coded(X, self._levels), reset=False, **NUMBERS)))
        validate_data(self, X, reset=False, skip_check_array=True)
        x = coded(X, self._levels)
        if hasattr(x, "iloc") and all(isinstance(dtype, np.dtype) and dtype.kind in "biuf" for dtype in x.dtypes):
            x = x.to_numpy(np.float64)  # scikit-learn looks at each column of a frame
        return self._inputs_of(check_size("X", check_array(x, estimator=self, input_name="X", **NUMBERS)))

    def _inputs_of(self, x: Floats) -> Inputs:
        """Return columns (n, d) that are numbers already as networks and trees take them."""
        effects = looked_up(self._effects, places_of_levels(x, self._levels)[0])
        return Inputs(np.delete(x, many_levels(self._levels), axis=1), self._columns_of(x), effects)

    def _columns_of(self, x: Floats) -> Floats:
        """Return the standardised numbers of columns (n, d), and a column for each level and gap."""
        wide = widened(x, self._levels, self._indicators)
        return np.nan_to_num(standardised(wide, self.x_mean_, self.x_scale_))


def _without_gaps(y: Any) -> tuple[Any, np.ndarray | None]:
    """Return labels with 0 where one of several outputs is missing, and which these are; None where none is."""
    try:
        values = np.array(y.to_numpy(dtype=np.float64, na_value=np.nan) if hasattr(y, "iloc") else y, dtype=np.float64)
    except (TypeError, ValueError, RuntimeError):  # for scikit-learn to say what is wrong
        return y, None
    gaps = np.isnan(values)
    return (np.where(gaps, 0.0, values), gaps) if values.ndim == 2 and values.shape[1] > 1 and gaps.any() else (y, None)


def _check_gaps(labels: Floats, weight: Floats) -> None:
    """Raise `InputError` unless each row of weight has a label, each output one, and some output two."""
    known = ~np.isnan(labels) & (weight > 0)[:, None]
    empty = ~known.any(axis=1) & (weight > 0)
    if empty.any():
        raise InputError(f"y must have a label in each row, got none in row {int(empty.argmax())}")
    counts = known.sum(axis=0)
    if not counts.all():
        raise InputError(f"y must have a label of each output, got none of output {int(counts.argmin())}")
    if counts.max() < 2:
        raise InputError(f"y must have an output that two rows have, got one label of each of {len(counts)} outputs")


def warn_of_traps(x: Floats, y: Floats, levels: Sequence[Levels], names: Sequence[object]) -> None:
    """Warn of what `cmixup.tables.checks` finds in coded columns (N, d), a line each; nothing is left out for it."""
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
        elif d > 1 and levels[place] is None and looks_like_id(column):
            _warn(f"{name} looks like an ID (nearly as many whole numbers as rows): leave it out if it numbers them")
    for labels in y.T:
        if rows := far_rows(labels, range(n)):
            _warn(f"y lies far outside in rows {rows}: fix them if these are mistakes, or fit its logarithm")


def _warn(text: str) -> None:
    warnings.warn(text, UserWarning, stacklevel=5)  # of the caller of `fit`
