"""What users write on a command line: `key=value` words, and seeds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from cmixup.errors import MAX_SEED, InputError, shown

MOST_SEEDS = 100_000  # of one command


def parse_words(words: Sequence[str], known: Sequence[str], about: str | None = None) -> dict[str, str]:
    """Read `key=value` words of a command line; an empty value counts as not given.

    Args:
        words: of the command line; `--help` among them prints `about` and ends.
        known: the keys.
        about: the command's docstring.

    Raises:
        InputError: another word, or an unknown key.
        SystemExit: help was asked for.
    """
    if {"-h", "--help"} & set(words):
        print(f"{(about or '').strip()}\n\noptions: {'= '.join(known)}=")
        raise SystemExit(0)
    given: dict[str, str] = {}
    for word in words:
        key, found, value = word.partition("=")
        if not found or key not in known:
            raise InputError(f"option must be one of {'=, '.join(known)}=, got {word!r}")
        if value:
            given[key] = value
    return given


def parse_seeds(value: Any, name: str = "seeds") -> list[int]:
    """Return seeds from a range `0..9` (both ends in), a list `[0,3,5]` or `0,3,5`, or a count (10 means 0..9).

    They come in rising order however they are written: the models of a stack share one stream of dropout masks.

    Raises:
        InputError: anything else, an empty or repeated seed.
    """
    problem = InputError(
        f"{name} must be a range like 0..9, a list like [0,3,5], or a count, at most {MOST_SEEDS} seeds "
        f"up to {MAX_SEED}, got {shown(value)}"
    )
    try:
        if isinstance(value, (list, tuple)):
            seeds = [_whole(v) for v in value]
        elif isinstance(value, int):
            seeds = _span(0, _whole(value))
        else:
            text = str(value).strip()
            if ".." in text:
                low, high = (_whole(part) for part in text.split(".."))
                seeds = _span(low, high + 1)
            elif "," in text:
                seeds = [_whole(part) for part in text.split(",") if part.strip()]
            else:
                seeds = _span(0, _whole(text))
    except (TypeError, ValueError, OverflowError):
        raise problem from None
    if not seeds or len(set(seeds)) != len(seeds):
        raise problem
    return sorted(seeds)


def _whole(value: Any) -> int:
    if isinstance(value, bool) or int(value) != float(value) or not 0 <= int(value) <= MAX_SEED:
        raise ValueError(value)
    return int(value)


def _span(start: int, stop: int) -> list[int]:
    if stop - start > MOST_SEEDS:
        raise ValueError(stop)
    return list(range(start, stop))
