"""What a method changes on many tables: the direction of its mean effect, and the size of its effect on each table.

Both come from one hierarchical model of the effects over tables (`scripts.stats.hierarchical`), for mixing, ensembles
and entries alike. *Direction* is about the mean effect alone; *size* is about one table, seen or new.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from scripts.stats.hierarchical import Marginal, Posterior, fit_effects
from scripts.stats.intervals import Interval, clustered_interval

BASE = "erm"  # the method that all others are compared with
IMPROVES, WORSENS, EQUIVALENT, INCONCLUSIVE = "improves", "worsens", "equivalent", "inconclusive"
VERDICTS = (IMPROVES, WORSENS, EQUIVALENT, INCONCLUSIVE)
LOWER, HIGHER = "lower", "higher"
SPLIT = ["table", "method", "split"]  # columns that name a split's runs
OVERLAP = 0.2 / 0.6  # test rows for each training row

Errors = Mapping[str, Mapping[str, Mapping[int, float]]]  # of the test rows by table, method and split


@dataclass(frozen=True)
class Effect:
    """What a method changes of ERM's error, in percent of ERM's mean error on a table; below 0 is better.

    Attributes:
        posterior: of the mean, of each table and of a new one.
        means: over the splits of each table.
        sure: the probability that a verdict needs.
    """

    posterior: Posterior
    means: Mapping[str, float]
    sure: float

    @property
    def unweighted(self) -> Interval | None:
        """The unweighted mean over tables with its t interval; None for one table."""
        return clustered_interval(list(self.means.values()), list(self.means))

    @property
    def tables(self) -> dict[str, tuple[Marginal, str]]:
        """The effect on each table, and the verdict on its size."""
        return {name: (one, self.size_of(one)) for name, one in self.posterior.tables.items()}

    def size_of(self, one: Marginal) -> str:
        """Return whether an effect improves, worsens, is practically equivalent, or is inconclusive."""
        chances = {IMPROVES: one.gain, WORSENS: one.loss, EQUIVALENT: one.within}
        return next((verdict for verdict, chance in chances.items() if chance >= self.sure), INCONCLUSIVE)

    def counts(self) -> dict[str, int]:
        """Return how many tables have each verdict."""
        counted = Counter(verdict for _, verdict in self.tables.values())
        return {verdict: counted[verdict] for verdict in VERDICTS}

    def direction(self) -> str:
        """Return whether the mean effect is below 0 or above, or is inconclusive.

        The 95 % intervals of the hierarchical model and of the unweighted mean must both lie on that side.
        """
        means = [mean for mean in (self.posterior.overall, self.unweighted) if mean]
        if all(mean.high < 0 for mean in means):
            return LOWER
        return HIGHER if all(mean.low > 0 for mean in means) else INCONCLUSIVE


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


def method_effect(
    errors: Errors, method: str, level: float, equal: float, *, base: str = BASE, overlap: float = OVERLAP,
    relative: bool = True,
) -> Effect | None:  # fmt: skip
    """Return what a method changes on the tables that have it and `base` on two splits or more; None without any.

    A verdict needs a probability of 1 minus `level`; an effect smaller than `equal` percent of the error of `base`
    (without `relative`, in the unit of the errors) is practically equivalent. `overlap` are test rows for each training
    row, see `scripts.stats.hierarchical.fit_effects`.
    """
    differences = percent_differences(errors, method, base, relative=relative)
    if not differences:
        return None
    values = {table: tuple(by_split.values()) for table, by_split in differences.items()}
    return Effect(fit_effects(values, overlap, equal), {t: float(np.mean(v)) for t, v in values.items()}, 1 - level)


def rank_methods(errors: Errors, method: str) -> list[tuple[str, float]]:
    """Return the methods that have all tables of one of them, with their mean errors over these, the best first."""
    tables = [methods for methods in errors.values() if method in methods]
    names = sorted(name for name in set().union(*tables) if all(name in methods for methods in tables))
    means = {name: float(np.mean([mean_error(methods[name]) for methods in tables])) for name in names}
    return sorted(means.items(), key=lambda pair: pair[1])


def mean_error(by_split: Mapping[int, float]) -> float:
    """Return the mean test error over splits."""
    return float(np.mean(list(by_split.values())))
