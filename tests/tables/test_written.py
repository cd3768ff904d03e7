"""Numbers and times as people write them are read with their values; what agrees on no reading stays text."""

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cmixup.errors import InputError
from cmixup.files import PREPROCESSING
from cmixup.tables.columns import as_numbers, read_column
from cmixup.tables.preprocessing import TablePreprocessing
from cmixup.tables.written import ISO, QUARTER, TIME, WEEK, parsed, reading_of
from datasets.common.table.reading import Format, read_table
from datasets.csv import Csv

DAY = pd.Timedelta(days=1)


def days(*dates: str) -> list[float]:
    return [(pd.Timestamp(date) - pd.Timestamp(0)) / DAY for date in dates]


#: Texts of a column, its form and its values.
WRITTEN: dict[str, tuple[list[str], str, list[float]]] = {
    "percent": (["12.5%", "3 %", "-0.5 %"], "1234.5 %", [12.5, 3, -0.5]),
    "unit": (["3.1 kg", "2kg", "1.5e3 kg"], "1234.5 kg", [3.1, 2, 1500]),
    "unit of several": (["5 m/s", "12.5 m/s"], "1234.5 m/s", [5, 12.5]),
    "degrees": (["20 \u00b0C", "\u22123.5 \u00b0C"], "1234.5 \u00b0C", [20, -3.5]),
    "plural": (["1 year", "3 years"], "1234.5 year", [1, 3]),
    "comma": (["1,234.5", "12", "1,000,000"], "1,234.5", [1234.5, 12, 1e6]),
    "point": (["10.450,00", "1,5"], "1.234,5", [10450, 1.5]),
    "blank": (["10\u00a0450,00", "10 450,50"], "1 234,5", [10450, 10450.5]),
    "narrow blank": (["1\u202f234", "12"], "1 234.5", [1234, 12]),
    "apostrophe": (["10'450.00", "1\u2019234.5"], "1'234.5", [10450, 1234.5]),
    "Indian": (["1,23,456", "12,34,567"], "1,234.5", [123456, 1234567]),
    "decimal comma": (["0,5", "12,25"], "1234,5", [0.5, 12.25]),
    "currency before": (["$10.45", "-$3", "$1,200"], "1,234.5 $", [10.45, -3, 1200]),
    "currency after": (["10,45 \u20ac", "1.200,5 \u20ac"], "1.234,5 \u20ac", [10.45, 1200.5]),
    "currency code": (["CHF 1'200.-", "CHF 5.50"], "1'234.5 CHF", [1200, 5.5]),
    "money and none": (["(1,234.5)", "2", "($3)"], "", []),
    "parentheses": (["($1,234.5)", "$2"], "1,234.5 $", [-1234.5, 2]),
    "accounts": (["(5)", "7", "3-"], "1234.5", [-5, 7, -3]),
    "Unicode minus": (["\u22125", "\u20133", "2"], "1234.5", [-5, -3, 2]),
    "time of day": (["10:45", "9:30", "00:00"], TIME, [10.75 / 24, 9.5 / 24, 0]),
    "time with seconds": (["10:45:30", "26:00:00.5"], TIME, [38730 / 86400, 93600.5 / 86400]),
    "am and pm": (["10:45 PM", "12:15 am", "9 a.m."], TIME, [22.75 / 24, 0.25 / 24, 9 / 24]),
    "offsets of summer time": (["2021-03-28 01:00:00+0100", "2021-03-28 03:00:00+0200"], ISO,
                               days("2021-03-28 00:00", "2021-03-28 01:00")),
    "offsets and fractions": (["2021-03-28T01:00:00.5Z", "2021-03-28T03:00+02:00"], ISO,
                              days("2021-03-28 01:00:00.5", "2021-03-28 01:00")),
    "German with time": (["28.03.2021 01:30", "01.12.2021 00:00"], "%d.%m.%Y %H:%M",
                         days("2021-03-28 01:30", "2021-12-01")),
    "day first": (["03/04/2021", "05/06/2021"], "%d/%m/%Y", days("2021-04-03", "2021-06-05")),
    "month first": (["03/04/2021", "05/16/2021"], "%m/%d/%Y", days("2021-03-04", "2021-05-16")),
    "names of months": (["3 Apr 2021", "16 May 2021"], "%d %b %Y", days("2021-04-03", "2021-05-16")),
    "American with names": (["April 3, 2021", "May 16, 2021"], "%B %d, %Y", days("2021-04-03", "2021-05-16")),
    "weeks": (["2021-W05", "2020-W53-7"], WEEK, days("2021-02-01", "2021-01-03")),
    "a week too many": (["2021-W05", "2021-W53"], "", []),
    "months by name": (["13-Jan-2010", "14-FEB-2010"], "%d-%b-%Y", days("2010-01-13", "2010-02-14")),
    "years of two digits": (["01.02.49", "01.02.12"], "%d.%m.%y", days("1949-02-01", "2012-02-01")),
    "points, year first": (["2010.01.13", "2010.2.14"], "%Y.%m.%d", days("2010-01-13", "2010-02-14")),
    "months by name, no sign": (["13Jan2010"], "%d%b%Y", days("2010-01-13")),
    "fractions": (["1\u00bd", "2\u00bd"], "", []),
    "quarters": (["2021Q1", "Q4 2021", "2020-Q2"], QUARTER, days("2021-01-01", "2021-10-01", "2020-04-01")),
    "durations": (["2 days", "1 day 12:00:00"], "duration", [2, 1.5]),
    "ISO durations": (["P1DT12H", "PT6H"], "duration", [1.5, 0.25]),
    "units that differ": (["5 kg", "300 g"], "", []),
    "ranks": (["1st", "2nd", "3rd"], "", []),
    "numbered names": (["zone 1", "zone 2"], "", []),
    "house numbers": (["12a", "7b"], "", []),
    "limits": (["<5", "7"], "", []),
    "groups of two": (["12,34.5", "1"], "", []),
}  # fmt: skip


