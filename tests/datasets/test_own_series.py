"""Own series: from a file with times to windows, splits, scales and naive forecasts."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

from cmixup.data import RegressionData
from cmixup.errors import InputError
from cmixup.metrics import evaluate
from cmixup.tables.series import SeriesPreprocessing
from cmixup.tables.steps import periods_of
from datasets.common.base import SPLITS
from datasets.series import Series


def hourly(n: int = 50, **columns: Any) -> pd.DataFrame:
    """Return rows of which `a` is the row number and `b` ten times as much."""
    rows = {"time": pd.date_range("2024-01-01", periods=n, freq="h"), "a": np.arange(n), "b": 10.0 * np.arange(n)}
    return pd.DataFrame(rows | columns)


def made_series(tmp_path: Path, frame: pd.DataFrame, **options: Any) -> Series:
    frame.to_csv(tmp_path / "load.csv", index=False)
    return Series(str(tmp_path / "load.csv"), **{"window": 4, "horizon": 3, **options})


def preprocessing(data: RegressionData) -> SeriesPreprocessing:
    return SeriesPreprocessing.from_json(data.extras["preprocessing.json"], "preprocessing.json")


def windows(data: RegressionData, part: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the inputs of a split before they were scaled, rounded to a thousandth, and its labels."""
    split, made = getattr(data, part), preprocessing(data)
    x = split.x[torch.arange(len(split))].double().numpy()
    return (x * made.scale + made.shift).round(3), split.y.numpy()


# ---- windows and splits


@pytest.mark.parametrize(("steps", "sizes"), [("last", (24, 10, 10)), ("all", (24, 8, 8))])
def test_windows_and_targets_by_hand(tmp_path: Path, steps: str, sizes: tuple[int, ...]) -> None:
    data = made_series(tmp_path, hourly(), steps=steps).load(0)
    ahead = (3,) if steps == "last" else (1, 2, 3)
    forecast = {part: set[int]() for part in SPLITS}
    for part, size in zip(SPLITS, sizes, strict=True):
        x, y = windows(data, part)
        assert (x.shape, y.shape) == ((size, 4, 2), (size, 2 * len(ahead)))
        for inputs, labels in zip(x, y, strict=True):
            last = inputs[-1, 0]
            assert inputs[:, 0].tolist() == [last - 3, last - 2, last - 1, last]
            assert inputs[:, 1].tolist() == (10 * inputs[:, 0]).round(3).tolist()
            assert labels.tolist() == [value for step in ahead for value in (last + step, 10 * (last + step))]
            forecast[part] |= {int(last) + step for step in ahead}
    first = 6 if steps == "last" else 4
    assert [sorted(rows) for rows in forecast.values()] == [[*range(first, 30)], [*range(30, 40)], [*range(40, 50)]]
    seen_in_training = windows(data, "train")[0][..., 0].max()
    assert seen_in_training == 26  # three steps before the last target of training
    (note,) = data.notes
    assert note == (
        "trains on times from 2024-01-01, validates from 2024-01-02 06:00, tests from 2024-01-02 16:00 to "
        f"2024-01-03 01:00 (steps of h; windows: {sizes[0]} of train, {sizes[1]} of val, {sizes[2]} of test)"
    )


def test_inputs_are_scaled_by_the_training_rows(tmp_path: Path) -> None:
    frame = hourly()
    frame.loc[30:, "b"] = 1e6
    made = preprocessing(made_series(tmp_path, frame).load(0))
    assert made.shift == pytest.approx((14.5, 145.0))
    assert made.scale == pytest.approx((np.std(np.arange(30)), 10 * np.std(np.arange(30))))


def test_columns_are_targets_others_and_what_is_known_ahead(tmp_path: Path) -> None:
    """A window ends with the value of a known column at the row that is forecast."""
    frame = hourly(holiday=np.arange(50) * 100.0, place="here")
    dataset = made_series(tmp_path, frame, target="b", known="holiday")
    data = dataset.load(0)
    assert preprocessing(data).columns == ("b", "a", "holiday")
    x, y = windows(data, "test")
    assert x[0].tolist() == [[10.0 * row, row, 100.0 * (row + 3)] for row in (34, 35, 36, 37)]
    assert y[0].tolist() == [400.0]
    assert dataset.problems() == (
        "read as days: time (%Y-%m-%d %H:%M:%S)",
        "left out, since they hold no numbers: place",
        "b numbers the rows, it seems: dataset.drop=[b]",
    )


