"""Times of every kind have steps: they are found, continued, and told from what has none."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cmixup.errors import InputError
from cmixup.tables.columns import as_numbers, checked_numbers, read_column
from cmixup.tables.series import SeriesPreprocessing
from cmixup.tables.steps import grid, periods_of, places, step_of, text_of
from cmixup.tables.written import form_of_times, reading_of
from datasets.csv import Csv
from datasets.series import Series

MONTHS = pd.date_range("2000-01-01", periods=240, freq="MS")


def in_months(*days: int, n: int = 60) -> pd.DatetimeIndex:
    every = [m + pd.Timedelta(days=min(d, m.days_in_month) - 1) for m in MONTHS for d in days]
    return pd.DatetimeIndex(every[:n])


def dates(freq: str, n: int = 60, first: str = "2010-01-01") -> pd.DatetimeIndex:
    return pd.date_range(first, periods=n, freq=freq)


#: Times, their step, and what follows the last one but one; with the rows of a day, week or year.
STEPS: dict[str, tuple[Any, str, dict[str, int]]] = {
    "the 15th": (in_months(15), "1M on 15", {"year": 12}), "the 30th": (in_months(30), "1M on 30", {"year": 12}),
    "quarters on the 3rd": (in_months(3, n=240)[::3], "3M on 3", {"year": 4}),
    "last working day": (dates("BME"), "BME", {"year": 12}), "first working day": (dates("BMS"), "BMS", {"year": 12}),
    "years in July": (pd.DatetimeIndex([f"{y}-07-02" for y in range(1960, 2020)]), "12M on 2", {}),
    "half-months": (in_months(1, 16), "1M on 1,16", {"year": 24}),
    "the 15th and the last": (in_months(15, 31), "1M on 15,31", {"year": 24}),
    "ten days": (in_months(1, 11, 21), "1M on 1,11,21", {"year": 36}),
    "four a month": (in_months(7, 14, 21, 28), "1M on 7,14,21,28", {"year": 48}),
    "pentads": (in_months(1, 6, 11, 16, 21, 26), "1M on 1,6,11,16,21,26", {"year": 72}),
    "ends of ten days": (in_months(10, 20, 31), "1M on 10,20,31", {"year": 36}),
    "four weeks": (dates("28D"), "28D", {}), "weeks": (dates("7D"), "7D", {}),
    "months": (dates("MS"), "MS", {"year": 12}),
    "10 kHz": (dates("100us"), "100us", {"day": 864_000_000, "week": 6_048_000_000}),
    "years": (pd.Index(range(1960, 2020)), "1", {}),
    "seconds of a sensor": (pd.Index(np.arange(60) * 0.02 + 5), "0.02", {}),
    "thirds": (pd.Index(np.round(np.arange(60) / 3, 3)), "0.333", {}),
}  # fmt: skip


@pytest.mark.parametrize("name", STEPS)
def test_a_step_is_found_and_goes_on_as_the_times_do(name: str) -> None:
    times, step, periods = STEPS[name]
    series_step = step_of(times, "s")
    assert series_step.startswith(step)
    assert periods_of(series_step) == periods
    assert places(times, series_step).tolist() == list(range(len(times)))
    following = grid(times[0], len(times), series_step)
    if times.dtype.kind == "M":
        assert following.tolist() == times.tolist()
        assert grid(times[20], 30, series_step).tolist() == times[20:50].tolist()
    else:
        assert following.to_numpy(float) == pytest.approx(times.to_numpy(float), abs=1e-3)
    kept = np.delete(np.arange(len(times)), [4, 5, 30])
    assert places(times[kept], series_step).tolist() == kept.tolist()


def test_the_middle_of_months_is_a_month_and_random_times_are_none() -> None:
    middle = pd.DatetimeIndex([m + (m + pd.offsets.MonthBegin() - m) / 2 for m in MONTHS])
    assert places(middle, step_of(middle, "s")).tolist() == list(range(240))
    for times in (dates("D")[[0, 1, 3, 7, 12, 20, 21, 35]], pd.Index([1, 2, 4, 8, 16, 32, 64])):
        with pytest.raises(InputError, match="s has no regular step: the most common one"):
            step_of(times, "s")
    assert (places(in_months(15), "3M on 15")[:4] == [0, -1, -1, 1]).all()
    assert text_of(pd.Timestamp("2024-01-01 00:00:00.00025")) == "2024-01-01 00:00:00.00025"


@pytest.mark.parametrize(
    ("numbers", "form", "last"),
    [
        ([20240130, 20240131, 20240201], "%Y%m%d", "2024-02-01"), ([202311, 202312, 202401], "%Y%m", "2024-01-01"),
        ([1.7e9, 1.7e9 + 3600, 1.7e9 + 7200], "s since 1970", "2023-11-15 00:13:20"),
        ([2024013121, 2024013122, 2024013123], "%Y%m%d%H", "2024-01-31 23:00"),
        ([202401312159, 202401312200], "%Y%m%d%H%M", "2024-01-31 22:00"),
        ([1.7e12, 1.7e12 + 1, 1.7e12 + 2], "ms since 1970", "2023-11-14 22:13:20.002"), ([1990, 1991, 1992], "", ""),
        ([200001, 200050, 200099], "", ""),
    ],
)  # fmt: skip
def test_numbers_are_times_by_their_size(numbers: list[float], form: str, last: str) -> None:
    assert form_of_times(np.array(numbers, float)) == form
    if form:
        for column in (pd.Series(numbers), pd.Series([f"{n:.0f}" for n in numbers])):
            days = checked_numbers(column, "s", form)
            assert days[-1] == pytest.approx(pd.Timestamp(last).timestamp() / 86_400, abs=1e-9)


@pytest.mark.parametrize("time", ["year", "row", "stamp"])
def test_a_series_with_numbers_as_times_forecasts_at_the_next_number(time: str, tmp_path: Path) -> None:
    n = 90
    rows = pd.DataFrame({"year": np.arange(n) + 1930, "stamp": 1.7e9 + 60 * np.arange(n), "load": np.sin(np.arange(n))})
    rows["open"] = dates("h")[0] + pd.to_timedelta(np.arange(n) ** 2, unit="h")  # as of an exchange: no step
    rows.to_csv(tmp_path / "s.csv", index=False)
    data = Series(str(tmp_path / "s.csv"), time=time, target="load", drop=["open"], window=5, horizon=1).load(0)
    made = SeriesPreprocessing.from_json(data.extras["preprocessing.json"])
    (after,) = made.predictions(rows, np.zeros((1, 1))).index
    assert after == {"year": 2020, "row": 91, "stamp": pd.Timestamp(1.7e9 + 5400, unit="s")}[time]
    if time == "year":
        with pytest.raises(InputError, match="column 'year': 1930-01-01 00:00:00 is not a number"):
            made.apply(rows.assign(year=dates("YS", n, "1930")))
    if time == "stamp":
        rows.drop(columns="open").to_csv(tmp_path / "s.csv", index=False)
        with pytest.raises(InputError, match=r"none holds dates .*; a column of numbers can be named"):
            Series(str(tmp_path / "s.csv")).load(0)


# ---- dates that read two ways

ISO_FORMS = ("%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%MZ", "%Y-%m-%dT%H:%M:%S%z",
             "%Y-%m-%d %H:%M:%S.%f", "%Y%m%dT%H%M%S")  # fmt: skip


def test_of_dates_that_read_both_ways_both_are_named_and_the_option_takes_the_other(tmp_path: Path) -> None:
    for sign in "/-.":
        words = [f"0{k}{sign}01{sign}2010" for k in range(1, 9)]
        doubt = f"'02{sign}01{sign}2010' is taken for 2010-01-02 (%d{sign}%m{sign}%Y); dataset.dayfirst=false takes "
        assert reading_of(words) == (
            f"%d{sign}%m{sign}%Y", doubt + f"it for 2010-02-01 (%m{sign}%d{sign}%Y)", f"%m{sign}%d{sign}%Y"
        )  # fmt: skip
        assert reading_of(words, dayfirst=False) == (f"%m{sign}%d{sign}%Y", "", "")
        assert reading_of([*words, f"31{sign}01{sign}2010"], dayfirst=False) == (f"%d{sign}%m{sign}%Y", "", "")
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"day": [f"{m:02}/{d:02}/2010" for m in range(1, 13) for d in range(1, 13)], "a": rng.random(144)}
    )
    frame.assign(y=rng.random(144)).to_csv(tmp_path / "t.csv", index=False)
    for dayfirst, form in (("auto", "%d/%m/%Y"), (True, "%d/%m/%Y"), (False, "%m/%d/%Y")):
        data = Csv(str(tmp_path / "t.csv"), target="y", dayfirst=dayfirst)
        assert data.table.forms == {"day": form}
        assert any("dataset.dayfirst=false" in line for line in data.problems()) == (dayfirst == "auto")
    with pytest.raises(InputError, match="dayfirst must be True or False, got 'us'"):
        Csv(str(tmp_path / "t.csv"), target="y", dayfirst="us")


@pytest.mark.parametrize(
    ("times", "step", "message"),
    [
        (dates("MS", 120), "MS", "%d/%m/%Y gives no regular step"),
        (dates("QS", 40), "3MS", "%d/%m/%Y gives no regular step"),
        (dates("h", 120), "h", "%d/%m/%Y %H:%M gives no regular step"),
        (dates("MS", 12), "D", "dataset.dayfirst=false takes it for 2010-02-01 (%m/%d/%Y)"),
    ],
)
def test_of_a_series_that_order_is_taken_which_alone_gives_a_step(
    times: pd.DatetimeIndex, step: str, message: str, tmp_path: Path
) -> None:
    form = "%m/%d/%Y %H:%M" if step == "h" else "%m/%d/%Y"
    pd.DataFrame({"time": times.strftime(form), "y": np.sin(np.arange(len(times)))}).to_csv(
        tmp_path / "s.csv", index=False
    )
    series = Series(str(tmp_path / "s.csv"), window=2, horizon=1)
    assert (series.placed.made.step, message in " ".join(series.problems())) == (step, True)
    assert Series(str(tmp_path / "s.csv"), dayfirst=False, window=2, horizon=1).placed.made.form == form


@pytest.mark.parametrize("form", [*ISO_FORMS, "%d.%m.%Y %H:%M"])
def test_dates_of_any_iso_spelling_are_read_by_the_form_of_training(form: str) -> None:
    times = dates("h", 40).tz_localize("UTC")
    training = read_column(pd.Series(times.strftime(form))).form
    assert training
    for other in ISO_FORMS:
        days = checked_numbers(pd.Series(times.strftime(other)), "t", training)
        assert (days == (times - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1)).all()


def test_dates_are_no_numbers_or_lengths_and_these_no_dates() -> None:
    days, lengths = pd.Series(dates("D", 3)), pd.Series(pd.to_timedelta([1, 2, 3], unit="D"))
    for column, form in ((days, "1234.5 kg"), (days, "duration"), (lengths, "%d/%m/%Y"), (lengths, "1234.5")):
        assert as_numbers(column, form)[1].all()
    for column, form in ((pd.Series([1.0, 2, 3]), "ISO 8601"), (days, "")):
        assert as_numbers(column, form)[1].all()
    assert not as_numbers(lengths, "time of day")[1].any()


# ---- panels, and times of a clock


def panel(path: Path, **sizes: tuple[int, float]) -> str:
    parts = [
        pd.DataFrame({"time": dates("h", n), "site": site, "y": size * (np.sin(np.arange(n)) + 2)})
        for site, (n, size) in sizes.items()
    ]
    pd.concat(parts).to_csv(path / "p.csv", index=False)
    return str(path / "p.csv")


def test_a_series_too_short_is_named_and_left_out_and_a_huge_one_said(tmp_path: Path) -> None:
    given: dict[str, Any] = {"id": "site", "window": 12, "horizon": 2, "steps": "all"}
    alone = Series(panel(tmp_path, a=(99, 1), b=(99, 1)), **given)
    expected = alone.load(0)
    assert alone.problems() == ("read as days: time (%Y-%m-%d %H:%M:%S)",)
    series = Series(panel(tmp_path, a=(99, 1), b=(99, 1), c=(5, 1)), **given)
    data = series.load(0)
    assert "too short for window 12 and horizon 2: c (5 rows)" in data.notes
    assert len(data.train) == len(expected.train)
    made, rows = SeriesPreprocessing.from_json(data.extras["preprocessing.json"]), pd.read_csv(tmp_path / "p.csv")
    with pytest.warns(UserWarning, match="series: site c has 5 rows with a target; a window needs 12: left out"):
        assert len(made.apply(rows)) == 2
    assert made.predictions(rows, np.zeros((2, 2))).index.get_level_values("site").unique().tolist() == ["a", "b"]
    with pytest.raises(InputError, match="series, site c has 5 rows with a target; a window needs 12"):
        made.apply(rows[rows["site"] == "c"])
    for sizes in ({"a": (99, 1.0), "b": (99, 1e3)}, {"a": (99, 1.0), "b": (99, 1.0), "c": (99, 1e3)}):
        lines = Series(panel(tmp_path, **sizes), **given).problems()
        assert any(
            "is 1e+03 times as large as the others, so it decides scale and error: frame[target]" in one
            for one in lines
        )
    lines = Series(panel(tmp_path, a=(99, 1.0), b=(99, 0.0)), **given).problems()
    assert not any("times as large" in one for one in lines)  # as 0, which nothing is a multiple of


def test_series_of_a_panel_go_on_on_their_own_days(tmp_path: Path) -> None:
    """Month ends, the first and the third beside the 15th."""
    times = {"a": in_months(15), "b": dates("ME", 50), "c": dates("MS", 40), "d": in_months(3, n=45)}
    rows = pd.concat([pd.DataFrame({"time": when, "site": site, "y": 1.0}) for site, when in times.items()])
    rows["y"] = np.arange(len(rows)) % 7
    rows.to_csv(tmp_path / "p.csv", index=False)
    data = Series(str(tmp_path / "p.csv"), id="site", window=4, horizon=1).load(0)
    made = SeriesPreprocessing.from_json(data.extras["preprocessing.json"])
    after = [str(time.date()) for _, time in made.predictions(rows, np.zeros((4, 1))).index]
    assert after == ["2005-01-15", "2014-03-31", "2013-05-01", "2003-10-03"]


def test_hours_of_summer_time_and_in_their_own_column_are_called_so(tmp_path: Path) -> None:
    zone = pd.date_range("2023-10-20", periods=500, freq="h", tz="Europe/Berlin").tz_localize(None)
    spring = pd.date_range("2024-03-20", periods=500, freq="h", tz="Europe/Berlin").tz_localize(None)
    days = np.repeat(dates("D", 20).strftime("%Y-%m-%d"), 24)
    for frame, message in (
        (pd.DataFrame({"time": zone}), r"an hour of summer time, it seems; .*tz_localize\('Europe/Berlin'"),
        (pd.DataFrame({"time": spring}), r"1 of 501 times are missing .*: an hour of summer time, it seems"),
        (pd.DataFrame({"time": days, "hour": np.tile(np.arange(24) + 1, 20)}),
         r"hour is the hour, it seems; .*\(frame\['time'\]\) \+ pd.to_timedelta\(frame\['hour'\] - 1, unit='h'\)"),
        (pd.DataFrame({"time": days, "clock": [f"{k}:00" for k in range(24)] * 20}),
         r"clock is the time of day, it seems; .*\+ pd.to_timedelta\(frame\['clock'\] \+ ':00'\)"),
    ):  # fmt: skip
        frame.assign(y=np.arange(len(frame)) % 7).to_csv(tmp_path / "s.csv", index=False)
        with pytest.raises(InputError, match=message):
            Series(str(tmp_path / "s.csv"), target="y", time="time", window=5, horizon=1).load(0)