@pytest.mark.parametrize(("words", "form", "values"), WRITTEN.values(), ids=WRITTEN)
def test_a_column_is_read_where_all_of_it_agrees(words: list[str], form: str, values: list[float]) -> None:
    assert reading_of(words).form == form
    if form:
        np.testing.assert_allclose(parsed(words, form), values, rtol=1e-12)
        column = pd.Series([None, *words, *words], dtype=object)
        numbers, wrong = as_numbers(column, form)
        np.testing.assert_allclose(numbers, [np.nan, *values, *values], rtol=1e-12)
        assert not wrong.any()


@pytest.mark.parametrize(
    ("words", "options", "value", "other", "option"),
    [
        (["1.234 kg", "5.678 kg"], {}, 1.234, 1234, "point"),
        (["1,234", "5,678"], {}, 1234, 1.234, "none"),
        (["1,234", "5,678"], {"decimal": ","}, 1.234, 1234, "comma"),
        (["1.234 kg", "0.5 kg"], {}, 1.234, None, ""),  # no group begins with 0
        (["1.234 kg", "5.678 kg"], {"thousands": "point"}, 1234, None, ""),
        (["1,234", "5,678"], {"thousands": "none"}, 1.234, None, ""),
    ],
)
def test_a_doubt_names_both_readings_and_the_option(
    words: list[str], options: dict[str, str], value: float, other: float | None, option: str
) -> None:
    form, doubt, _ = reading_of(words, **options)
    assert parsed(words, form)[0] == value
    expected = (
        f"{words[0]!r} is taken for {value:g}; dataset.thousands={option} takes it for {other:g}" if other else ""
    )
    assert doubt == expected


def test_times_before_the_first_nanosecond_do_not_stop_the_others() -> None:
    assert parsed(["1445-01-15", "2000-01-01"], "%Y-%m-%d")[1] == 10957


@pytest.mark.parametrize(
    ("others", "count", "first"),
    [(["-"], 1, "-"), (["12", "13.5"], 2, "12"), (["5 kg"], 1, "5 kg"), (["a"] * 12, 0, "")],
)
def test_what_keeps_a_column_from_being_read_is_counted_and_shown(others: list[str], count: int, first: str) -> None:
    words = [*(f"{k}.5%" for k in range(12)), *others]
    what = f"{count} of {len(words)} values are not like 1234.5 %, such as {first!r}; read as levels: write all alike"
    line = f"{what}, or dataset.missing=[{first}] takes it for unknown" if count else ""
    assert reading_of(words)[:2] == ("", line)