def test_no_window_holds_rows_of_two_series(tmp_path: Path) -> None:
    one, other = hourly(id="x"), hourly(40, id="y")
    other["a"] += 1000
    other["time"] += pd.Timedelta(hours=10)
    data = made_series(tmp_path, pd.concat([one, other]).sample(frac=1, random_state=0), id="id", target="a").load(0)
    assert list(data.naive) == ["last_value"]  # a day before the first forecasts of y are no rows of y
    cuts = {"train": (0, 30), "val": (30, 40), "test": (40, 50)}
    for part, (begin, end) in cuts.items():
        x, y = windows(data, part)
        rows = x[..., 0] - np.where(x[:, :1, 0] >= 1000, 990, 0)  # the time of each, in hours
        assert (np.diff(rows, axis=1) == 1).all()
        assert (y[:, 0] - x[:, -1, 0] == 3).all()
        times = sorted(rows[:, -1] + 3)
        assert times == sorted([*range(max(begin, 6), end), *range(max(begin, 16), end)])


def test_a_target_that_decides_the_error_is_named(tmp_path: Path) -> None:
    frame = hourly(a=np.sin(np.arange(50)), b=11 * np.sin(np.arange(50)))
    assert made_series(tmp_path, frame).problems()[-1].startswith("b varies more than 10 times as much as a, so it")


# ---- times


@pytest.mark.parametrize(
    ("freq", "text", "step", "periods"),
    [
        ("h", "%d.%m.%Y %H:%M", "h", {"day": 24, "week": 168}),
        ("15min", "%Y-%m-%d %H:%M", "15min", {"day": 96, "week": 672}),
        ("30min", "%Y/%m/%d %H:%M", "30min", {"day": 48, "week": 336}), ("D", "%Y-%m-%d", "D", {"week": 7}),
        ("B", "%d %b %Y", "B", {"week": 5}), ("MS", "%b %Y", "1MS", {"year": 12}),
        ("ME", "%Y-%m-%d", "1ME", {"year": 12}), ("QS", "%Y-%m-%d", "3MS", {"year": 4}),
        ("W-WED", "%m/%d/%Y", "7D", {}), ("7h", "%Y-%m-%d %H:%M:%S", "7h", {"week": 24}),
    ],
)  # fmt: skip
def test_steps_and_periods(tmp_path: Path, freq: str, text: str, step: str, periods: Mapping[str, int]) -> None:
    times = pd.date_range("2024-01-03", periods=50, freq=freq)
    dataset = made_series(tmp_path, hourly(time=times.strftime(text)))
    (one,) = dataset.placed.every
    assert dataset.placed.made.step == pd.tseries.frequencies.to_offset(step).freqstr
    assert (one.times == times).all()
    assert periods_of(one.step) == periods


@pytest.mark.parametrize(
    ("fill", "expected"), [("previous", [9.0, 9.0, 9.0, 9.0, 14.0]), ("linear", [10, 11, 12, 13, 14])]
)
def test_gaps_are_filled_if_that_is_asked_for(tmp_path: Path, fill: str, expected: list[float]) -> None:
    frame = hourly().drop(index=[10, 11, 13]).astype({"a": float})
    frame.loc[12, "a"] = np.nan
    dataset = made_series(tmp_path, frame, fill=fill, target="a")
    assert dataset.placed.every[0].values[10:15, 0].tolist() == expected
    assert dataset.load(0).notes[1] == f"7 missing values were filled (fill={fill})"


@pytest.mark.parametrize("below", [0, 3])
def test_a_gap_at_the_end_is_not_filled_towards_the_rows_below_the_last_target(tmp_path: Path, below: int) -> None:
    frame = hourly(50 + below).assign(c=1.0)
    frame.loc[50:, ["a", "b"]] = frame.loc[46:, "b"] = np.nan
    with pytest.raises(InputError, match=r"column 'b' has no value at 2024-01-02 22:00; fill=linear has none"):
        made_series(tmp_path, frame.astype({"a": float}), fill="linear", target="a", known="c").load(0)


def test_new_rows_without_any_are_one_line(tmp_path: Path) -> None:
    made = preprocessing(made_series(tmp_path, hourly(), time="row", drop="time").load(0))
    with pytest.raises(InputError, match="series has no rows"):
        made.apply(hourly()[:0], "series")


def test_years_are_times_with_any_sign_for_thousands(tmp_path: Path) -> None:
    frame = pd.DataFrame({"year": range(1900, 1960), "a": [f"{1 + k % 5},{100 + k}" for k in range(60)]})
    assert made_series(tmp_path, frame, time="year", thousands="comma").placed.every[0].values[0, 0] == 1100


