"""Levels of categories: the same however they are spelled, for estimators, saved runs and datasets alike.

`level_of` reads a value, `places_of` finds it among the levels of training, and `level_places` those of a column.
Needs no pandas.
"""

import math
import unicodedata
import warnings
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import cache, lru_cache
from numbers import Integral, Real
from typing import Any, TypeVar

#: A number or a text.
Level = str | float
AnyLevel = TypeVar("AnyLevel", str, Level)
#: From here on float64 does not hold every whole number, so that IDs would become others.
EXACT = 2.0**53
LOGICAL = {"true": "1", "false": "0"}
MOST_NAMED = 3  # levels in a line


def is_missing(value: Any) -> bool:
    """Return whether a value stands for nothing: None, NaN, NaT and pandas' NA."""
    try:
        return value is None or bool(value != value)  # noqa: PLR0124 - NaN
    except TypeError:  # NA is neither equal nor unequal
        return True
    except ValueError:  # an array
        return False


def level_of(value: Any) -> Level | None:
    """Return a value as a level: numbers and booleans as floats, all else as text without blanks around it.

    None stands for a gap, which a text of blanks is, too.
    """
    if is_missing(value):
        return None
    if not isinstance(value, Real):
        return str(value).strip() or None
    return str(int(value)) if isinstance(value, Integral) and abs(int(value)) > EXACT else float(value)


def spelling(level: Level) -> str:
    """Return the text of a level, which is that of 7 for 7.0."""
    if isinstance(level, str):
        return level
    return str(int(level)) if level.is_integer() else repr(level)


def distinct(levels: Collection[Level]) -> list[Level]:
    """Return levels, sorted, numbers before text; a text that spells a number among them is that number."""
    by_spelling = {spelling(level): level for level in sorted(levels, key=lambda level: not isinstance(level, str))}
    return sorted(by_spelling.values(), key=lambda level: (isinstance(level, str), level))


@lru_cache(maxsize=32)  # of thousands of levels it takes longer than the prediction of a row
def places_of(levels: tuple[Level, ...]) -> Callable[[Level], int]:
    """Return a function that finds the place of a level, -1 for one that training did not have.

    A spelling of its own decides. Another one ("01", "1.0" and "TRUE" for 1, composed and decomposed letters) means the
    same level unless training had several of them.
    """
    exact = {spelling(level): place for place, level in enumerate(levels)}

    @cache
    def by_common() -> dict[str, int]:  # needed by none but other spellings
        places: dict[str, set[int]] = {}
        for word, place in exact.items():
            places.setdefault(_common_form(word), set()).add(place)
        return {word: codes.pop() for word, codes in places.items() if len(codes) == 1}

    def find(level: Level) -> int:
        word = spelling(level)
        if word in exact:
            return exact[word]
        common = _common_form(word)
        return exact[common] if common in exact else by_common().get(common, -1)

    return find


def level_places(name: str, counts: Mapping[AnyLevel, int], levels: Sequence[Level]) -> dict[AnyLevel, int]:
    """Return the places of a column's levels among those of training, -1 for a level that training did not have.

    If more than half of the rows, by their counts, have such a level, the caller of `predict` is warned.
    """
    find = places_of(tuple(levels))
    places = {level: find(level) for level in counts}
    new = {level: count for level, count in counts.items() if places[level] < 0}
    n_new, n_rows = sum(new.values()), sum(counts.values())
    if 2 * n_new > n_rows:
        line = f"{n_new} of {n_rows} rows have a level that training did not have, such as {_examples(new)}"
        warnings.warn(f"{name}: {line}; it had {_examples(levels)}", UserWarning, stacklevel=5)
    return places


def _common_form(word: str) -> str:
    """Return the common form of all spellings of a level: a number's shortest text, and one form of each letter."""
    text = " ".join(unicodedata.normalize("NFC", word).split()).removesuffix(" 00:00:00")
    text = LOGICAL.get(text.lower(), text)
    try:
        number = float(text) if "_" not in text else math.nan
    except ValueError:
        return text
    return spelling(number) if abs(number) < EXACT else text  # also of NaN


def _examples(levels: Collection[Level]) -> str:
    first = [repr(spelling(level)) for level in list(levels)[:MOST_NAMED]]
    return ", ".join(first) + (f" and {len(levels) - MOST_NAMED} more" if len(levels) > MOST_NAMED else "")
