"""Columns of a table: the kind of each, and how it becomes features; fitted on training rows alone."""

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from cmixup.errors import MAX_TEXT, InputError, format_value, nearest, shortened
from cmixup.inputs.spread import VANISH, is_new
from cmixup.tables.days import DATES, DURATIONS, TIMES, days_of
from cmixup.tables.levels import LOGICAL, level_places, places_of
from cmixup.tables.written import (
    DURATION,
    ISO,
    PLAIN,
    SINCE,
    THOUSANDS,
    TIME,
    Reading,
    form_with_signs,
    kind_of,
    parsed,
    reading_of,
    signs_of,
)

#: Cells that stand for an unknown value.
MISSING = ("", "NA", "N/A", "n/a", "#N/A", "NaN", "nan", "NULL", "null", "None", "?", "<NA>", "NaT")
LARGEST = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class Number:
    """A numeric column: unknown values get the median, and the result is `(value - shift) / scale`."""

    kind: str = field(default="number", kw_only=True)
    name: str
    median: float  # of the known training values
    shift: float  # as the scale, which is above 0, fitted on the training rows after these got the median
    scale: float
    missing: bool  # whether a second feature says which values were unknown: if one of training was
    form: str = ""  # how it is written (`cmixup.tables.written`); nothing for plain numbers

    @property
    def features(self) -> list[str]:
        """Names of its features."""
        return [self.name, f"{self.name} is missing"] if self.missing else [self.name]

    def has_new(self, values: pd.Series) -> bool:
        """Return whether training had one value alone, and rows have another."""
        return self.scale >= VANISH and bool(is_new(as_numbers(values, self.form)[0], self.shift))

    def encode(self, values: pd.Series, out: np.ndarray, source: str) -> None:
        """Write the features of `values: (N,)` into `out: (N, len(features))`, which holds zeros."""
        numbers = checked_numbers(values, source, self.form)
        unknown = np.isnan(numbers)
        out[:, 0] = (np.where(unknown, self.median, numbers) - self.shift) / self.scale
        if self.missing:
            out[:, 1] = unknown


@dataclass(frozen=True)
class Constant:
    """A column that had one value in training: no feature."""

    kind: str = field(default="constant", kw_only=True)
    name: str
    value: float | str
    form: str = ""  # as that of a `Number`
    features: ClassVar[list[str]] = []

    def has_new(self, values: pd.Series) -> bool:
        """Return whether rows have another value; unknown ones do not count."""
        if isinstance(self.value, str):
            find = places_of((self.value,))
            return any(find(word) < 0 for word in as_words(values)[1])
        numbers, wrong = as_numbers(values, self.form)
        return bool(wrong.any() or is_new(numbers, self.value))


@dataclass(frozen=True)
class Category:
    """A column of categories, one feature a level: 1 in the rows that have it, else 0.

    Rare levels share a feature with every level that training has not seen. Without it (`other`), and without that of
    rows without a value (`missing`), such rows have zeros everywhere.
    """

    kind: str = field(default="category", kw_only=True)
    name: str
    levels: tuple[str, ...]  # that training rows have often enough, sorted
    other: bool
    missing: bool
    rare: tuple[str, ...] = ()

    @property
    def features(self) -> list[str]:
        """Names of its features."""
        extra = ["(other)"] * self.other + ["(missing)"] * self.missing
        return [f"{self.name}={level}" for level in (*self.levels, *extra)]

    def encode(self, values: pd.Series, out: np.ndarray, source: str) -> None:
        """Write the features of `values: (N,)` into `out: (N, len(features))`, which holds zeros.

        A warning names a column where more than half of the rows have levels that training has not seen.
        """
        codes, words = as_words(values)
        n_levels, known = len(self.levels), (*self.levels, *self.rare)
        level_at = level_places(f"{source}, column {self.name}", level_counts(codes, words), known)
        rest_place, gap_place = (n_levels if self.other else -1), (n_levels + self.other if self.missing else -1)
        place = np.array([*(at if 0 <= at < n_levels else rest_place for at in level_at.values()), gap_place])[codes]
        rows = np.flatnonzero(place >= 0)
        out[rows, place[rows]] = 1.0


def read_column(values: pd.Series) -> Reading:
    """Return how a column is written, of no form where it is read as it stands; see `reading_of`.

    What groups thousands and begins decimals in its table stands in its `attrs`, if that is known.
    """
    thousands, decimal = values.attrs.get("thousands", "auto"), values.attrs.get("decimal", ".")
    if (times := days_of(values)) is not None:
        return Reading({DATES: ISO, DURATIONS: DURATION, TIMES: TIME}[times[1]])
    if pd.api.types.is_numeric_dtype(values):
        return Reading("")
    words = as_words(values)[1]
    plain = not as_numbers(pd.Series(words, dtype=object))[1].any()
    if plain and thousands not in THOUSANDS:  # else new rows may have the sign, though these do not
        return Reading("")
    return reading_of(words, thousands, decimal, values.attrs.get("dayfirst", "auto"))


