"""Summaries over seeds, and intervals of differences between methods that share seeds or test rows."""

import math
import statistics
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

from scipy.special import stdtr, stdtrit  # of Student's t; scipy.stats is slow to import

from cmixup.errors import InputError

LEVEL = 0.95  # of intervals
LOWER, HIGHER, INCONCLUSIVE = "lower", "higher", "inconclusive"  # sides of 0
FEW = 3  # with fewer seeds no method is the best, and no interval over seeds is given


@dataclass(frozen=True)
class Summary:
    """The mean and the standard deviation (n - 1 in the denominator; NaN for n = 1) of n values."""

    mean: float
    std: float
    n: int


@dataclass(frozen=True)
class Interval:
    """A mean, often of paired differences, with the ends of its two-sided 95 % interval over n seeds or clusters."""

    mean: float
    low: float
    high: float
    n: int

    @property
    def side(self) -> str:
        """`LOWER` or `HIGHER` where the whole interval lies below or above 0, else `INCONCLUSIVE`."""
        return LOWER if self.high < 0 else HIGHER if self.low > 0 else INCONCLUSIVE

    @property
    def bar(self) -> list[list[float]]:
        """How far its ends lie from the mean, as Matplotlib takes an error bar."""
        return [[self.mean - self.low], [self.high - self.mean]]

    def power(self, effect: float) -> float:
        """Return the chance that a t interval as wide as this one excludes 0 on the side of a true `effect`."""
        critical = stdtrit(self.n - 1, (1 + LEVEL) / 2)
        return float(stdtr(self.n - 1, 2 * critical * abs(effect) / (self.high - self.low) - critical))


def summarise_values(values: Sequence[float]) -> Summary:
    """Return the mean, the standard deviation and the number of `values`; NaN for both where one is not finite."""
    if not values:
        raise InputError("values must hold at least one number")
    if not all(map(math.isfinite, values)):
        return Summary(math.nan, math.nan, len(values))
    std = statistics.stdev(values) if len(values) > 1 else math.nan
    return Summary(statistics.fmean(values), std, len(values))


def paired_or_none(first: Mapping[int, float], second: Mapping[int, float]) -> Interval | None:
    """Return the 95 % t interval of `first - second`, values by seed, over shared seeds; None of fewer than two."""
    seeds = sorted(set(first) & set(second))
    if len(seeds) < 2:
        return None
    return clustered_interval([first[s] - second[s] for s in seeds], seeds)


def interval_text(interval: Interval | None, decimals: int = 3, *, bold: bool = False) -> str:
    """Return a mean with its interval, a dash without one; `bold` marks an interval that excludes 0."""
    if interval is None:
        return "—"
    mean, low, high = (signed(value, decimals) for value in (interval.mean, interval.low, interval.high))
    text = f"{mean} [{low}, {high}]"
    return f"**{text}**" if bold and not interval.low <= 0 <= interval.high else text


def signed(value: float, decimals: int) -> str:
    """Return a difference with its sign; one that rounds to 0 has none."""
    text = f"{value:+.{decimals}f}"
    return text if float(text) else text[1:]


def clustered_interval(values: Sequence[float], clusters: Sequence[Hashable]) -> Interval | None:
    """Return the mean of `values` and a 95 % interval that allows for dependence in clusters, or None for one cluster.

    The standard error is sqrt(G / (G - 1) sum_g (sum_{i in g} (v_i - mean))^2) / N, the cluster-robust one of a mean
    (Liang and Zeger 1986), used with Student's t of G - 1 degrees of freedom. If every value is its own cluster this is
    the usual t interval. `clusters` names that of each value, such as the object that test tasks share.
    """
    if len(values) != len(clusters):
        raise InputError(f"clusters must name one for each of {len(values)} values, got {len(clusters)}")
    mean = summarise_values(values).mean
    sums: dict[Hashable, float] = {}
    for value, cluster in zip(values, clusters, strict=True):
        sums[cluster] = sums.get(cluster, 0.0) + value - mean
    n = len(sums)
    if n < 2:
        return None
    error = math.sqrt(n / (n - 1) * math.fsum(d * d for d in sums.values())) / len(values)
    half = float(stdtrit(n - 1, 0.5 + LEVEL / 2)) * error
    return Interval(mean, mean - half, mean + half, n)


@dataclass(frozen=True)
class Difference:
    """A difference of two means, first minus second."""

    mean: float  # the difference
    # the terms whose sum is its variance, each with its degrees of freedom; none if no spread is known
    parts: Sequence[tuple[float, float]] = ()

    @property
    def error(self) -> float:
        """Its standard error."""
        return math.sqrt(math.fsum(v for v, _ in self.parts))

    def ends(self, level: float = LEVEL) -> tuple[float, float]:
        """Return the ends of its t interval."""
        if self.error == 0:
            return self.mean, self.mean
        half = float(stdtrit(self.freedom, 0.5 + level / 2)) * self.error
        return self.mean - half, self.mean + half

    @property
    def side(self) -> int:
        """1 where the whole 95 % interval lies above 0, -1 below, and 0 where it holds 0."""
        low, high = self.ends()
        return int(low > 0) - int(high < 0)

    @property
    def freedom(self) -> float:
        """The degrees of freedom of Welch and Satterthwaite."""
        return self.error**4 / math.fsum(v**2 / df for v, df in self.parts)

    @property
    def chance(self) -> float:
        """The two-sided p value of t against no difference."""
        return 2 * float(stdtr(self.freedom, -abs(self.mean) / self.error)) if self.error else float(self.mean == 0)

    def minus(self, other: "Difference") -> "Difference":
        """Return the difference of two independent differences."""
        return Difference(self.mean - other.mean, (*self.parts, *other.parts))


def of_interval(interval: Interval) -> Difference:
    """Return the difference whose 95 % t interval over n seeds or clusters this is."""
    error = (interval.high - interval.low) / 2 / float(stdtrit(interval.n - 1, 0.5 + LEVEL / 2))
    return Difference(interval.mean, ((error**2, interval.n - 1),))


def unpaired_difference(first: Summary, second: Summary) -> Difference:
    """Return the difference of two printed means; a standard deviation that is not printed counts as 0."""
    parts = [(s.std**2 / s.n, s.n - 1) for s in (first, second) if not math.isnan(s.std)]
    return Difference(first.mean - second.mean, tuple(parts))


def welch_interval(first: Summary, second: Summary) -> Interval | None:
    """Return Welch's 95 % t interval of first minus second, None where a side has no spread; n is the smaller n."""
    if first.n < 2 or second.n < 2 or math.isnan(first.std + second.std):
        return None
    difference = unpaired_difference(first, second)
    return Interval(difference.mean, *difference.ends(), min(first.n, second.n))