def test_one_row_with_a_target_is_one_line(tmp_path: Path) -> None:
    frame = hourly(4).astype({"a": float})
    frame.loc[1:, "a"] = np.nan
    with pytest.raises(InputError, match=r"window 1 with horizon 1 is too long .* its 1 times leave nothing for train"):
        made_series(tmp_path, frame, target="a", window=1, horizon=1).load(0)


# ---- naive forecasts


@pytest.mark.parametrize("steps", ["last", "all"])
def test_naive_forecasts_by_hand(tmp_path: Path, steps: str) -> None:
    frame = hourly(400, a=np.random.default_rng(0).normal(size=400).round(3))
    data = made_series(tmp_path, frame, target="a", drop="b", steps=steps, horizon=30).load(0)
    a, ahead = frame["a"].to_numpy(), [30] if steps == "last" else range(1, 31)
    assert list(data.naive) == ["last_value", "day_before", "week_before"]
    last_rows = range(320 - ahead[0], 400 - 30)  # of the windows of test
    hand = {
        "last_value": [[a[row] for _ in ahead] for row in last_rows],
        "day_before": [[a[row + k - (24 if k <= 24 else 48)] for k in ahead] for row in last_rows],
        "week_before": [[a[row + k - 168] for k in ahead] for row in last_rows],
    }
    for name, expected in hand.items():
        np.testing.assert_array_equal(data.naive[name]["test"].numpy(), np.array(expected, dtype=np.float32))
    scores = evaluate(data.naive["week_before"]["test"], data.test.y, data.test.domain, data.metrics)
    errors = np.array(hand["week_before"]) - data.test.y.numpy()
    assert scores["rmse"] == pytest.approx(np.sqrt(np.mean(errors**2)), rel=1e-6)


# ---- forecasts


@pytest.mark.parametrize(("steps", "ends"), [("last", (38, 39, 40)), ("all", (40,))])
def test_a_run_forecasts_what_follows(tmp_path: Path, steps: str, ends: tuple[int, ...]) -> None:
    made = preprocessing(made_series(tmp_path, hourly(), steps=steps).load(0))
    new = hourly(40).sample(frac=1, random_state=0)
    x = made.apply(new)
    assert (x * made.scale + made.shift).round(3)[:, :, 0].tolist() == [[*range(end - 4, end)] for end in ends]
    values = np.arange(6.0).reshape(len(x), -1)
    frame = made.predictions(new, values)
    assert frame.to_numpy().tolist() == [[0, 1], [2, 3], [4, 5]]
    assert list(frame) == ["a", "b"]
    assert frame.index.tolist() == pd.date_range("2024-01-02 16:00", periods=3, freq="h").tolist()


def test_a_file_with_few_rows_gives_the_last_steps(tmp_path: Path) -> None:
    made = preprocessing(made_series(tmp_path, hourly()).load(0))
    frame = made.predictions(hourly(5), np.zeros((len(made.apply(hourly(5))), 2)))
    assert frame.index.tolist() == [pd.Timestamp("2024-01-01 06:00"), pd.Timestamp("2024-01-01 07:00")]


def test_values_known_ahead_stand_after_the_last_target(tmp_path: Path) -> None:
    made = preprocessing(made_series(tmp_path, hourly(), target="a", known="b", id="").load(0))
    new = hourly(43).astype({"a": float})
    new.loc[40:, "a"] = np.nan
    x = (made.apply(new) * made.scale + made.shift).round(3)
    assert x[:, -1].tolist() == [[37, 400], [38, 410], [39, 420]]
    assert len(made.predictions(new, np.zeros((3, 1)))) == 3
    with pytest.raises(InputError, match=r"^new.csv has 2 rows after the last target; 3 must say what is known ahead"):
        made.apply(new[:-1].copy(), "new.csv")
    with pytest.raises(InputError, match=r"^series has no time in column 'time'"):
        made.apply(new[:0])
    with pytest.raises(InputError, match=r"^series has 3 rows with a target; a window needs 4"):
        made.apply(new[:3].copy())


# ---- bad input: a line that names file, row or argument, before training


def change(**columns: Any) -> Any:
    return lambda frame: frame.assign(**columns)


