"""Tables of any kind as frames of pandas, with times as days and text refused; narwhals reads those of other libraries.

Columns hold floats, whole numbers, booleans, categories or objects.
"""

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from scipy.sparse import issparse

from cmixup.errors import InputError, format_value
from cmixup.sampling.inputs import Floats
from cmixup.tables.days import day_of, days_of
from cmixup.tables.levels import is_missing

#: The kind of a column without dates, durations and times of day.
NO_TIMES = "numbers"


def as_frame(X: Any) -> Any:
    """Return a table as a frame of pandas; what is none, or has no column, as it is, for scikit-learn to refuse."""
    import pandas as pd

    if hasattr(X, "to_frame") and not hasattr(X, "columns"):
        raise InputError(
            f"X must be a table (n, d), got a {type(X).__name__} of {len(X)} values: X.to_frame() is a table of one "
            "column, and X.to_frame().T of one row"
        )
    if hasattr(X, "iloc"):
        return X
    if any(hasattr(X, name) for name in ("columns", "__dataframe__", "__narwhals_dataframe__")):
        import narwhals

        columns = list(narwhals.from_native(X, eager_only=True).iter_columns())
        levels = [c.name for c in columns if isinstance(c.dtype, narwhals.Categorical | narwhals.Enum)]
        return pd.DataFrame({c.name: c.to_numpy() for c in columns}).astype(dict.fromkeys(levels, "category"))
    array = X.toarray() if issparse(X) else np.asarray(X)
    return pd.DataFrame(array) if array.ndim == 2 and array.shape[1] else X


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
        problem = f"{type(values).__name__} of columns or rows by name"
        raise InputError(f"{name} must be an array or a frame, got a {problem}: pd.DataFrame({name}) is a frame")
    if not isinstance(values, torch.Tensor):
        return np.asarray(values) if hasattr(values, "__array__") and not hasattr(values, "shape") else values
    if values.is_complex() or values.is_meta or values.is_nested:
        problem = f"{'a nested tensor of ' * values.is_nested}{values.dtype} on {values.device}"
        raise InputError(f"{name} must be a tensor of real numbers with values, got {problem}")
    values = values.detach().to("cpu")
    values = values if values.layout == torch.strided else values.to_dense()
    return (values.float() if values.is_floating_point() and values.itemsize < 4 else values).numpy()


def in_numbers(X: Any, categorical: Collection[int]) -> tuple[Any, list[str]]:
    """Return a frame whose columns of dates, durations and times are days, NaN for gaps; and the kind of each column.

    A kind is as of `days_of`, or `NO_TIMES`. The columns at the positions `categorical` stay; another one that holds
    text raises `InputError`.
    """
    X, kinds = X.copy(deep=False), [NO_TIMES] * X.shape[1]
    for place, (name, dtype) in enumerate(zip(X.columns, X.dtypes, strict=True)):
        if str(dtype).startswith("Sparse"):  # scikit-learn takes a frame of nothing else for a sparse matrix
            X.isetitem(place, X.iloc[:, place].sparse.to_dense())
        if place not in categorical and getattr(dtype, "kind", "O") not in "biuf":
            values, kinds[place] = _numbers(X.iloc[:, place], name)
            X.isetitem(place, values)
    return X, kinds


def check_kinds(x: Floats, kinds: Sequence[str], fitted_kinds: Sequence[str], names: Sequence[object]) -> None:
    """Raise `InputError` for a column with values, of (n, d), that holds times where `fit` had none, or others."""
    for column, name, kind, fitted_kind in zip(x.T, names, kinds, fitted_kinds, strict=True):
        if kind != fitted_kind and not np.isnan(column).all():
            raise InputError(f"column {format_value(str(name))} of X must hold {fitted_kind} as in fit, got {kind}")


def _numbers(column: Any, name: Any) -> tuple[Any, str]:
    """Return a column of times as days, one of objects without values that NumPy has no number for, and its kind.

    Text that is no number raises `InputError`, and so does another object in a column with a name.
    """
    kind = getattr(column.dtype, "kind", "O")
    for value in column if kind in "OUT" and str(column.dtype) != "category" else ():
        if isinstance(value, str) and not _is_number(value):
            problem = f"column {format_value(str(name))} of X holds text, such as {format_value(value)}"
            cure = f'make it categories by X[{name!r}].astype("category") (polars: cast(pl.Categorical)), or '
            raise InputError(f"{problem}: {cure * isinstance(name, str)}name it in categorical_features")
    if (times := days_of(column)) is not None:
        return times
    if kind not in "OUT":
        return column, NO_TIMES
    missing = [is_missing(value) for value in column]
    for value, unknown in zip(column, missing, strict=True):
        if isinstance(name, str) and not (unknown or _is_number(value)):  # scikit-learn's error names no column
            raise InputError(f"column {format_value(name)} of X must hold numbers, got {format_value(value)}")
    return np.where(missing, np.nan, np.asarray(column, dtype=object)) if any(missing) else column, NO_TIMES


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except (TypeError, ValueError):
        return False
    return True


def as_labels(name: str, y: Any) -> Any:
    """Return labels (n,) or (n, d_y) as an array, with NaN for every kind of gap.

    Dates, durations and times of day are refused, and so is text, even if it reads as numbers.
    """
    y = as_array(name, y)
    values = np.asarray(y)
    if not values.ndim or values.dtype.kind not in "OUSTMm":
        return values if values.ndim else y
    labels = np.array(values, dtype=object)
    for place, value in np.ndenumerate(values):
        if isinstance(value, str | bytes):
            problem = f"got text such as {format_value(str(value))}: {name}.astype(float) reads it as numbers"
            raise InputError(f"{name} must be numbers, {problem}")
        if is_missing(value):
            labels[place] = np.nan
        elif day_of(value) is not None:
            cure = f"({name} - {name}.min()) / pd.Timedelta(days=1) counts days"
            raise InputError(f"{name} must be numbers, got times such as {value}: {cure}")
    try:
        return labels.astype(np.float64)
    except (TypeError, ValueError):  # for scikit-learn to say what is wrong
        return labels
