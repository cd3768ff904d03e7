"""Text that is a number or a time to a person: how a column writes it (its form), and what it says.

A form is a text of its own, and kept with a run:

- a number as an example, with the signs that group thousands and begin decimals, and its unit: "1,234.5 kg", "1234.5 %"
- a date as `strptime` has it, but years of two digits are 1930 to 2029, or `ISO`, which takes any offset from UTC;
  `WEEK` and `QUARTER` are at their first day
- whole numbers as times: "%Y%m%d", "%Y%m" (also with hours, minutes and seconds) and "s since 1970" (also ms, us, ns)
- `TIME` of day, with or without am and pm, and `DURATION`, such as "2 days 03:00:00", "1h 30m" or "P1DT2H"
"""

import re
from collections.abc import Iterator, Sequence
from datetime import date
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd

from cmixup.sampling.inputs import Floats

#: Dates of numbers alone, whose day or month comes first: of 03/04/2024 the day, unless some day of the column cannot.
DAY_FIRST = tuple(
    f"%d{sign}%m{sign}{year}{clock}"
    for sign in "./-" for year in ("%Y", "%y")
    for clock in ("", " %H:%M", " %H:%M:%S", " %H:%M:%S.%f", " %I:%M %p", " %I:%M:%S %p")
)  # fmt: skip
#: Other spellings of dates, which are tried in turn.
STRPTIME = (
    *("%Y-%m-%d", "%Y/%m/%d", "%d %b %Y", "%d %B %Y", "%b %d, %Y", "%B %d, %Y", "%Y-%m-%d %H:%M:%S", "%Y-%m-%d %H:%M"),
    *("%Y-%m-%dT%H:%M:%S", "%Y-%m-%dT%H:%M:%S%z", "%d-%b-%y", "%m/%Y", "%b %Y", "%B %Y", "%b-%y", "%YM%m"),
    *("%d-%b-%Y", "%d-%b-%Y %H:%M", "%d-%b-%Y %H:%M:%S", "%d%b%Y", "%Y.%m.%d", "%b %d %Y", "%B %d %Y"),
    *("%d %b %Y %H:%M", "%d %b %Y %H:%M:%S", "%a %b %d %H:%M:%S %Y", "%Y/%m/%d %H:%M", "%Y/%m/%d %H:%M:%S"),
)
#: Whole numbers as times: how many of a unit since 1970 are a day, by the form, and dates without a sign between
#: with the number that a year is.
SINCE = {f"{unit} since 1970": 86_400 * times for unit, times in (("s", 1), ("ms", 1e3), ("us", 1e6), ("ns", 1e9))}
PLAIN = {"%Y%m": 100, "%Y%m%d": 1e4, "%Y%m%d%H": 1e6, "%Y%m%d%H%M": 1e8, "%Y%m%d%H%M%S": 1e10}
ISO, WEEK, QUARTER, TIME, DURATION = "ISO 8601", "ISO week", "quarter", "time of day", "duration"
THOUSANDS = {"comma": ",", "point": ".", "blank": " ", "apostrophe": "'"}
#: A number, and one with a sign, letters or a second number beside it, such as 545k, <0.1, ="5", 5.4+-0.1 or 5-6.
NUMERAL = re.compile(r"[-+]?(?:\d+[.,]?\d*|[.,]\d+)(?:[eE][-+]?\d+)?")
ALMOST = re.compile(
    r"\W{0,3}\d[\d.,]*(?: ?[^\W\d_]{0,3}\W{0,2}| ?(?:[-/:_x\u2013\u00b1\u00d7]|\+/?-|\u00d7 ?10\^) ?-?\d[\d.,]*)"
)
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
SMALL = "\u00b2\u00b3\u00b9\u00bc-\u00be\u2070-\u208e\u2150-\u215f"  # digits and fractions, which are no unit
UNIT = rf"(?:[^\W\d_{SMALL}]|[%\u2030\u00b0\"{SYMBOLS}])[^\W_]*(?:[/.^%\u00b0\u00b7*-][^\W_]+)*\.?(?: [^\W\d_]+\.?)?"
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
    other: str = ""  # form of dates by which the texts read otherwise, if there is one