def cells(column: str, values: Mapping[int, Any]) -> Any:
    def put(frame: pd.DataFrame) -> pd.DataFrame:
        frame[column] = frame[column].astype(object)
        for row, value in values.items():
            frame.loc[row, column] = value
        return frame

    return put


def same(frame: pd.DataFrame) -> pd.DataFrame:
    return frame


SQUARES = pd.Timestamp("2024-01-01") + pd.to_timedelta(np.arange(50) ** 2, "h")
BAD: list[tuple[dict[str, Any], Any, str]] = [
    ({"window": 0}, same, "window must be a whole number, 1 or more, got 0"),
    ({"horizon": -1}, same, "horizon must be a whole number, 1 or more, got -1"),
    ({"steps": "some"}, same, "steps must be one of last, all, got 'some'"),
    ({"fill": "mean"}, same, "fill must be one of none, previous, linear, got 'mean'"),
    ({"known": "b", "window": 2, "steps": "all"}, same, "window must be 3 or more to hold what is known of all steps"),
    ({"target": "a", "drop": ["a"]}, same, "column 'a' is named twice by time, id, target, known and drop"),
    ({"time": "tiem"}, same, "time 'tiem' is no column of load.csv; the nearest name is 'time'"),
    ({"target": "a,b"}, same, "of several make a list, dataset.target=[a,b]"),
    ({"time": "a"}, lambda frame: frame.assign(a="x"), "time must name a column of load.csv: time hold dates, got 'a'"),
    ({}, lambda frame: frame.drop(columns="time"), "load.csv: none holds dates such as 2024-01-31 13:00"),
    ({}, lambda frame: frame.assign(day=frame["time"]), "time must name a column of load.csv: time, day hold dates"),
    ({"target": "day"}, lambda frame: frame.assign(day=frame["time"]), "time must name a column"),
    ({"time": "time", "target": "day"}, lambda frame: frame.assign(day=frame["time"]), "'day' of load.csv holds dates"),
    ({}, cells("time", {7: None}), "load.csv, row 8 has no time in column 'time'"),
    ({}, cells("time", {7: "2024-01-01 03:00:00"}), "load.csv, rows 4 and 8 have one time, 2024-01-01 03:00"),
    ({}, cells("time", {7: "2024-01-01 07:20:00"}), "load.csv, row 8: 2024-01-01 07:20 is not on the steps of h that"),
    ({}, lambda frame: frame.drop(index=[7, 9]), "2 of 50 times are missing at steps of h, the first 2024-01-01"),
    ({"fill": "linear"}, cells("time", {49: "2024-01-09"}), "143 of 193 times are missing at steps of h"),
    ({}, lambda frame: frame[:2], "load.csv has 2 rows; a series needs 3 or more"),
    ({}, change(time=SQUARES), "load.csv has no regular step: the most common one,"),
    ({}, cells("a", {7: None}), "load.csv: column 'a' has no value at 2024-01-01 07:00: dataset.fill=previous or"),
    ({"fill": "previous"}, cells("a", {0: None}), "'a' has no value at 2024-01-01; fill=previous has none"),
    ({"fill": "linear"}, cells("b", {49: None}), "'b' has no value at 2024-01-03 01:00; fill=linear has none"),
    ({}, cells("a", {7: "many"}), "row 8, column 'a': 'many' is not a number; fix it, or give dataset.missing"),
    ({}, change(a="x", b="y"), "target must name a column of load.csv: none beside time holds numbers"),
    ({"target": "a"}, change(a=None), "load.csv has no value of a in any row"),
    ({}, change(a=3.0), "target 'a' of load.csv is 3 in every row: there is nothing to predict"),
    ({"window": 28}, same, "window 28 with horizon 3 is too long for load.csv: its 50 times leave nothing for train"),
    ({"steps": "all", "horizon": 11, "window": 2}, same, "its 50 times leave nothing for val"),
    ({"id": "a"}, same, "rows; a series needs 3 or more"),
    ({"id": "who"}, change(who=["x"] * 49 + [None]), "load.csv, row 50 names no series in column 'who'"),
    ({"known": "b"}, cells("b", {49: None}), "column 'b' has no value at 2024-01-03 01:00"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "changed", "message"), BAD, ids=[message for _, _, message in BAD])
def test_bad_input_is_one_line(tmp_path: Path, options: dict[str, Any], changed: Any, message: str) -> None:
    with pytest.raises(InputError) as stop:
        made_series(tmp_path, changed(hourly()), **options).load(0)
    line = str(stop.value).replace(f"{tmp_path}/", "")
    assert message in line
    assert "\n" not in line