def write(folder: Path, columns: dict[str, list[Any]], separator: str = ",") -> str:
    pd.DataFrame(columns).to_csv(folder / "t.csv", index=False, sep=separator)
    return str(folder / "t.csv")


A = np.random.default_rng(0).normal(50, 20, 90).round(2)
SPELLINGS = {
    "%": lambda v: f"{v:.2f}%", " kg": lambda v: f"{v:.2f} kg",
    "$": lambda v: f"${v:,.2f}" if v >= 0 else f"(${-v:,.2f})", "thousands": lambda v: f"{1000 * v:,.2f}",
    "time": lambda v: f"{int(abs(v)) % 24:02d}:{int(abs(60 * v)) % 60:02d}",
}  # fmt: skip


@pytest.mark.parametrize("name", SPELLINGS)
def test_text_trains_and_predicts_as_the_numbers_that_it_says(tmp_path: Path, name: str) -> None:
    """As a feature and as the target, in a file and in a frame, with the line on it before training."""
    words = [SPELLINGS[name](v) for v in A]
    form = reading_of(words).form
    values = parsed(words, form)
    plain = Csv(write(tmp_path, {"y": A + 1, "b": A % 7, "x": values}), target="y").load(0)
    dataset = Csv(write(tmp_path, {"y": A + 1, "b": A % 7, "x": words}), target="y")
    data = dataset.load(0)
    np.testing.assert_array_equal(data.train.x, plain.train.x)
    kind = "days" if name == "time" else "numbers"
    assert f"read as {kind}: x ({form})" in dataset.problems()
    assert not data.notes
    made = TablePreprocessing.from_json(data.extras[PREPROCESSING])
    assert (made.columns[0].form, made.columns[1].form) == ("", form)  # type: ignore[union-attr]
    assert made.text == ["x"]
    rows = pd.DataFrame({"b": A[:5] % 7, "x": words[:5]})
    np.testing.assert_array_equal(made.apply(rows), made.apply(rows.assign(x=pd.Series(words[:5], dtype="string"))))
    if name != "time":
        np.testing.assert_array_equal(made.apply(rows), made.apply(rows.assign(x=values[:5])))
    with pytest.raises(InputError, match=r"t.csv, row 2, column 'x': '3 ells' is no (number|time) like"):
        made.apply(pd.DataFrame({"b": [1, 1], "x": [words[0], "3 ells"]}, index=[1, 2]), "t.csv")
    target = Csv(write(tmp_path, {"y": words, "b": A % 7}), target="y").load(0)
    expected = Csv(write(tmp_path, {"y": values, "b": A % 7}), target="y").load(0)
    np.testing.assert_array_equal(target.test.y, expected.test.y)
    assert target.unit == {"%": "y in %", " kg": "y in kg", "$": "y in $", "time": "y in days"}.get(name, "y")


def test_doubts_of_a_whole_file_name_the_option_and_it_takes_the_other(tmp_path: Path) -> None:
    table = {"y": A, "b": A % 7, "x": [f"{k}.{k}{k + 1}{k + 2}" for k in range(1, 8)] * 12 + ["9.999"] * 6}
    path = write(tmp_path, table)
    (line,) = [line for line in Csv(path, target="y").problems() if "thousands" in line]
    assert line == "x: '1.123' is taken for 1.123; dataset.thousands=point takes it for 1123"
    columns = [Csv(path, target="y", thousands=name, scaling="none").table.features["x"] for name in ("none", "auto")]
    assert columns[0].tolist() == columns[1].tolist() == [float(word) for word in table["x"]]
    whole = Csv(
        write(tmp_path, table | {"y": [f"{v:.2f}".replace(".", ",") for v in A]}, ";"), target="y", thousands="point"
    )
    assert as_numbers(whole.table.features["x"], whole.table.forms["x"])[0][0] == 1123
    np.testing.assert_allclose(whole.table.y[:, 0], A)
    grouped = Csv(write(tmp_path, {"y": ["1,234"] * 45 + ["5,678"] * 45, "x": range(90)}, ";"), target="y")
    assert grouped.table.y[0, 0] == 1.234
    assert any("dataset.thousands=comma takes it for 1234" in line for line in grouped.problems())
    other = Csv(grouped.path, target="y", thousands="comma").table
    assert (other.y[0, 0], other.features["x"].astype(float).tolist()) == (1234, list(range(90)))
    below = Csv(write(tmp_path, {"y": ["0", "567", "1,234"] * 30, "x": range(90)}, ";"), target="y")
    assert "y: '1,234' is taken for 1.234; dataset.thousands=comma takes it for 1234" in below.problems()