def reading_of(words: Sequence[str], thousands: str = "auto", decimal: str = ".", dayfirst: Any = "auto") -> Reading:
    """Return the first reading by which all known texts of a column are numbers or times, of no form if there is none.

    `thousands` is auto, none, or the name of a sign (`THOUSANDS`). A column may have the other `decimal` sign, too. Of
    dates that read both ways `dayfirst`, True or False, takes one.
    """
    if not words:
        return Reading("")
    if re.match(r"\d{1,2}[./-]\d{1,2}[./-]\d", words[0]):
        in_order = (_in_order([form, month_first(form)], words, dayfirst) for form in DAY_FIRST)
        if reading := next(filter(None, in_order), None):
            return reading
    for form in (*STRPTIME, ISO, WEEK, QUARTER, TIME):
        if _fits(words, form):
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
    if _fits(words, DURATION):
        return Reading(DURATION)
    return Reading("", _nearly(words, thousands, decimal))


def _fits(words: Sequence[str], form: str) -> bool:
    return not (np.isnan(parsed(words[:1], form)).any() or np.isnan(parsed(words, form)).any())


def month_first(form: str) -> str:
    """Return a form of dates with day and month exchanged."""
    return form.translate(str.maketrans("dm", "md"))


def _in_order(forms: list[str], words: Sequence[str], dayfirst: Any) -> Reading | None:
    """Return how dates of numbers are read whose day comes first, or whose month does; the doubt where both fit."""
    fitting = [form for form in (forms if dayfirst is not False else forms[::-1]) if _fits(words, form)]
    if not fitting:
        return None
    days, *others = (parsed(words, form) for form in fitting)
    if dayfirst != "auto" or not others or not (row := np.flatnonzero(days != others[0])).size:
        return Reading(fitting[0])
    taken, alternative = (
        f"{np.datetime64(int(read[row[0]]), 'D')} ({form})" for read, form in zip((days, *others), fitting, strict=True)
    )
    doubt = f"{words[row[0]]!r} is taken for {taken}; dataset.dayfirst=false takes it for {alternative}"
    return Reading(fitting[0], doubt, fitting[1])


def form_of_times(numbers: Floats) -> str:
    """Return the form of numbers that are times: 20240131, 202401, since 1970, or nothing of other numbers."""
    words = [f"{number:.0f}" for number in numbers]
    for form, year in PLAIN.items():
        in_range = (numbers > 1700 * year) & (numbers < 2200 * year) & (numbers == np.floor(numbers))
        if in_range.all() and _fits(words, form):
            return form
    years = numbers.min() / 365.25, numbers.max() / 365.25
    return next((form for form, day in SINCE.items() if years[0] > 10 * day and years[1] < 130 * day), "")


def _nearly(words: Sequence[str], thousands: str, decimal: str) -> str:
    """Return a line if most words are numbers or times of one form, or look like numbers, but for some."""
    if len(words) < MANY_WORDS:
        return ""
    for form in {reading_of([word], thousands, decimal).form for word in words[:MANY_WORDS]} - {""}:
        bare = r"[-+.,\d]*" if unit_of(form) and form[0] == "1" else ""  # a number without the unit of others
        fits = ~np.isnan(parsed(words, form)) & [not re.fullmatch(bare, word) for word in words]
        if MANY_WORDS <= fits.sum() > len(words) / 2:
            first = words[int(np.argmin(fits))]
            problem = f"{len(words) - fits.sum()} of {len(words)} values are not like {form}, such as {first!r}"
            return f"{problem}; read as levels: write all alike, or dataset.missing=[{first}] takes it for unknown"
    others = [word for word in words if not NUMERAL.fullmatch(word)]
    if others and len(words) > 2 * sum(not ALMOST.fullmatch(word) for word in words):
        examples = ", ".join(map(repr, others[:3]))
        return f"{len(others)} of {len(words)} values are no numbers, such as {examples}; read as levels: write numbers"
    return ""


