"""Frames of any library, with dates as days and text refused; others than pandas' are read by narwhals, if it is there.

scikit-learn's ecosystem reads frames the same way. What comes back is a frame of pandas, whose columns are of floats,
whole numbers, booleans, categories or objects.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np

from cmixup.errors import InputError, shown

DAY = np.timedelta64(1, "D")


def as_frame(X: Any) -> Any:
    """Return a frame of another library as pandas has it; arrays, sparse matrices and pandas' frames as they are.

    Raises:
        InputError: narwhals or pandas is missing, which reads the frame.
    """
    if hasattr(X, "iloc") or not any(
        hasattr(X, name) for name in ("columns", "__dataframe__", "__narwhals_dataframe__")
    ):
        return X
    try:
        import narwhals
        import pandas as pd
    except ImportError as error:
        kind = f"{type(X).__module__.partition('.')[0]} {type(X).__name__}"
        raise InputError(f"X is a frame of {kind}, which needs {error.name}: pip install narwhals pandas") from None
    frame = narwhals.from_native(X, eager_only=True)
    columns = {}
    for name in frame.columns:
        column = frame[name]
        if isinstance(column.dtype, narwhals.Categorical | narwhals.Enum):
            columns[name] = pd.Categorical(column.cast(narwhals.String).to_list())
        elif column.dtype.is_numeric():
            columns[name] = column.to_numpy()
        else:
            columns[name] = pd.Series(column.to_list(), dtype=None if column.dtype.is_temporal() else object)
            if column.dtype.is_temporal():
                columns[name] = pd.to_datetime(columns[name])
    return pd.DataFrame(columns)


def in_numbers(X: Any, categorical: Collection[int]) -> Any:
    """Return a table whose columns of dates are days since 1970, NaN where one is missing.

    Args:
        X: an array or a frame of pandas (n, d).
        categorical: positions of the columns that hold categories, which stay.

    Raises:
        InputError: a column of a frame holds text and is no category.
    """
    if not hasattr(X, "iloc"):
        kind = getattr(getattr(X, "dtype", None), "kind", "")
        return _days(np.asarray(X)) if kind == "M" else X
    found = X
    for place, name in enumerate(X.columns):
        if place in categorical:
            continue
        column = X.iloc[:, place]
        if getattr(column.dtype, "kind", "O") == "M":
            found = X.copy(deep=False) if found is X else found
            naive = column.dt.tz_convert("UTC").dt.tz_localize(None) if getattr(column.dtype, "tz", None) else column
            found.isetitem(place, _days(naive.to_numpy(dtype="datetime64[ns]")))
        elif (text := _text_of(column)) is not None:
            raise InputError(
                f"column {shown(str(name))} of X holds text, such as {shown(text)}: make it categories by "
                f'X[{str(name)!r}].astype("category") (polars: cast(pl.Categorical)), or name it in '
                "categorical_features"
            )
    return found


def check_numbers(y: Any) -> Any:
    """Return labels as they came.

    Raises:
        InputError: they hold text, even if it reads as numbers.
    """
    values = np.asarray(y)
    text = (
        next((v for v in values.ravel() if isinstance(v, str | bytes)), None) if values.dtype.kind in "OUST" else None
    )
    if text is not None:
        raise InputError(f"y must be numbers, got text such as {shown(str(text))}: y.astype(float) reads it as numbers")
    return y


def _days(values: Any) -> Any:
    """Return dates as days since 1970 in float64, NaN for none."""
    days = (values - np.datetime64("1970-01-01")) / DAY
    return np.where(np.isnat(values), np.nan, days)


def _text_of(column: Any) -> str | None:
    """Return the first text in a column of pandas that is no number; None if there is none."""
    if getattr(column.dtype, "kind", "O") not in "OUT" or str(column.dtype) == "category":
        return None
    for value in column:
        if isinstance(value, str):
            try:
                float(value)
            except ValueError:
                return value
    return None
