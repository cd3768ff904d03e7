"""Steps of a series: lengths, working days, months on any day, parts of a month, and evenly spaced numbers.

A step is a text: one of pandas such as "h", "B" or "MS"; "3M on 15", every third month about the 15th; "1M on 1,11,21",
several times a month; or the difference of numbers. A month's rows keep the days that they have.
"""

import re
from collections import Counter
from typing import Any

import numpy as np
import pandas as pd

from cmixup.errors import InputError

MONTHLY = re.compile(r"(\d+)M on ([\d,]+)")
LAST = 31  # day of a month: also the last one of shorter months
#: Steps of pandas with a row in each month.
MONTHS: dict[str, Any] = {"MS": pd.offsets.MonthBegin(), "ME": pd.offsets.MonthEnd(),
          "BMS": pd.offsets.BMonthBegin(), "BME": pd.offsets.BMonthEnd()}  # fmt: skip
LEAST_MONTH, LEAST_PART = pd.Timedelta(days=28), pd.Timedelta(days=5)
CURE = "; dataset.time=row counts rows as steps"
CLOSE = 0.01  # of a step of numbers: rounding


def step_of(times: pd.Index, source: str) -> str:
    """Return the most common step of `times`, sorted and different: of numbers, in a calendar, or a length."""
    if len(times) < 3:
        raise InputError(f"{source} has {len(times)} rows; a series needs 3 or more")
    if not isinstance(times, pd.DatetimeIndex):
        length = np.diff(times) / (median := float(np.median(np.diff(times))))
        is_step = abs(length - 1) < CLOSE
        if is_step.sum() > len(is_step) / 2:
            return f"{median * length[is_step].mean():.12g}"
        common = f"the most common one, {median:g}, is between {is_step.sum()} of {len(times)} rows"
        raise InputError(f"{source} has no regular step: {common}{CURE}")
    length, count = Counter(times[1:] - times[:-1]).most_common(1)[0]
    if length == pd.Timedelta(days=1) and len(times) > 5 and (times.day_of_week < 5).all():
        return "B"
    for unit, offset in MONTHS.items() if length >= LEAST_MONTH else ():
        if all(map(offset.is_on_offset, times)):
            return _name(f"{_months_between(times)}{unit}")
    is_even = ((times - times[0]) % length == pd.Timedelta(0)).all() and times.day.nunique() > 1
    if length >= LEAST_PART and not is_even and (step := _monthly(times)):
        return step
    if count <= len(times) / 2:
        common = f"the most common one, {length}, is between {count} of {len(times)} rows"
        raise InputError(f"{source} has no regular step: {common}{CURE}")
    days, rest = divmod(length, pd.Timedelta(days=1))
    return _name(length if rest else f"{days}D")


def _name(step: str | pd.Timedelta) -> str:
    return str(pd.tseries.frequencies.to_offset(step).freqstr)


def _months_between(times: pd.DatetimeIndex) -> int:
    """Return the most common number of months between two rows."""
    return int(np.bincount(np.diff(12 * times.year + times.month)).argmax())


def _monthly(times: pd.DatetimeIndex) -> str:
    """Return the step of one row or a few a month, on days of their own; nothing if that is none."""
    months, days, most = 12 * times.year + times.month, times.day, times.days_in_month.min()
    if len(set(months)) == len(times):
        return series_step(times, f"{_months_between(times)}M on {LAST}")
    if (days > most).any():  # the last days of months, which others do not have
        days = np.where((days > most) | times.is_month_end, LAST, days)
    days = np.unique(days)
    return f"1M on {','.join(map(str, days))}" if len(set(months)) > 2 and len(days) <= 6 else ""  # five-day periods


def series_step(times: Any, step: str) -> str:
    """Return the step of one of several series: one row a month on any day is on the day that most of its own have."""
    match = MONTHLY.fullmatch(step)
    if not match or "," in match[2]:
        return step
    return f"{match[1]}M on {np.bincount(np.where(times.is_month_end, LAST, times.day)).argmax()}"


def places(times: pd.Index, step: str) -> np.ndarray:
    """Return the place of each of sorted times on the steps from the first one on, `(n,)` int64; -1 for between two."""
    if match := MONTHLY.fullmatch(step):
        cycle, days = int(match[1]), np.array(match[2].split(","), dtype=np.int64)
        day = np.where(times.is_month_end, LAST, times.day) if LAST in days else times.day.to_numpy()
        day_place = abs(day[:, None] - days).argmin(axis=1)
        months, rest = np.divmod(np.asarray(12 * times.year + times.month) - 12 * times[0].year - times[0].month, cycle)
        return np.where(rest == 0, months * len(days) + day_place - day_place[0], -1)
    if not isinstance(times, pd.DatetimeIndex):
        exact = (times.to_numpy() - times[0]) / float(step)
        return np.where(abs(exact - np.round(exact)) < CLOSE, np.round(exact), -1).astype(np.int64)
    return pd.date_range(times[0], times[-1], freq=step).get_indexer(times)


def grid(first: Any, count: int, step: str) -> pd.Index:
    """Return `count` times from the first one on, a `pd.Timestamp` or a number."""
    if match := MONTHLY.fullmatch(step):
        days = np.array(match[2].split(","), dtype=np.int64)
        day = LAST if LAST in days and first.is_month_end else first.day
        cycle, day_place = np.divmod(np.arange(count) + abs(day - days).argmin(), len(days))
        months = first.to_period("M") + int(match[1]) * cycle
        starts = pd.PeriodIndex(months).to_timestamp()
        day_offset = np.minimum(days[day_place], starts.days_in_month) - 1
        return starts + pd.to_timedelta(day_offset, unit="D") + (first - first.normalize())
    if not isinstance(first, pd.Timestamp):
        numbers = first + float(step) * np.arange(count)
        return pd.Index(numbers.astype(np.int64) if (numbers == np.floor(numbers)).all() else numbers)
    return pd.date_range(first, periods=count, freq=step)


def periods_of(step: str) -> dict[str, int]:
    """Return the rows of the periods that a step is known to have: a day and a week, or a year."""
    if match := MONTHLY.fullmatch(step):
        return _integers({"year": 12 / int(match[1]) * len(match[2].split(","))})
    if not re.search("[A-Za-z]", step):  # of numbers
        return {}
    offset: Any = pd.tseries.frequencies.to_offset(step)
    epoch = pd.Timestamp(0)
    if isinstance(offset, pd.offsets.BusinessDay):
        return _integers({"week": 5.0})
    if step.lstrip("0123456789") in MONTHS:
        return _integers({"year": 12 / offset.n})
    return _integers({name: pd.Timedelta(days=n) / (epoch + offset - epoch) for name, n in (("day", 1), ("week", 7))})


def _integers(rows: dict[str, float]) -> dict[str, int]:
    return {name: int(count) for name, count in rows.items() if count > 1 and count == int(count)}


def text_of(time: pd.Timestamp | np.datetime64 | float) -> str:
    """Return a time as errors and notes write it, such as 2024-01-31 13:00; a number as it is."""
    if not isinstance(time, pd.Timestamp | np.datetime64):
        return f"{time:.12g}"
    text = str(pd.Timestamp(time))
    return text.rstrip("0") if "." in text else text.removesuffix(":00").removesuffix(" 00:00")