def parsed(words: Sequence[str], form: str) -> Floats:
    """Return texts (n,) as numbers, or as days, by their form; NaN where one has another."""
    if form[0] == "1":
        thousands, decimal, unit = signs_of(form)
        return np.array([value if u in ("", unit) else np.nan for value, u in _values(words, thousands, decimal)])
    if form in SINCE:
        numbers: Floats = pd.to_numeric(pd.Series(words, dtype=object), errors="coerce").to_numpy(np.float64)
        return numbers / SINCE[form]
    if form == TIME:
        return np.array([_time(word) for word in words])
    if form == DURATION:
        texts = [word if re.search("[^\\W\\d]|:", word) else None for word in words]
        lengths = pd.to_timedelta(pd.Series(texts, dtype=object), errors="coerce")
        return (lengths / pd.Timedelta(days=1)).to_numpy(np.float64)
    if form in (WEEK, QUARTER):
        words, form = [_first_day(word, form) for word in words], "%Y-%m-%d"
    if form == ISO:
        words, form = [word if re.match(r"\d{4}-\d|\d{8}T", word) else "" for word in words], "ISO8601"
    dates = pd.to_datetime(pd.Series(words, dtype=object), format=form, errors="coerce", utc=True)
    if "%y" in form:  # 30 to 68 are of the last century, as in spreadsheets, not of this one, as in strptime
        dates = dates.mask(dates.dt.year >= 2030, dates - pd.DateOffset(years=100))
    epoch = pd.Timestamp(0, tz="UTC")
    try:
        lengths = dates - epoch
    except pd.errors.OutOfBoundsDatetime:  # nanoseconds hold 1677 to 2262
        lengths = dates - epoch.as_unit("s")
    days: Floats = (lengths / pd.Timedelta(days=1)).to_numpy(np.float64)
    return days


def signs_of(form: str) -> tuple[str, str, str]:
    """Return the signs of thousands and decimals of a number's form, and its unit."""
    match = re.fullmatch(r"1(\D?)234(\D)5(?: (.+))?", form)
    assert match is not None
    return match[1], match[2], match[3] or ""


def form_with_signs(words: Sequence[str], form: str, thousands: str, decimal: str) -> str:
    """Return a number's form with the first signs by which all words are of its unit, or none; itself without any."""
    unit = signs_of(form)[2]
    forms = (f"1{sign}234{point}5 {unit}".rstrip() for sign, point in _sign_pairs(thousands, decimal))
    return next((other for other in forms if _fits(words, other)), form)


def kind_of(form: str) -> str:
    """Return the kind of a form: number, time, duration or date; nothing without a form."""
    return {"": "", "1": "number", "t": "time", "d": "duration"}.get(form[:1], "date")


def unit_of(form: str) -> str:
    """Return the unit of a column of a form; nothing where none is known."""
    return signs_of(form)[2] if form[:1] == "1" else "days" if form else ""


def _numerals(words: Sequence[str], thousands: str, decimal: str) -> Iterator[tuple[str, Floats]]:
    """Yield the forms of numbers by which all words are of one unit, with their values, preferred first."""
    characters = set("".join(words).translate(SIGNS))
    for sign, point in _sign_pairs(thousands, decimal):
        if sign and sign not in characters:  # as without it
            continue
        if np.isnan(_values(words[:1], sign, point)[0][0]):
            continue
        values = _values(words, sign, point)
        units = {unit for _, unit in values}
        if len(units) == 1 and not np.isnan(numbers := np.array([value for value, _ in values])).any():
            yield f"1{sign}234{point}5 {units.pop()}".rstrip(), numbers


def _sign_pairs(thousands: str, decimal: str) -> list[tuple[str, str]]:
    """Return the signs of thousands and decimals that are tried in turn."""
    points = (decimal, "," if decimal == "." else ".")
    named = THOUSANDS.get(thousands, "")
    signs = (named, "") if named else ("",) if thousands == "none" else ("", *THOUSANDS.values())
    return [(sign, point) for point in points for sign in signs if point not in (sign, named)]


@lru_cache
def _pattern(thousands: str, decimal: str) -> re.Pattern[str]:
    integer = rf"(?:[1-9]\d{{0,2}}(?:{re.escape(thousands)}\d{{2,3}})*{re.escape(thousands)}\d{{3}}|\d+)"
    integer, point = integer if thousands else r"\d+", re.escape(decimal)
    number = rf"(?:{integer}(?:{point}\d*)?|{point}\d+)(?:[eE][+-]?\d+)?"
    return re.compile(rf"(\(|[+-])? ?({MONEY})? ?([+-])?({number}) ?({UNIT})?([)-])?")


def _values(words: Sequence[str], thousands: str, decimal: str) -> list[tuple[float, str]]:
    """Return numbers and their units, NaN for a word that is none."""
    pattern, numbers = _pattern(thousands, decimal), list[tuple[float, str]]()
    for word in words:
        if word.replace(decimal, "", 1).isdecimal():  # as most are, and fast
            numbers.append((float(word.replace(decimal, ".")), ""))
            continue
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
    try:  # not all versions of pandas refuse a week that the year does not have
        return str(date.fromisocalendar(int(match[1]), int(match[2]), int(match[3] or 1))) if match else ""
    except ValueError:
        return ""
