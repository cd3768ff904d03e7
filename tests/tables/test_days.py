"""Times of every class are days; times as labels and values without meaning are refused."""

import datetime
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cmixup import InputError
from cmixup.sklearn import TabularRegressor
from cmixup.tables.days import days_of

N = 40
K = np.random.default_rng(0).integers(1, 300, N)
DATES, HOURS = np.datetime64("2020-01-01") + K, K * np.timedelta64(1, "h")
ZONES = [pd.Timestamp(day, tz=["Europe/Zurich", "UTC"][k % 2]) for k, day in enumerate(DATES)]
SINCE = (DATES - np.datetime64("1970-01-01")).astype(float)
BEFORE = np.array([moment.utcoffset().total_seconds() for moment in ZONES]) / 86400  # type: ignore[union-attr]
TIMES: dict[str, tuple[Any, np.ndarray]] = {
    "dates": (DATES, SINCE),
    "objects of dates": (pd.Series(DATES.astype(object), dtype=object), SINCE),
    "objects of both": (pd.Series([*DATES[:20].astype(object), *pd.Series(DATES[20:])], dtype=object), SINCE),
    "zones that differ": (pd.Series(ZONES, dtype=object), SINCE - BEFORE),
    "a zone": (pd.Series(DATES).dt.tz_localize("UTC").dt.tz_convert("Asia/Tokyo"), SINCE),
    "periods": (pd.Series(pd.PeriodIndex(DATES, freq="D")), SINCE),
    "beyond nanoseconds": (np.where(K > 200, np.datetime64("9999-12-31", "s"), DATES),
                           np.where(K > 200, 2932896, SINCE)),
    "durations": (pd.Series(HOURS), K / 24),
    "durations in seconds": (HOURS.astype("m8[s]"), K / 24),
    "objects of durations": (pd.Series(HOURS.astype("m8[us]").tolist(), dtype=object), K / 24),
    "times of day": (pd.Series([datetime.time(k % 24, 30) for k in K], dtype=object), (K % 24 + 0.5) / 24),
}  # fmt: skip
FRAME = pd.DataFrame({"a": np.random.default_rng(1).normal(size=N)})


def quick(**changes: Any) -> TabularRegressor:
    return TabularRegressor((4,), **{"members": 1, "epochs": 1, "bandwidth": 0, "random_state": 0, **changes})


@pytest.mark.filterwarnings("ignore:column when of X looks like an ID")
@pytest.mark.parametrize("gap", [False, True])
@pytest.mark.parametrize(("values", "days"), TIMES.values(), ids=TIMES)
def test_times_of_every_class_are_days(values: Any, days: np.ndarray, gap: bool) -> None:
    column = pd.Series(values)
    if gap:
        column, days = column.where(K > 50), np.where(K > 50, days, np.nan)
    converted = days_of(column)
    assert converted is not None
    np.testing.assert_allclose(converted[0], days, rtol=1e-12)
    x, y = FRAME.assign(when=column), FRAME["a"].to_numpy() ** 2
    expected = quick().fit(FRAME.assign(when=converted[0]), y).predict(FRAME.assign(when=converted[0]))
    np.testing.assert_array_equal(quick().fit(x, y).predict(x), expected)
    array = np.column_stack([FRAME["a"].to_numpy().astype(object), column.astype(object).to_numpy()])
    np.testing.assert_allclose(quick().fit(array, y).predict(array), expected, rtol=1e-6)


@pytest.mark.parametrize("frame", [False, True])
@pytest.mark.parametrize("values", [values for values, _ in TIMES.values()], ids=TIMES)
def test_times_as_labels_are_refused_with_advice(values: Any, frame: bool) -> None:
    y = pd.DataFrame({"a": values, "b": FRAME["a"]}) if frame else values
    with pytest.raises(InputError, match=r"y must be numbers, got times such as .*: \(y - y.min\(\)\) / pd"):
        quick().fit(FRAME, y)


def test_missing_values_that_numpy_cannot_compare() -> None:
    a = FRAME["a"].to_numpy()
    holes = np.where(K > 150, np.nan, a)
    frame, expected = (FRAME.assign(b=pd.Series(np.where(K > 150, gap, a), dtype=object)) for gap in (pd.NA, None))
    floats = FRAME.assign(b=holes)
    truth = quick().fit(floats, K).predict(floats)
    array = frame.to_numpy(dtype=object)
    for x in (frame, expected, array, array.tolist()):
        np.testing.assert_array_equal(quick().fit(x, K).predict(x), truth)
    for groups in (pd.array(["u", None] * 20, dtype="string"), np.array(["u", pd.NA] * 20, dtype=object)):
        with pytest.raises(InputError, match=r"groups must have no gaps, got .* in row 1"):
            quick().fit(FRAME, K, groups=groups)
    y = np.column_stack([a, a]).astype(object)
    y[3, 1] = pd.NA
    assert np.isfinite(quick().fit(FRAME, y).predict(FRAME)).all()
    with pytest.raises(ValueError, match="y contains NaN"):
        quick().fit(FRAME, pd.Series(np.where(K > 150, pd.NA, a), dtype=object))


def test_what_is_no_table_is_refused_by_name() -> None:
    model = quick().fit(FRAME, K)
    for use in (lambda x: quick().fit(x, K), model.predict):
        with pytest.raises(InputError, match=r"^X must be a table \(n, d\), got a Series of 40 values: X.to_frame\(\)"):
            use(FRAME["a"])
