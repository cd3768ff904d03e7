"""Whether a column varies: one rule for tables, series, arrays, images, labels, domain tables and the estimator.

Numbers that are equal but for rounding are one number: sums of n of them err by about sqrt(n) units in the last place.
What does not vary in training tells nothing, so it changes nothing: it is divided by `VANISH`.
"""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from cmixup.sampling.inputs import Floats

#: Numbers divided by it are 0 in float32.
VANISH = 1e300
#: Units in the last place of float64, times the root of the number of rows, that rounding may amount to.
ROUNDING = 4 * float(np.finfo(np.float64).eps)
#: Sums of columns that span such a share of their largest number lose the digits that differ; those of differences not.
NARROW = 1e-6
MOST_NAMED = 3  # columns in a warning


def varies(low: Any, high: Any, rows: int) -> Any:
    """Return whether columns vary whose `rows` known values lie between `low` and `high`.

    These are numbers, or arrays or tensors of float64; values of float32 count as float64. NaN varies not.
    """
    tolerance = ROUNDING * rows**0.5 / 2
    return high - low > tolerance * abs(low) + tolerance * abs(high)


def moments(values: Floats) -> tuple[Floats, Floats]:
    """Return mean and standard deviation (d,) of columns of finite numbers (N, d), N 1 or more.

    One that does not vary has the mean of its first row, and `VANISH`.
    """
    low, high = values.min(axis=0), values.max(axis=0)
    vary = varies(low, high, len(values))
    mean, deviation = values.mean(axis=0), values.std(axis=0)
    narrow = vary & (high - low < NARROW * np.maximum(abs(low), abs(high)))
    if narrow.any():
        narrow_mean, narrow_deviation = moments(values[:, narrow] - low[narrow])
        mean[narrow], deviation[narrow] = low[narrow] + narrow_mean, narrow_deviation
    return np.where(vary, mean, values[0]), np.where(vary, deviation, VANISH)


def warn_of_new(names: Sequence[str], source: str) -> None:
    """Warn the caller of `predict` of columns that were constant in training and have another value now, if any are."""
    if names:
        others = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        changed = f"{', '.join(names[:MOST_NAMED])}{others}: constant in training, and now with another value"
        warnings.warn(f"{source}: {changed}, which changes nothing", UserWarning, stacklevel=4)


def is_new(values: Floats, constant: Any) -> Any:
    """Return whether columns (N, d) or (N,) hold another value than the one of training; float32 tells no two apart."""
    with np.errstate(over="ignore"):
        return (~np.isnan(values) & (values.astype(np.float32) != np.float32(constant))).any(axis=0)
