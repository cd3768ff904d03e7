"""Frames of other libraries, dates, text, and labels that are text."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest

from cmixup.errors import InputError
from cmixup.sklearn import CMixupRegressor
from cmixup.sklearn.frames import as_frame, in_numbers

N = 60
RNG = np.random.default_rng(0)
SIZE, KIND = RNG.normal(size=N), RNG.choice(["a", "b"], N)
DAYS = np.datetime64("2024-01-01") + RNG.integers(0, 300, N)
Y = SIZE + (KIND == "a") * 3 + (DAYS - DAYS.min()).astype(float) / 100
FRAME = pd.DataFrame({"size": SIZE, "kind": pd.Categorical(KIND), "day": DAYS})


def quick() -> CMixupRegressor:
    return CMixupRegressor(members=2, epochs=2, bandwidth=0, random_state=0, hidden_layer_sizes=(8,))


def test_dates_are_days_since_1970_and_gaps_nan() -> None:
    dates = np.array(["1970-01-02", "NaT", "2024-01-01T12:00"], dtype="datetime64[ns]")
    frame = pd.DataFrame({"plain": dates, "there": pd.to_datetime(dates).tz_localize("UTC").tz_convert("Asia/Tokyo")})
    expected = np.array([1.0, np.nan, 19723.5])
    found = in_numbers(frame, [])
    for name in frame:
        np.testing.assert_array_equal(found[name], expected)
    np.testing.assert_array_equal(in_numbers(dates[:, None], [])[:, 0], expected)
    assert frame["plain"].dtype.kind == "M"  # the given one stays
    counted = FRAME.assign(day=in_numbers(FRAME, [1])["day"])
    np.testing.assert_array_equal(quick().fit(FRAME, Y).predict(FRAME), quick().fit(counted, Y).predict(counted))


def test_a_polars_frame_is_the_same_as_one_of_pandas() -> None:
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame({"size": SIZE, "kind": pl.Series(KIND, dtype=pl.Categorical), "day": DAYS})
    frame = frame.with_columns(size=pl.when(pl.int_range(N) == 3).then(None).otherwise(pl.col("size")))
    theirs = FRAME.assign(size=np.where(np.arange(N) == 3, np.nan, SIZE))
    model, expected = quick().fit(frame, pl.Series(Y)), quick().fit(theirs, Y)
    assert list(model.feature_names_in_) == ["size", "kind", "day"]
    np.testing.assert_array_equal(model.predict(frame), expected.predict(theirs))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename({"size": "length"}))
    with pytest.raises(InputError, match=r"column 'kind' of X holds text, such as '[ab]'"):
        quick().fit(frame.with_columns(pl.col("kind").cast(pl.String)), Y)


class Interchanged:
    """A frame that says no more than that it can be interchanged."""

    def __dataframe__(self) -> Any:
        raise NotImplementedError


def test_a_frame_without_its_reader_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(__import__("sys").modules, "narwhals", None)
    with pytest.raises(InputError, match="needs narwhals: pip install narwhals pandas"):
        as_frame(Interchanged())


@pytest.mark.parametrize("kind", [object, "string"])
def test_text_names_the_remedy_and_where_it_works(kind: Any) -> None:
    text = FRAME.assign(kind=pd.Series(KIND, dtype=kind))
    said = r'column .kind. of X holds text, such as .[ab].: make it categories by X\[.kind.\]\.astype\("category"\)'
    with pytest.raises(InputError, match=said):
        quick().fit(text, Y)
    mended = text.assign(kind=text["kind"].astype("category"))
    np.testing.assert_array_equal(quick().fit(mended, Y).predict(mended), quick().fit(FRAME, Y).predict(FRAME))
    numbers = FRAME.assign(size=pd.Series(SIZE.astype(str), dtype=object))
    assert np.isfinite(quick().fit(numbers, Y).predict(numbers)).all()


@pytest.mark.parametrize(
    "labels", [Y.astype(str), Y.astype(str).astype(object), pd.Series(Y.astype(str)), [*"ab"] * 30]
)
def test_labels_that_are_text_are_refused(labels: Any) -> None:
    with pytest.raises(InputError, match="y must be numbers, got text such as '"):
        quick().fit(FRAME, labels)
