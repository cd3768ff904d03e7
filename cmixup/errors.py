"""Errors that a caller can mend, and the checks that raise them."""

from __future__ import annotations

import math


class InputError(ValueError):
    """Something the caller passed cannot be used; the message names the argument and its value."""


def check_positive(name: str, value: float) -> float:
    """Return `value` as a float if it is a finite number above 0, else raise `InputError`."""
    value = as_number(name, value)
    if not (value > 0 and math.isfinite(value)):
        raise InputError(f"{name} must be a finite number above 0, got {value!r}")
    return value


def check_bandwidth(value: float, name: str = "bandwidth") -> float:
    """Return `value` as a float if it is 0 or more (infinity allowed), else raise `InputError`."""
    value = as_number(name, value)
    if not value >= 0:  # also refuses NaN
        raise InputError(f"{name} must be 0 or more (label units; infinity is allowed), got {value!r}")
    return value


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> str:
    """Return `value` if it is one of `choices`, else raise `InputError`."""
    if value not in choices:
        raise InputError(f"{name} must be one of {', '.join(choices)}, got {value!r}")
    return value


def as_number(name: str, value: float) -> float:
    """Return `value` as a float; booleans, text and arrays of several numbers are refused."""
    if isinstance(value, (bool, str)):
        raise InputError(f"{name} must be a number, got {value!r}")
    try:
        return float(value)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a number, got {value!r}") from None
