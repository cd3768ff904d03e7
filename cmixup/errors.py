"""Errors that a caller can correct, and the checks that raise them.

A check takes the argument's name, with which its message begins, and the value, which it returns if it may be used.
"""

import difflib
import math
import re
from collections.abc import Sequence
from typing import Any

import numpy as np

MIN_BANDWIDTH = 1e-150  #: The smallest bandwidth above 0 (label units) whose square float64 can hold.
MAX_SEED = 2**32 - 1  #: The largest seed of NumPy's older generator, with which released splits are drawn.
MAX_TEXT = 80  #: So many characters of a value stand in a message,
CUT = 24  #: and so many of a name among others.


class InputError(ValueError):
    """An argument cannot be used; the message names the argument and gives its value."""


def format_value(value: object) -> str:
    """Return `repr(value)` for a message: on one line, and cut after `MAX_TEXT` characters; a name without escapes."""
    text = " ".join(line.strip() for line in repr(value).splitlines())
    if isinstance(value, str) and not re.search(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]", value):
        text = f"{text[0]}{value}{text[-1]}"
    return text if len(text) <= MAX_TEXT else f"{text[:MAX_TEXT]}..."


def nearest(name: str, known: Sequence[str]) -> str:
    """Return the known name that is like `name`, or else the known names, in words that end an error."""
    by_lower = {known_name.lower(): known_name for known_name in known}
    if matches := difflib.get_close_matches(name.lower(), list(by_lower), 1):
        return f"; the nearest name is {format_value(by_lower[matches[0]])}"
    return f"; there are {shortened(known) or 'none'}"


def shortened(names: Sequence[str], most: int = 12) -> str:
    """Return names in one line, not all if there are many."""
    return ", ".join(name if len(name) <= CUT else f"{name[:CUT]}..." for name in names[:most]) + (
        f", ... ({len(names)} in all)" if len(names) > most else ""
    )


def check_positive(name: str, value: float) -> float:
    """Return `value` as a float if it is a finite number above 0."""
    value = as_number(name, value)
    if not (value > 0 and math.isfinite(value)):
        raise InputError(f"{name} must be a finite number above 0, got {format_value(value)}")
    return value


def check_nonnegative(name: str, value: float, what: str = "a finite number") -> float:
    """Return `value` as a float if it is a finite number, 0 or more, which the message calls `what`."""
    number = as_number(name, value)
    if not 0 <= number < math.inf:  # NaN fails both comparisons
        raise InputError(f"{name} must be {what}, 0 or more, got {format_value(value)}")
    return number


def check_between(name: str, value: float, low: float, high: float) -> float:
    """Return `value` as a float if it lies in [low, high], both ends included."""
    number = as_number(name, value)
    if not low <= number <= high:  # NaN fails both comparisons
        raise InputError(f"{name} must lie in [{low}, {high}], got {format_value(value)}")
    return number


def check_count(
    name: str, value: int, minimum: int = 0, what: str = "a whole number", *, most: float = math.inf
) -> int:
    """Return `value` as an int if it is a whole number from `minimum` to `most`, which the message calls `what`.

    Python's and NumPy's integers pass. Booleans are refused, and so are floats with a whole value.
    """
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not minimum <= value <= most:
        span = f"{minimum} or more" if math.isinf(most) else f"{minimum} to {most}"
        raise InputError(f"{name} must be {what}, {span}, got {format_value(value)}")
    return int(value)


def check_seed(name: str, value: int) -> int:
    """Return `value` as an int if it is a seed that every generator takes, 0 to `MAX_SEED`."""
    return check_count(name, value, most=MAX_SEED)


def check_bandwidth(value: float, name: str = "bandwidth") -> float:
    """Return `value` as a float if a kernel can use it as a bandwidth, else raise `InputError`.

    A bandwidth is in label units. 0 and infinity are allowed; a bandwidth between 0 and `MIN_BANDWIDTH` is refused,
    because its square would underflow in float64.
    """
    value = as_number(name, value)
    if not value >= 0:  # also refuses NaN
        raise InputError(f"{name} must be 0 or more (label units; infinity is allowed), got {format_value(value)}")
    if 0 < value < MIN_BANDWIDTH:
        raise InputError(f"{name} must be 0 or at least {MIN_BANDWIDTH:g} (label units), got {format_value(value)}")
    return value


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> str:
    """Return `value` if it is one of `choices`."""
    if not (isinstance(value, str) and value in choices):
        raise InputError(f"{name} must be one of {', '.join(choices)}, got {format_value(value)}")
    return value


def check_flag(name: str, value: bool) -> bool:
    """Return `value` if it is True or False."""
    if not isinstance(value, bool | np.bool_):
        raise InputError(f"{name} must be True or False, got {format_value(value)}")
    return bool(value)


def as_number(name: str, value: float) -> float:
    """Return `value` as a float; booleans, text and arrays of several numbers are refused."""
    if isinstance(value, (bool, str)):
        raise InputError(f"{name} must be a number, got {format_value(value)}")
    try:
        return float(value)
    except (TypeError, ValueError, RuntimeError):  # the last for tensors of several numbers, or without values
        raise InputError(f"{name} must be a number, got {format_value(value)}") from None
    except OverflowError:
        raise InputError(f"{name} must be a number that a float can hold, got one of more than 308 digits") from None


def not_dense(tensor: Any) -> str:
    """Return the kind of a tensor without rows of one shape with values, in words, or nothing."""
    if tensor.is_nested:
        return "a nested tensor, which torch.nested.to_padded_tensor pads"
    if str(tensor.layout) != "torch.strided":
        return f"{tensor.layout}, which .to_dense() fills"
    return "a tensor without values, of the device meta" if tensor.is_meta else ""
