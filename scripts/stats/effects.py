"""A method's changes on many tables: on each the mean difference, and the mean and signs of these over tables.

Every table counts alike, and the differences on a table are paired by split.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import bdtr

from scripts.stats.intervals import INCONCLUSIVE, Difference, Interval, clustered_interval

BASE = "erm"  # the method that all others are compared with
SPLIT = ["table", "method", "split"]  # columns that name a split's runs
OVERLAP = 0.2 / 0.6  # test rows for each training row

Errors = Mapping[str, Mapping[str, Mapping[int, float]]]  # of the test rows by table, method and split


@dataclass(frozen=True)
class Effect:
    """A method's change of ERM's error on each table; below 0 is better."""

    tables: Mapping[str, Interval]  # by table, the mean over splits in percent of ERM's mean error, with its interval

    @property
    def mean(self) -> Interval | None:
        """The unweighted mean over tables with its t interval; None for one table."""
        return clustered_interval([one.mean for one in self.tables.values()], list(self.tables))

    @property
    def lower(self) -> int:
        """On how many tables the error is lower."""
        return sum(one.mean < 0 for one in self.tables.values())

    @property
    def chance(self) -> float:
        """The two-sided p value of the sign test, that lower and higher are as likely; equal errors do not count."""
        n = sum(one.mean != 0 for one in self.tables.values())
        return min(1.0, 2 * float(bdtr(min(self.lower, n - self.lower), n, 0.5)))

    def direction(self) -> str:
        """Return whether the interval of the mean lies below 0 or above, or is inconclusive."""
        return self.mean.side if self.mean else INCONCLUSIVE


def corrected_interval(values: Sequence[float], overlap: float = OVERLAP) -> Interval:
    """Return the mean of differences over splits of the same rows with its 95 % t interval.

    Splits share training rows, which the variance allows for: s^2 (1 / n + test rows for each training row), by Nadeau
    and Bengio (2003). `overlap` is that ratio.
    """
    n, mean = len(values), float(np.mean(values))
    variance = float(np.var(values, ddof=1)) * (1 / n + overlap)
    return Interval(mean, *Difference(mean, ((variance, n - 1),)).ends(), n)


def sign_text(effect: Effect) -> str:
    """Return on how many tables the error is lower, and in brackets the p value of the sign test."""
    p = "<0.001" if effect.chance < 0.001 else f"{effect.chance:.2g}"
    return f"{effect.lower} of {len(effect.tables)} ({p})"


def errors_of(runs: pd.DataFrame, score: str = "test_nrmse", weights: int = 2) -> Errors:
    """Return errors by table, method and split, the mean over initial weights; tables without `score` are left out.

    Of a split's initial weights the first `weights` count: an ensemble has more than another method.
    """
    errors: dict[str, dict[str, dict[int, float]]] = {}
    rows = runs[runs["trial"].isna()]
    rows = rows[rows.groupby(SPLIT)["seed"].rank(method="first") <= weights]
    means = rows.groupby(SPLIT, sort=False)[score].mean() if score in rows else {}
    for (table, method, split), value in means.items():
        if math.isfinite(value):
            errors.setdefault(table, {}).setdefault(method, {})[int(split)] = value
    return errors


def percent_differences(
    errors: Errors, method: str, base: str = BASE, *, relative: bool = True
) -> dict[str, dict[int, float]]:
    """Return a method's error minus that of `base` by table and split, in percent of the mean of `base` on the table.

    Tables without two splits of both are left out. Without `relative` they are in the unit of the errors, such as nats.
    """
    differences = {}
    for table, methods in errors.items():
        if {method, base} <= methods.keys():
            ours, theirs = methods[method], methods[base]
            share, whole = (100, mean_error(theirs)) if relative else (1, 1.0)
            by_split = {s: share * (ours[s] - theirs[s]) / whole for s in sorted(ours.keys() & theirs.keys())}
            if len(by_split) > 1:
                differences[table] = by_split
    return differences


def method_effect(errors: Errors, method: str, *, base: str = BASE, relative: bool = True) -> Effect | None:
    """Return what a method changes on the tables that have it and `base` on two splits or more; None without any.

    Without `relative` it is in the unit of the errors, such as nats.
    """
    differences = percent_differences(errors, method, base, relative=relative)
    tables = {table: corrected_interval(list(by_split.values())) for table, by_split in differences.items()}
    return Effect(tables) if tables else None


def rank_methods(errors: Errors, method: str) -> list[tuple[str, float]]:
    """Return the methods that have all tables of one of them, with their mean errors over these, the best first."""
    tables = [methods for methods in errors.values() if method in methods]
    names = sorted(name for name in set().union(*tables) if all(name in methods for methods in tables))
    means = {name: float(np.mean([mean_error(methods[name]) for methods in tables])) for name in names}
    return sorted(means.items(), key=lambda pair: pair[1])


def mean_error(by_split: Mapping[int, float]) -> float:
    """Return the mean test error over splits."""
    return float(np.mean(list(by_split.values())))
