"""The kinds of an own table's columns: labels, numbers, categories; and how features are fitted on training rows."""

import re

import numpy as np
import pandas as pd

from cmixup.errors import InputError, shortened
from cmixup.inputs.spread import VANISH, varies
from cmixup.tables.checks import looks_like_id
from cmixup.tables.columns import (
    Category,
    Constant,
    Number,
    as_numbers,
    as_words,
    cell,
    checked_numbers,
    level_counts,
    read_column,
)
from cmixup.tables.written import DURATION, TIME, Reading

#: Text that is meant as a number: one with another decimal sign, or with groups of thousands.
NUMERAL = re.compile(r"[+-]?(?:\d*[.,]\d+|\d{1,3}(?:[.,' ]\d{3})+(?:[.,]\d+)?)")
#: Whole numbers are looked at for row numbers, and a rare level is one of fewer rows than these.
MIN_ID_ROWS, MIN_LEVEL_ROWS = 20, 5


def label_column(values: pd.Series, source: str) -> tuple[np.ndarray, Reading]:
    """Return a column of labels as `(N,)` float64, NaN where nothing is known, and how it is written; no dates."""
    reading = read_column(values)
    _, wrong = as_numbers(values, reading.form)
    if reading.form and reading.form[0] != "1" and reading.form not in (TIME, DURATION):
        where = cell(values, int(np.argmax(values.notna())), source)
        raise InputError(f"{where} is a date: a label must be a number, such as the days since the first one")
    if wrong.any():
        cure = "fix it, or say how numbers are written: thousands=, decimal=, missing=[...]"
        raise InputError(f"{cell(values, int(np.argmax(wrong)), source)} is not a number; {cure}")
    return checked_numbers(values, source, reading.form), reading


def holds_categories(values: pd.Series, source: str) -> bool:
    """Return whether a column holds categories: half or more of its known values are no numbers.

    A few that are no numbers among many that are, and values that are meant as numbers, are refused.
    """
    numbers, wrong = as_numbers(values)
    count = int(wrong.sum())
    if not count:
        return False
    where, name = cell(values, int(np.argmax(wrong)), source), str(values.name)
    if count < (~np.isnan(numbers)).sum():
        cure = f"fix it, or give missing=[...] or categorical=[{shortened([name])}]"
        raise InputError(f"{where} is not a number, as most of the column are; {cure}")
    if sum(bool(NUMERAL.fullmatch(str(value).strip())) for value in values[wrong].iloc[:1000]) > min(count, 1000) / 2:
        raise InputError(
            f"{where} looks like a number, but others are written otherwise: fix them, or give thousands=, decimal= "
            f"or categorical=[{shortened([name])}]"
        )
    return True


def fit_number(values: pd.Series, scaling: str, keep: bool, source: str, form: str = "") -> Number | Constant | str:
    """Return a numeric column fitted on its training values, in the order of the file; or why it is dropped.

    It is dropped if nothing is known, and, unless `keep`, if it numbers the rows (`numbers_rows`); dates may well be in
    order, and stay. `scaling` is standard (mean 0, standard deviation 1), minmax ([0, 1]) or none.
    """
    numbers = checked_numbers(values, source, form)
    known = numbers[~np.isnan(numbers)]
    missing = len(known) < len(numbers)
    if not len(known):
        return "nothing known in training"
    vary = varies(known.min(), known.max(), len(known))
    if not vary and not missing:
        return Constant(str(values.name), float(known[0]), form)
    if not keep and form[:1] in ("", "1") and not missing and numbers_rows(known):
        return "numbers the rows"
    median = float(np.median(known))
    filled = np.where(np.isnan(numbers), median, numbers)
    shift, scale = 0.0, 1.0
    if scaling == "standard":
        shift, scale = float(filled.mean()), float(filled.std())
    elif scaling == "minmax":
        shift, scale = float(filled.min()), float(filled.max() - filled.min())
    if not vary:  # one value is known, and not everywhere
        shift, scale = median, VANISH
    return Number(str(values.name), median, shift, scale, missing, form)


def numbers_rows(known: np.ndarray) -> bool:
    """Return whether 20 or more whole numbers are all different, and in order or within a span of twice their count."""
    return looks_like_id(known, rows=MIN_ID_ROWS, different=1.0)


def fit_category(values: pd.Series, rare: float) -> Category | Constant | str:
    """Return a column of categories fitted on its training values; or why it is dropped.

    It is dropped if every level is rare, as names and other identities are: levels with less
    than the share `rare` of the rows, or fewer than 5 of them, become one.
    """
    codes, words = as_words(values)
    counts = level_counts(codes, words)
    levels = tuple(sorted(w for w, count in counts.items() if count >= max(MIN_LEVEL_ROWS, rare * len(values))))
    missing = sum(counts.values()) < len(values)
    if not counts:
        return "nothing known in training"
    if len(counts) == 1 and not missing:
        return Constant(str(values.name), words[0])
    if not levels:
        wrong = as_numbers(pd.Series(words, dtype=object))[1]
        with_digits = [word for word, bad in zip(words, wrong, strict=True) if bad and any(map(str.isdigit, word))]
        cure = f"; {len(with_digits)} hold digits, such as {with_digits[:1]}: write numbers or dates if they are some"
        return f"{len(counts)} levels, all rare{cure if with_digits else ''}"
    rare_levels = tuple(sorted(counts.keys() - set(levels)))
    return Category(str(values.name), levels, bool(rare_levels), missing, rare_levels)