def test_a_sign_that_is_given_holds_for_new_rows_of_columns_that_had_none(tmp_path: Path) -> None:
    path = write(tmp_path, {"x": [100 + 37 * k % 890 for k in range(90)], "y": A}, ";")
    table = TablePreprocessing.from_json(
        Csv(path, target="y", thousands="point", scaling="none").load(0).extras[PREPROCESSING]
    )
    assert table.apply(pd.DataFrame({"x": ["950", "1.050"]}))[:, 0].tolist() == [950, 1050]


@pytest.mark.parametrize("thousands", ["auto", "comma"])
def test_signs_that_are_given_for_new_rows_hold_whatever_signs_training_had(thousands: str, tmp_path: Path) -> None:
    words = {"Gr\u00f6\u00dfe": [f"{1000 + 17 * k:,}.5" for k in range(90)], "w": [f"{k}.25 kg" for k in range(90)]}
    trained = Csv(write(tmp_path, words | {"y": A}), target="y", thousands=thousands, scaling="none")
    table = TablePreprocessing.from_json(trained.load(0).extras[PREPROCESSING])
    path = write(tmp_path, {"Gro\u0308\u00dfe": ["1.234", "2.345"], "w": ["1.500 kg", "2,5 kg"]}, ";")
    new = read_table(Path(path), Format(thousands="point"), table.text)
    assert table.apply(new).tolist() == [[1234, 1500], [2345, 2.5]]
    path = write(tmp_path, {"Gro\u0308\u00dfe": ["1.234", "2.345"], "w": ["1.500 kg", "2"]}, ";")
    assert table.apply(read_table(Path(path), Format(thousands="point"), table.text))[:, 1].tolist() == [1500, 2]
    path = write(tmp_path, {"Gro\u0308\u00dfe": ["1,234", "2,345"], "w": ["1 kg", "2 kg"]}, ";")
    assert table.apply(read_table(Path(path), Format(), table.text))[:, 0].tolist() == [1234, 2345]
    new = read_table(Path(path), Format(thousands="none"), table.text)
    np.testing.assert_allclose(table.apply(new)[:, 0], [1.234, 2.345])


def test_a_level_of_one_row_does_not_say_how_its_numbers_are_written(tmp_path: Path) -> None:
    release = [("beta", "none", "1.5", "2.5")[k % 4] for k in range(90)]
    words = {"x": [f"{k}.25".replace(".", ",") for k in range(90)], "release": release}
    data = Csv(write(tmp_path, words | {"y": A % 7}, ";"), target="y", scaling="none").load(0)
    table = TablePreprocessing.from_json(data.extras[PREPROCESSING])
    path = write(tmp_path, {"x": ["2,5"], "release": ["1.5"]}, ";")
    assert table.apply(read_table(Path(path), Format(), table.text)).tolist() == [[2.5, 1, 0, 0, 0]]


def test_dates_as_targets_and_targets_that_are_no_numbers_raise_with_advice(tmp_path: Path) -> None:
    dates = pd.date_range("2020-01-01", periods=90).strftime("%d.%m.%Y").tolist()
    with pytest.raises(InputError, match=r"row 1, column 'y': '01.01.2020' is a date: a label must be a number"):
        Csv(write(tmp_path, {"y": dates, "x": A}), target="y").load(0)
    with pytest.raises(
        InputError, match=r"row 1, column 'y': 'tall' is not a number; .*thousands=, decimal=, missing="
    ):
        Csv(write(tmp_path, {"y": ["tall", *A[1:]], "x": A}), target="y").load(0)


def test_columns_with_types_of_their_own() -> None:
    for column, form in (
        (pd.Series(pd.date_range("2020-01-01", periods=3)), ISO),
        (pd.Series(pd.to_timedelta([1, 2], unit="h")), "duration"),
        (pd.Series([1.5, 2.0]), ""),
        (pd.Series(["1", " 2e3", "true"]), ""),
    ):
        assert read_column(column).form == form
