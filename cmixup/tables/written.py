"""Text that is a number or a time to a person: how a column writes it (its form), and what it says.

A form is a text of its own, and kept with a run:

- a number as an example, with the signs that group thousands and begin decimals, and its unit: "1,234.5 kg", "1234.5 %"
- a date as `strptime` has it, or `ISO`, which takes any offset from UTC; `WEEK` and `QUARTER` are at their first day
- `TIME` of day, with or without am and pm, and `DURATION`, such as "2 days 03:00:00", "1h 30m" or "P1DT2H"
"""

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np
import pandas as pd

from cmixup.sampling.inputs import Floats

#: Spellings of dates that are tried in turn: of 03/04/2024 the day comes first, unless some day of the column cannot.
STRPTIME = (
    *("%Y-%m-%d", "%Y/%m/%d", "%d.%m.%Y", "%d/%m/%Y", "%m/%d/%Y", "%d-%m-%Y", "%d %b %Y", "%d %B %Y", "%b %d, %Y"),
    *("%B %d, %Y", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M", "%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S%z", "%d-%b-%y"),
    *("%d.%m.%Y %H:%M", "%d.%m.%Y %H:%M:%S", "%d/%m/%Y %H:%M", "%m/%d/%Y %H:%M", "%d/%m/%Y %H:%M:%S"),
    *("%m/%d/%Y %H:%M:%S", "%m/%d/%Y %I:%M %p", "%m/%d/%Y %I:%M:%S %p", "%d.%m.%y", "%d/%m/%y", "%m/%d/%y", "%m/%Y"),
    *("%b %Y", "%B %Y", "%d %b %Y %H:%M", "%d %b %Y %H:%M:%S", "%Y/%m/%d %H:%M", "%Y/%m/%d %H:%M:%S"),
)
ISO, WEEK, QUARTER, TIME, DURATION = "ISO 8601", "ISO week", "quarter", "time of day", "duration"
THOUSANDS = {"comma": ",", "point": ".", "blank": " ", "apostrophe": "'"}
#: A column of so many words of one form, at least, is meant to have it.
MANY_WORDS = 10

#: Signs that are written in several ways: minus, blanks, apostrophes, percent.
SIGNS = str.maketrans(
    {**dict.fromkeys("\u2212\u2010\u2011\u2012\u2013\ufe63\uff0d", "-"), "\uff05": "%", "\uff0b": "+"}
    | dict.fromkeys("\u00a0\u2007\u2009\u202f\t", " ")
    | dict.fromkeys("\u2019\u02bc\u2032\u00b4`", "'")
)
SYMBOLS = "$\u20ac\u00a3\u00a5\u20b9\u20a9\u20bd\u20aa\u20ba\u20ab\u20b4\u0e3f\u20b1\u00a2\u20a6\u20b5\u20bf"
CODES = "USD|EUR|GBP|CHF|JPY|CNY|RMB|INR|AUD|CAD|NZD|SEK|NOK|DKK|PLN|CZK|HUF|RON|BRL|ZAR|MXN|SGD|HKD|KRW|TRY|ILS"
MONEY = rf"(?:[A-Z]{{0,3}}[{SYMBOLS}]|{CODES}|(?:Fr|Rs|kr)\.?)"
UNIT = rf"(?:[^\W\d_]|[%\u2030\u00b0\"{SYMBOLS}])[^\W_]*(?:[/.^%\u00b0\u00b7*-][^\W_]+)*\.?(?: [^\W\d_]+\.?)?"
CLOCK = re.compile(r"(-)?(\d{1,3})(?::(\d\d))?(?::(\d\d(?:[.,]\d+)?))? ?(?:([ap])\.?m\.?)?", re.IGNORECASE)
WEEKS = re.compile(r"(\d{4})[- ]?W(\d{1,2})(?:-?([1-7]))?", re.IGNORECASE)
QUARTERS = re.compile(r"(\d{4})[-/ ]?Q([1-4])|Q([1-4])[-/ ]?(\d{4})", re.IGNORECASE)


class Reading(NamedTuple):
    """How a column is read.

    A doubt says of numbers that read otherwise, too, what was taken, and the option that takes the other; of a column
    that nearly has a form what has not.
    """

    form: str  # of its texts; nothing if it is read as it stands, or holds no such text
    doubt: str = ""


def reading_of(words: Sequence[str], thousands: str = "auto", decimal: str = ".") -> Reading:
    """Return the first reading by which all known texts of a column are numbers or times, of no form if there is none.

    `thousands` is auto, none, or the name of a sign (`THOUSANDS`). A column may have the other `decimal` sign, too.
    """
    if not words:
        return Reading("")
    for form in (*STRPTIME, ISO, WEEK, QUARTER, TIME):
        if not (np.isnan(parsed(words[:1], form)).any() or np.isnan(parsed(words, form)).any()):
            return Reading(form)
    readings = list(_numerals(words, thousands, decimal))
    if readings:
        (form, first), doubt = readings[0], ""
        for other, values in readings[1:] if thousands == "auto" else ():
            if (row := np.flatnonzero(first != values)).size:
                sign = next((name for name, sign in THOUSANDS.items() if sign == other[1]), "none")
                doubt = (
                    f"{words[row[0]]!r} is taken for {first[row[0]]:g}; dataset.thousands={sign} takes it for "
                    f"{values[row[0]]:g}"
                )
                break
        return Reading(form, doubt)
    if not (np.isnan(parsed(words[:1], DURATION)).any() or np.isnan(parsed(words, DURATION)).any()):
        return Reading(DURATION)
    return Reading("", _nearly(words, thousands, decimal))


def _nearly(words: Sequence[str], thousands: str, decimal: str) -> str:
    """Return a line if most words are numbers or times of one form, but for some without a digit or a unit."""
    for left_out, cure in (
        (r"\D*", "dataset.missing=[{}] takes it for unknown"),
        (r"\D*|[-+.,\d]*", "give all one unit"),
    ):
        others = [word for word in words if re.fullmatch(left_out, word)]
        most = [word for word in words if not re.fullmatch(left_out, word)]
        if MANY_WORDS <= len(most) > len(others) > 0 and (form := reading_of(most, thousands, decimal).form):
            return f"read as levels, since {others[-1]!r} is not like {form}; {cure.format(others[-1])}"
    return ""


def parsed(words: Sequence[str], form: str) -> Floats:
    """Return texts (n,) as numbers, or as days, by their form; NaN where one has another."""
    if form[0] == "1":
        thousands, decimal, unit = signs_of(form)
        return np.array([value if of in ("", unit) else np.nan for value, of in _values(words, thousands, decimal)])
    if form == TIME:
        return np.array([_time(word) for word in words])
    if form == DURATION:
        texts = [word if re.search("[^\\W\\d]|:", word) else None for word in words]
        lengths = pd.to_timedelta(pd.Series(texts, dtype=object), errors="coerce")
        return (lengths / pd.Timedelta(days=1)).to_numpy(np.float64)
    if form in (WEEK, QUARTER):
        words, form = [_first_day(word, form) for word in words], "%G-W%V-%u" if form == WEEK else "%Y-%m-%d"
    if form == ISO:
        words, form = [word if re.match(r"\d{4}-\d", word) else "" for word in words], "ISO8601"
    dates = pd.to_datetime(pd.Series(words, dtype=object), format=form, errors="coerce", utc=True)
    days: Floats = ((dates - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1)).to_numpy(np.float64)
    return days


def signs_of(form: str) -> tuple[str, str, str]:
    """Return the signs of thousands and decimals of a number's form, and its unit."""
    match = re.fullmatch(r"1(\D?)234(\D)5(?: (.+))?", form)
    assert match is not None
    return match[1], match[2], match[3] or ""


def unit_of(form: str) -> str:
    """Return the unit of a column of a form; nothing where none is known."""
    return signs_of(form)[2] if form[:1] == "1" else "days" if form else ""


def _numerals(words: Sequence[str], thousands: str, decimal: str) -> Iterator[tuple[str, Floats]]:
    """Yield the forms of numbers by which all words are of one unit, with their values, preferred first."""
    written = set("".join(words).translate(SIGNS))
    for sign, point in _pairs(thousands, decimal):
        if sign and sign not in written:  # as without it
            continue
        if np.isnan(_values(words[:1], sign, point)[0][0]):
            continue
        values = _values(words, sign, point)
        units = {unit for _, unit in values}
        if len(units) == 1 and not np.isnan(numbers := np.array([value for value, _ in values])).any():
            yield f"1{sign}234{point}5 {units.pop()}".rstrip(), numbers


def _pairs(thousands: str, decimal: str) -> list[tuple[str, str]]:
    """Return the signs of thousands and decimals that are tried in turn."""
    points = (decimal, "," if decimal == "." else ".")
    if thousands in THOUSANDS:
        sign = THOUSANDS[thousands]
        others = [point for point in points if point != sign]
        return [(sign, point) for point in others] + [("", point) for point in others]
    signs = ("",) if thousands == "none" else ("", *THOUSANDS.values())
    return [(sign, point) for point in points for sign in signs if sign != point]


@lru_cache
def _pattern(thousands: str, decimal: str) -> re.Pattern[str]:
    whole = rf"(?:[1-9]\d{{0,2}}(?:{re.escape(thousands)}\d{{2,3}})*{re.escape(thousands)}\d{{3}}|\d+)"
    whole, point = whole if thousands else r"\d+", re.escape(decimal)
    number = rf"(?:{whole}(?:{point}\d*)?|{point}\d+)(?:[eE][+-]?\d+)?"
    return re.compile(rf"(\(|[+-])? ?({MONEY})? ?([+-])?({number}) ?({UNIT})?([)-])?")


def _values(words: Sequence[str], thousands: str, decimal: str) -> list[tuple[float, str]]:
    """Return numbers and their units, NaN for a word that is none."""
    pattern, numbers = _pattern(thousands, decimal), list[tuple[float, str]]()
    for word in words:
        match = pattern.fullmatch(re.sub(r"[.,]-+$", "", word.translate(SIGNS).strip()))  # 5.- is how 5.00 is written
        first, money, second, number, unit, last = match.groups() if match else (None,) * 6
        if number is None or (first == "(") != (last == ")") or sum(map(bool, (first, second, last == "-"))) > 1:
            numbers.append((np.nan, ""))
            continue
        value = float((number.replace(thousands, "") if thousands else number).replace(decimal, "."))
        unit = "".join((money or "", unit or "")).rstrip(".")
        unit = unit.removesuffix("s") if len(unit) > 2 and unit.isalpha() else unit  # 1 year, 2 years
        numbers.append((-value if "-" in (first, second, last) or first == "(" else value, unit))
    return numbers


def _time(word: str) -> float:
    """Return a time of day, or a duration in hours, minutes and seconds, as days; NaN for another text."""
    match = CLOCK.fullmatch(word.translate(SIGNS).strip())
    if match is None or not (match[3] or match[5]) or float(match[3] or 0) >= 60:
        return np.nan
    hours = int(match[2]) if not match[5] else int(match[2]) % 12 + 12 * (match[5].lower() == "p")
    seconds = float((match[4] or "0").replace(",", "."))
    days = (hours + (int(match[3] or 0) + seconds / 60) / 60) / 24
    return -days if match[1] else days


def _first_day(word: str, form: str) -> str:
    """Return the first day of a week or quarter, nothing for another text."""
    if form == QUARTER:
        match = QUARTERS.fullmatch(word)
        return f"{match[1] or match[4]}-{3 * int(match[2] or match[3]) - 2:02d}-01" if match else ""
    match = WEEKS.fullmatch(word)
    return f"{match[1]}-W{match[2]}-{match[3] or 1}" if match else ""
