"""A method's changes on many tables: on each the mean difference, and the mean and signs of these over tables.

Every table counts alike, and the differences on a table are paired by split.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from scipy.special import bdtr

from scripts.stats.intervals import INCONCLUSIVE, Difference, Interval, clustered_interval

BASE = "erm"  # the method that all others are compared with
SCORES = {"%": "test_nrmse", "nats": "test_nll_rescaled"}  # that methods are compared by, by the unit of effects
SPLIT = ["table", "method", "split"]  # columns that name a split's runs
OVERLAP = 0.2 / 0.6  # test rows for each training row


@dataclass(frozen=True)
class Effect:
    """A method's change of ERM's error on each table; below 0 is better."""

    tables: Mapping[str, Interval]  # by table, the mean over splits in percent of ERM's mean error, with its interval

    @property
    def mean(self) -> Interval | None:
        """The unweighted mean over tables with its t interval; None for one table."""
        return clustered_interval([interval.mean for interval in self.tables.values()], list(self.tables))

    @property
    def lower(self) -> int:
        """On how many tables the error is lower."""
        return sum(interval.mean < 0 for interval in self.tables.values())

    @property
    def chance(self) -> float:
        """The two-sided p value of the sign test, that lower and higher are as likely; equal errors do not count."""
        n = sum(interval.mean != 0 for interval in self.tables.values())
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


def errors_of(runs: pd.DataFrame, score: str, weights: int) -> pd.DataFrame:
    """Return errors by table and split, a column a method, the mean over initial weights; NaN without a finite score.

    Of a split's initial weights the first `weights` count: an ensemble has more than another method.
    """
    rows = runs[runs["trial"].isna()]
    rows = rows[rows.groupby(SPLIT)["seed"].rank(method="first") <= weights]
    means = rows.reindex(columns=[*SPLIT, score]).groupby(SPLIT)[score].mean()
    return means.where(np.isfinite(means)).unstack("method")


def method_effect(errors: pd.DataFrame, method: str, *, base: str = BASE, relative: bool = True) -> Effect | None:
    """Return what a method changes on the tables that have it and `base` on two splits or more; None without any.

    It is in percent of the mean error of `base` on the table; without `relative` in the unit of the errors, such as
    nats.
    """
    if not {method, base} <= {*errors}:
        return None
    differences, base_errors = (errors[method] - errors[base]).dropna(), errors[base].groupby("table").mean()
    tables = {
        str(table): corrected_interval((100 * values / base_errors[table] if relative else values).tolist())
        for table, values in differences.groupby("table") if len(values) > 1
    }  # fmt: skip
    return Effect(tables) if tables else None


def rank_methods(errors: pd.DataFrame, method: str) -> list[tuple[str, float]]:
    """Return the methods that have all tables of one of them, with their mean errors over these, the best first."""
    means = errors.groupby("table").mean()
    complete = means[means[method].notna()].dropna(axis="columns").mean()
    return list(complete.sort_values(kind="stable").items())
