"""Frames of any library, with times as days and text refused; others than pandas' are read by narwhals.

scikit-learn's ecosystem reads frames the same way. The result is a frame of pandas with columns of floats, whole
numbers, booleans, categories or objects.
"""

import warnings
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from scipy.sparse import issparse

from cmixup.errors import InputError, format_value
from cmixup.sampling.inputs import Floats
from cmixup.tables.days import DATES, day_of, days_of
from cmixup.tables.levels import is_missing

#: The kind of a column without dates, durations and times of day.
NO_TIMES = "numbers"


def as_frame(X: Any) -> Any:
    """Return a frame of another library as pandas has it; arrays, sparse matrices and pandas' frames as they are."""
    if hasattr(X, "to_frame") and not hasattr(X, "columns"):
        raise InputError(
            f"X must be a table (n, d), got a {type(X).__name__} of {len(X)} values: X.to_frame() is a table of one "
            "column, and X.to_frame().T of one row"
        )
    if hasattr(X, "iloc") or not any(
        hasattr(X, name) for name in ("columns", "__dataframe__", "__narwhals_dataframe__")
    ):
        return X
    import narwhals
    import pandas as pd

    frame = narwhals.from_native(X, eager_only=True)
    columns = {}
    for name in frame.columns:
        column = frame[name]
        if isinstance(column.dtype, narwhals.Categorical | narwhals.Enum):
            columns[name] = pd.Categorical(column.cast(narwhals.String).to_list())
        elif column.dtype.is_integer() and column.is_null().any():
            columns[name] = pd.array(column.to_list(), dtype="Int64")
        elif column.dtype.is_numeric():
            columns[name] = column.to_numpy()
        else:
            columns[name] = pd.Series(column.to_list(), dtype=object)
            if isinstance(column.dtype, narwhals.Date | narwhals.Datetime):
                columns[name] = pd.to_datetime(columns[name])
    return pd.DataFrame(columns)


def as_array(name: str, values: Any) -> Any:
    """Return a tensor of real numbers, of any device and layout, with or without gradient, as an array.

    A frame that is not computed yet (LazyFrame) is computed, masked entries of an array are NaN, all else stays.
    """
    if type(values).__name__ == "LazyFrame":
        return values.collect()
    if isinstance(values, np.ma.MaskedArray):
        return np.ma.filled(values.astype(np.float64), np.nan)
    first = values[0] if isinstance(values, list | tuple) and values else values
    if (isinstance(first, Mapping) and not issparse(first)) or getattr(getattr(values, "dtype", None), "names", None):
        what = f"{type(values).__name__} of columns or rows by name"
        raise InputError(f"{name} must be an array or a frame, got a {what}: pd.DataFrame({name}) is a frame")
    if not isinstance(values, torch.Tensor):
        return np.asarray(values) if hasattr(values, "__array__") and not hasattr(values, "shape") else values
    if values.is_complex() or values.is_meta or values.is_nested:
        what = f"{'a nested tensor of ' * values.is_nested}{values.dtype} on {values.device}"
        raise InputError(f"{name} must be a tensor of real numbers with values, got {what}")
    values = values.detach().to("cpu")
    values = values if values.layout == torch.strided else values.to_dense()
    return (values.float() if values.is_floating_point() and values.itemsize < 4 else values).numpy()


def column_of(X: Any, place: int) -> Any:
    """Return a column of a frame or an array."""
    return X.iloc[:, place] if hasattr(X, "iloc") else np.asarray(X, dtype=object)[:, place]


def replaced(X: Any, columns: Mapping[int, Any]) -> Any:
    """Return a frame or an array with other columns at some positions."""
    if not columns:
        return X
    frame = hasattr(X, "iloc")
    X = X.copy(deep=False) if frame else np.array(X, dtype=object)
    for place, values in columns.items():
        if frame:
            X.isetitem(place, values)
        else:
            X[:, place] = values
    return X


