"""The three states of what the paper says, by intervals: it reproduces, it differs, or it cannot be told.

They are tried in this order. "First is better than second" reproduces where the interval of our difference lies on the
published side of 0; "level" where two one-sided tests put the difference within a margin. It differs where the interval
of ours minus the paper's excludes 0, or, where the paper prints no number, where ours lies on the other side of 0.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from cmixup.errors import InputError
from scripts.records.stats import Interval, Summary, standard_error

REPRODUCES, DIFFERS, UNKNOWN = "reproduces", "differs", "cannot be told"
OPEN = "open"  # fewer seeds than the experiment plans
IDLE = "not counted"  # every row is its own partner: nothing is mixed
LEVEL = 0.95


@dataclass(frozen=True)
class Effect:
    """A difference of two means, first minus second.

    Attributes:
        mean: the difference.
        parts: the terms whose sum is its variance, each with its degrees of freedom; none if no spread is known.
    """

    mean: float
    parts: Sequence[tuple[float, float]] = ()

    @property
    def error(self) -> float:
        """Its standard error."""
        return math.sqrt(math.fsum(v for v, _ in self.parts))

    def ends(self, level: float = LEVEL) -> tuple[float, float]:
        """Return the ends of its t interval."""
        from scipy.special import stdtrit  # scipy.stats is slow to import

        if self.error == 0:
            return self.mean, self.mean
        half = float(stdtrit(self.freedom, 0.5 + level / 2)) * self.error
        return self.mean - half, self.mean + half

    @property
    def freedom(self) -> float:
        """The degrees of freedom of Welch and Satterthwaite."""
        return self.error**4 / math.fsum(v**2 / df for v, df in self.parts)

    @property
    def chance(self) -> float:
        """The two-sided p value of t against no difference."""
        from scipy.special import stdtr

        return 2 * float(stdtr(self.freedom, -abs(self.mean) / self.error)) if self.error else float(self.mean == 0)

    def minus(self, other: Effect) -> Effect:
        """Return the difference of two independent effects."""
        return Effect(self.mean - other.mean, (*self.parts, *other.parts))


def of_interval(interval: Interval) -> Effect:
    """Return the effect whose 95 % t interval over n seeds or clusters this is."""
    return Effect(interval.mean, ((standard_error(interval, LEVEL) ** 2, interval.n - 1),))


def unpaired_effect(first: Summary, second: Summary) -> Effect:
    """Return the effect of two printed means; a standard deviation that is not printed counts as 0."""
    parts = [(s.std**2 / s.n, s.n - 1) for s in (first, second) if not math.isnan(s.std)]
    return Effect(first.mean - second.mean, tuple(parts))


def gain_state(ours: Effect, paper: Effect | None, *, lower: bool, level: float = LEVEL) -> str:
    """Return the state of "first is better than second".

    Args:
        ours: our difference.
        paper: the published one, if it is printed.
        lower: whether lower is better.
        level: confidence of the intervals.
    """
    low, high = ours.ends(level)
    if high < 0 if lower else low > 0:
        return REPRODUCES
    if paper is not None:
        return DIFFERS if _excludes_zero(ours.minus(paper), level) else UNKNOWN
    return DIFFERS if (low > 0 if lower else high < 0) else UNKNOWN


def level_state(ours: Effect, paper: Effect | None, margin: float) -> str:
    """Return the state of "both are level".

    Args:
        ours: our difference.
        paper: the published one, if it is printed.
        margin: how far apart they may be: the 90 % interval must lie inside it, which is two one-sided tests at 5 %.

    Raises:
        InputError: a margin below 0.
    """
    if margin < 0:
        raise InputError(f"margin must not be below 0, got {margin}")
    low, high = ours.ends(2 * LEVEL - 1)
    if -margin < low and high < margin:
        return REPRODUCES
    return DIFFERS if _excludes_zero(ours if paper is None else ours.minus(paper), LEVEL) else UNKNOWN


def _excludes_zero(effect: Effect, level: float) -> bool:
    low, high = effect.ends(level)
    return low > 0 or high < 0
