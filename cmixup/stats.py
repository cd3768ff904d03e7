"""Summaries over seeds, and differences between methods that share them."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cmixup.errors import InputError


@dataclass(frozen=True)
class Summary:
    """Mean and standard deviation (n - 1 in the denominator; NaN for n = 1) of n values."""

    mean: float
    std: float
    n: int


@dataclass(frozen=True)
class Interval:
    """Mean paired difference with its 95 % t interval over n shared seeds."""

    mean: float
    low: float
    high: float
    n: int


def summarise(values: Sequence[float]) -> Summary:
    """Return mean, std and n.

    Raises:
        InputError: no values.
    """
    if not values:
        raise InputError("values must hold at least one number")
    std = statistics.stdev(values) if len(values) > 1 else math.nan
    return Summary(statistics.fmean(values), std, len(values))


def paired(first: Mapping[int, float], second: Mapping[int, float], level: float = 0.95) -> Interval | None:
    """Return the interval of `first - second` over the seeds that both have; None with fewer than two of them.

    Args:
        first, second: value by seed.
        level: confidence of the two-sided Student t interval.
    """
    seeds = sorted(set(first) & set(second))
    if len(seeds) < 2:
        return None
    from scipy.stats import t

    differences = summarise([first[s] - second[s] for s in seeds])
    half = float(t.ppf(0.5 + level / 2, differences.n - 1)) * differences.std / math.sqrt(differences.n)
    return Interval(differences.mean, differences.mean - half, differences.mean + half, differences.n)