def in_numbers(X: Any, categorical: Collection[int]) -> tuple[Any, list[str]]:
    """Return a table whose columns of dates, durations and times are days, NaN for gaps; and the kind of each column.

    A kind is as of `days_of`, or `NO_TIMES`. The columns at the positions `categorical` stay; another one of a frame
    that holds text raises `InputError`.
    """
    X = np.asarray(X) if isinstance(X, list | tuple) and np.ndim(X) == 2 else X
    kinds, found = [NO_TIMES] * (np.shape(X)[1] if np.ndim(X) == 2 else 0), dict[int, Any]()
    if not hasattr(X, "iloc"):
        kind = getattr(getattr(X, "dtype", None), "kind", "")
        times = days_of(np.asarray(X)) if kind and kind in "Mm" else None
        if times is not None:
            return times[0], [times[1]] * len(kinds)
        if kind != "O":
            return X, kinds
    dtypes, names = getattr(X, "dtypes", [None] * len(kinds)), getattr(X, "columns", range(len(kinds)))
    for place, (name, dtype) in enumerate(zip(names, dtypes, strict=True)):
        if place not in categorical and getattr(dtype, "kind", "O") not in "biuf":
            found[place], kinds[place] = _numbers(column_of(X, place), name)
    return replaced(X, found), kinds


def check_kinds(x: Floats, kinds: Sequence[str], fitted: Sequence[str], names: Sequence[object]) -> None:
    """Raise `InputError` for a column with values, of (n, d), that holds times where `fit` had none, or others."""
    for column, name, now, then in zip(x.T, names, kinds, fitted, strict=True):
        if now != then and not np.isnan(column).all():
            raise InputError(f"column {format_value(str(name))} of X must hold {then} as in fit, got {now}")


def _numbers(column: Any, name: Any) -> tuple[Any, str]:
    """Return a column of times as days, one of objects without values that NumPy has no number for, and its kind.

    Text that is no number raises `InputError`, and so does another object in a frame.
    """
    kind, frame = getattr(column.dtype, "kind", "O"), hasattr(column, "iloc")
    for value in column if kind in "OUT" and str(column.dtype) != "category" else ():
        if isinstance(value, str) and not _is_number(value):
            raise InputError(_advice(column, name, value))
    if (times := days_of(column)) is not None:
        return times
    if kind != "O":
        return column, NO_TIMES
    missing = [is_missing(value) for value in column]
    for value, unknown in zip(column, missing, strict=True):
        if frame and not (unknown or _is_number(value)):  # scikit-learn's error names no column
            raise InputError(f"column {format_value(str(name))} of X must hold numbers, got {format_value(value)}")
    fill = any(missing) and column.dtype == object
    return np.where(missing, np.nan, np.asarray(column, dtype=object)) if fill else column, NO_TIMES


def _advice(column: Any, name: Any, text: str) -> str:
    """Return the line on a column of text: how it becomes categories, or numbers that it is written for."""
    cure, place = "", f"X[{str(name)!r}]"
    if hasattr(column, "iloc"):
        from cmixup.tables.columns import read_column

        if form := read_column(column).form:
            cure = f"; as numbers or days it is as_numbers({place}, {form!r})[0] of cmixup.tables.columns"
    return (
        f"column {format_value(str(name))} of X holds text, such as {format_value(text)}: make it categories by "
        f'{place}.astype("category") (polars: cast(pl.Categorical)), or name it in categorical_features{cure}'
    )


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def as_labels(name: str, y: Any, *, warn: bool = False) -> Any:
    """Return labels (n,) or (n, d_y) as they came, durations as days; with `warn` a warning says so.

    Dates are refused, and text, even if it reads as numbers.
    """
    y = as_array(name, y)
    values = np.asarray(y)
    if not values.ndim or values.dtype.kind not in "OUSTMm":
        return y
    labels, kinds = np.array(values, dtype=object), set[str]()
    if (times := days_of(values)) is not None:
        labels, kinds = times[0], {times[1]}
    for place, value in np.ndenumerate(labels if times is None else ()):
        if isinstance(value, str | bytes):
            what = f"got text such as {format_value(str(value))}: {name}.astype(float) reads it as numbers"
            raise InputError(f"{name} must be numbers, {what}")
        if is_missing(value):
            labels[place] = np.nan
        elif (day := day_of(value)) is not None:
            labels[place] = day[0]
            kinds.add(day[1])
    if DATES in kinds:
        first = next(value for value in values.ravel() if not is_missing(value))
        cure = f"({name} - {name}.min()) / pd.Timedelta(days=1) counts days"
        raise InputError(f"{name} must be numbers, got dates such as {first}: {cure}")
    if kinds and warn:
        warnings.warn(f"{name} holds {kinds.pop()}: labels and predictions are in days", UserWarning, stacklevel=4)
    try:
        return labels.astype(np.float64)
    except (TypeError, ValueError):  # for scikit-learn to say what is wrong
        return labels
