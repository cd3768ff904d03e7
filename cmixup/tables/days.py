"""Dates, durations and times of day of every class as days: since 1970, long, and since midnight. Needs no pandas."""

import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cmixup.tables.levels import is_missing

DAY, EPOCH = np.timedelta64(1, "D"), np.datetime64("1970-01-01")
DATES, DURATIONS, TIMES = "dates", "durations", "times of day"
#: Seconds since 1970 that nanoseconds in 64 bits hold.
IN_NANOSECONDS = 9.2e9


def days_of(column: Any) -> tuple[NDArray[np.float64], str] | None:
    """Return a series of pandas as days in float64, NaN where one is missing, and what it holds; None for others.

    It may hold objects of one kind. Dates of a zone are taken at their moment, a period at its beginning.
    """
    if str(column.dtype).startswith("period"):
        column = column.dt.to_timestamp()
    kind = getattr(column.dtype, "kind", "O")
    if kind == "O":
        days = [(np.nan, "") if is_missing(value) else day_of(value) for value in column]
        kinds = {day and day[1] for day in days} - {""}
        return (np.array([day[0] for day in days if day]), str(kinds.pop())) if len(kinds) == 1 and all(days) else None
    if kind not in "Mm":
        return None
    zone = getattr(column.dtype, "tz", None) or getattr(getattr(column.dtype, "pyarrow_dtype", None), "tz", None)
    column = column.dt.tz_convert("UTC").dt.tz_localize(None) if zone else column
    column = (column.astype(f"{kind}8[us]") if "pyarrow" in str(column.dtype) else column).to_numpy()
    if kind == "m":
        return np.where(np.isnat(column), np.nan, column / DAY), DURATIONS
    seconds = column.astype("M8[s]")
    known = seconds[~np.isnat(seconds)].astype(np.int64)
    column = column.astype("M8[ns]") if (np.abs(known) < IN_NANOSECONDS).all() else column.astype("M8[us]")
    return np.where(np.isnat(column), np.nan, (column - EPOCH) / DAY), DATES


def day_of(value: Any) -> tuple[float, str] | None:
    """Return one date, duration, time of day or period as days, and its kind; None for another value."""
    value = value.to_timestamp() if hasattr(value, "to_timestamp") else value
    if isinstance(value, datetime.time):
        return (value.hour + (value.minute + (value.second + value.microsecond / 1e6) / 60) / 60) / 24, TIMES
    if isinstance(value, datetime.datetime) and value.tzinfo:
        value = value.astimezone(datetime.UTC).replace(tzinfo=None)
    if isinstance(value, np.datetime64 | datetime.date):
        return float((np.datetime64(value) - EPOCH) / DAY), DATES
    if isinstance(value, np.timedelta64 | datetime.timedelta):
        return float(np.timedelta64(value) / DAY), DURATIONS
    return None