def as_numbers(values: pd.Series, form: str = "") -> tuple[np.ndarray, np.ndarray]:
    """Return a column as `(N,)` float64, NaN where nothing is known, and `(N,)` bool: where it holds no number.

    Texts are read as numbers, with the signs of their table (see `read_column`), and true and false as 1 and 0; or by a
    form. Numbers of a form may be written with other signs for thousands and decimals, or stand as they are.
    """
    if pd.api.types.is_numeric_dtype(values) and form not in (*PLAIN, *SINCE):
        numbers = values.to_numpy(np.float64, na_value=np.nan)
        return numbers, np.full(len(values), form[:1] not in ("", "1")) & ~np.isnan(numbers)
    if form and (times := days_of(values)) is not None:
        mixed = (times[1] == DATES) != (kind_of(form) == "date") or form[:1] == "1"
        return times[0], np.full(len(values), mixed) & ~np.isnan(times[0])
    codes, words = as_words(values)
    if not form:
        texts = [LOGICAL.get(word.lower(), word) for word in words]
        sign, decimal = THOUSANDS.get(values.attrs.get("thousands", ""), ""), values.attrs.get("decimal", ".")
        numbers = pd.to_numeric(pd.Series(texts, dtype=object), errors="coerce").to_numpy(np.float64)
        if sign or decimal != ".":  # of a file whose numbers are written so, and were left as text
            numbers = min(parsed(texts, f"1{sign}234{decimal}5"), numbers, key=lambda read: np.isnan(read).sum())
    else:
        numbers, attrs = parsed(words, form) if words else np.empty(0), values.attrs
        if kind_of(form) == "number":
            sign, decimal, _ = signs_of(form)
            # Signs that are given for this file hold, whatever training had.
            stated = {"none": "", **THOUSANDS}.get(attrs.get("thousands", ""), sign) != sign
            if stated or np.isnan(numbers).any():
                signs = (attrs["thousands"], attrs["decimal"]) if stated else ("auto", decimal)
                numbers = parsed(words, form_with_signs(words, form, *signs))
        elif kind_of(form) == "date" and np.isnan(numbers).any():  # T, Z and seconds are written or not
            numbers = np.where(np.isnan(numbers), parsed(words, ISO), numbers)
    return np.append(numbers, np.nan)[codes], np.append(np.isnan(numbers), False)[codes]


def as_words(values: pd.Series) -> tuple[np.ndarray, list[str]]:
    """Return a column as codes `(N,)` of its words, -1 where nothing is known; 7, 7.0 and "7 " are one word."""
    try:
        codes, uniques = pd.factorize(values)
    except TypeError as error:  # lists and other values that have no hash
        raise InputError(f"column {str(values.name)!r} must hold numbers and texts: {error}") from None
    places, words = pd.factorize(np.array([_word(value) for value in uniques], dtype=object))
    return np.append(places, -1)[codes], list(words)


def level_codes(values: pd.Series) -> np.ndarray:
    """Return the place of each row's word among the column's, sorted, `(N,)` int64; -1 where nothing is known."""
    codes, words = as_words(values)
    place = {word: k for k, word in enumerate(sorted(words))}
    return np.array([*(place[word] for word in words), -1], dtype=np.int64)[codes]


def level_counts(codes: np.ndarray, words: Sequence[str]) -> dict[str, int]:
    """Return how many rows have each level of a column, given as by `as_words`."""
    counts = np.bincount(codes[codes >= 0], minlength=len(words))
    return dict(zip(words, counts.tolist(), strict=True))


def _word(value: Any) -> str | None:
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    word = str(value).strip()
    return None if word in MISSING else word


def checked_numbers(values: pd.Series, source: str, form: str = "") -> np.ndarray:
    """Return a column of a form as `(N,)` float64, NaN where nothing is known; see `as_numbers`.

    A value that is no number, or too large for float32, raises `InputError` with its row by the series' index.
    """
    numbers, wrong = as_numbers(values, form)
    if wrong.any():
        problem = f"no {kind_of(form)} like {form}" if form else "not a number"
        raise InputError(f"{cell(values, int(np.argmax(wrong)), source)} is {problem}")
    large = np.abs(numbers) > LARGEST
    if large.any():
        raise InputError(f"{cell(values, int(np.argmax(large)), source)} is too large: numbers become float32")
    return numbers


def checked_columns(frame: pd.DataFrame, names: Sequence[str], source: str) -> pd.DataFrame:
    """Return a table with texts as names of columns; each column that is read must be there once."""
    known = [str(name) for name in frame]
    renamed = {alike(name, known): name for name in names if name not in known}
    known = [renamed.get(name, name) for name in known]
    if missing := [name for name in names if name not in known]:
        others = f" and {len(missing) - 1} more ({shortened(missing[1:])})" if len(missing) > 1 else ""
        raise InputError(f"{source} has no column {format_value(missing[0])}{others}{nearest(missing[0], known)}")
    for name in names:
        if known.count(name) > 1:
            raise InputError(f"{source} has {known.count(name)} columns {format_value(name)}, expected one")
    return frame.set_axis(known, axis=1)


def looks(name: str) -> str:
    """Return a name in one form of each letter, without characters that nobody sees."""
    return "".join(sign for sign in unicodedata.normalize("NFC", name) if unicodedata.category(sign) != "Cf").strip()


def alike(name: str, known: Sequence[str]) -> str:
    """Return the known name that looks as a name does, itself if none or several do."""
    matches = [] if name in known else [candidate for candidate in known if looks(candidate) == looks(name)]
    return matches[0] if len(matches) == 1 else name


def cell(values: pd.Series, place: int, source: str) -> str:
    """Return the words that errors call a cell by, the last of them its value."""
    value = values.iloc[place]
    text = format_value(value) if isinstance(value, str) else str(value)[:MAX_TEXT]
    return f"{source}, row {values.index[place]}, column {format_value(str(values.name))}: {text}"
