"""Frames of any library, with dates as days and text refused; others than pandas' are read by narwhals, if it is there.

scikit-learn's ecosystem reads frames the same way. What comes back is a frame of pandas, whose columns are of floats,
whole numbers, booleans, categories or objects.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import torch

from cmixup.errors import InputError, format_value

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
        elif column.dtype.is_integer() and column.is_null().any():
            columns[name] = pd.array(column.to_list(), dtype="Int64")
        elif column.dtype.is_numeric():
            columns[name] = column.to_numpy()
        else:
            columns[name] = pd.Series(column.to_list(), dtype=None if column.dtype.is_temporal() else object)
            if column.dtype.is_temporal():
                columns[name] = pd.to_datetime(columns[name])
    return pd.DataFrame(columns)


def take_rows(X: Any, rows: Any, changed: Any) -> Any:
    """Return rows of a frame of another library than pandas, with other values in some columns, in the frame's types.

    Args:
        X: the frame (n, d).
        rows: (m,) which rows.
        changed: a frame of pandas with m rows of some of its columns: numbers or dates, a missing one as pandas has it.
    """
    import narwhals

    frame = narwhals.from_native(X, eager_only=True)
    new = {}
    for name in changed.columns:
        values, missing = changed[name].tolist(), changed[name].isna()
        filled = [None if gone else value for value, gone in zip(values, missing, strict=True)]
        dtype = frame[name].dtype
        at_first = None if dtype.is_temporal() else dtype
        new[name] = narwhals.new_series(name, filled, at_first, backend=frame.implementation).cast(dtype)
    return frame[rows.tolist()].with_columns(**new).to_native()


def like_labels(y: Any, values: Any) -> Any | None:
    """Return labels (n,) or (n, d_y) as a series or frame of the library of `y`; None for pandas, arrays and lists."""
    if hasattr(y, "iloc") or isinstance(y, np.ndarray | list | tuple):
        return None
    try:
        import narwhals
    except ImportError:
        return None
    given = narwhals.from_native(y, eager_only=True, allow_series=True, pass_through=True)
    if given is y:
        return None
    if not hasattr(given, "columns"):
        return narwhals.new_series(given.name, values, backend=given.implementation).to_native()
    columns = dict(zip(given.columns, values.T, strict=True))
    return narwhals.from_dict(columns, backend=given.implementation).to_native()


def as_array(name: str, values: Any) -> Any:
    """Return a tensor of PyTorch, of any device and layout, with or without gradient, as an array; others as they are.

    Raises:
        InputError: a tensor of complex numbers, or one without values.
    """
    if not isinstance(values, torch.Tensor):
        return values
    if values.is_complex() or values.is_meta:
        raise InputError(f"{name} must be a tensor of real numbers with values, got {values.dtype} on {values.device}")
    values = values.detach().to("cpu")
    values = values if values.layout == torch.strided else values.to_dense()
    return (values.float() if values.is_floating_point() and values.itemsize < 4 else values).numpy()


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
        return days_of(np.asarray(X)) if kind == "M" else X
    frame = X
    for place, name in enumerate(X.columns):
        if place in categorical:
            continue
        column = X.iloc[:, place]
        if getattr(column.dtype, "kind", "O") == "M":
            frame = X.copy(deep=False) if frame is X else frame
            frame.isetitem(place, days_of(column))
        elif (text := _text_of(column)) is not None:
            raise _refused(name, text, "categorical_features")
    return frame


def check_text(X: Any, categorical: Collection[int]) -> None:
    """Check that no other column than the categories holds text, not even text that reads as numbers.

    Args:
        X: an array or a frame of pandas (n, d).
        categorical: positions of the columns that hold categories.

    Raises:
        InputError: one does; the message names it and the remedy.
    """
    for place in range(X.shape[1]):
        column = X.iloc[:, place] if hasattr(X, "iloc") else X[:, place]
        if place not in categorical and (text := _text_of(column, any_text=True)) is not None:
            raise _refused(X.columns[place] if hasattr(X, "iloc") else place, text, "categorical")


def _refused(name: Any, text: str, option: str) -> InputError:
    """Return the error that a column holds text."""
    return InputError(
        f"column {format_value(str(name))} of X holds text, such as {format_value(text)}: make it categories by "
        f'X[{str(name)!r}].astype("category") (polars: cast(pl.Categorical)), or name it in {option}'
    )


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
        raise InputError(
            f"y must be numbers, got text such as {format_value(str(text))}: y.astype(float) reads it as numbers"
        )
    return y


def days_of(column: Any) -> Any:
    """Return a column of dates (n,) of pandas or NumPy as days since 1970 in float64, NaN where one is missing."""
    if hasattr(column, "iloc"):
        naive = column.dt.tz_convert("UTC").dt.tz_localize(None) if getattr(column.dtype, "tz", None) else column
        column = naive.to_numpy(dtype="datetime64[ns]")
    return np.where(np.isnat(column), np.nan, (column - np.datetime64("1970-01-01")) / DAY)


def dates_like(column: Any, days: Any) -> Any:
    """Return days since 1970 (m,) as dates of the kind of a column; whole days where the column has only these."""
    known = days_of(column)
    if np.array_equal(known, np.rint(known), equal_nan=True):
        days = np.rint(days)
    unit: Any = column.dt.unit if hasattr(column, "iloc") else np.datetime_data(column.dtype)[0]
    ticks = np.rint(np.nan_to_num(days) * (DAY / np.timedelta64(1, unit))).astype(np.int64)
    dates = np.where(np.isnan(days), np.datetime64("NaT", unit), ticks.astype(f"M8[{unit}]"))
    if not hasattr(column, "iloc"):
        return dates
    naive = type(column)(dates)
    return naive.dt.tz_localize("UTC").dt.tz_convert(column.dtype.tz) if getattr(column.dtype, "tz", None) else naive


def _text_of(column: Any, *, any_text: bool = False) -> str | None:
    """Return the first text in a column that is no number, or any text; None if there is none."""
    if getattr(column.dtype, "kind", "O") not in "OUT" or str(column.dtype) == "category":
        return None
    for value in column:
        if isinstance(value, str):
            if any_text:
                return value
            try:
                float(value)
            except ValueError:
                return value
    return None
