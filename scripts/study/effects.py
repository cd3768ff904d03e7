"""Tests and intervals of the study, over the splits of a table and over tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
from scipy.special import bdtr, fdtrc, stdtr, stdtrit

from scripts.records.stats import Interval, clustered

BASE = "erm"
Scores = Mapping[str, Mapping[str, Mapping[int, float]]]  # test error by table, method and seed, of one condition


def mean_error(by_seed: Mapping[int, float]) -> float:
    """Return the mean test error over seeds."""
    return float(np.mean(list(by_seed.values())))


def overlapping(interval: Interval, overlap: float) -> Interval:
    """Return an interval over n splits of the same rows after the correction of Nadeau and Bengio (2003).

    Their variance of the mean is `(1 / n + overlap) s^2` for `s^2 / n`, with `overlap` test rows for each training row.
    """
    half = (interval.high - interval.low) / 2 * math.sqrt(1 + interval.n * overlap)
    return replace(interval, low=interval.mean - half, high=interval.mean + half)


def sign_test(differences: Sequence[float]) -> tuple[int, int, float]:
    """Return how many differences are below 0, of how many that are not 0, and the two-sided binomial p value."""
    below, n = sum(d < 0 for d in differences), sum(d != 0 for d in differences)
    return below, n, min(1.0, 2 * float(bdtr(min(below, n - below), n, 0.5))) if n else 1.0


def t_test(interval: Interval, level: float = 0.95) -> float:
    """Return the two-sided p value of the t test that a 95 % t interval belongs to."""
    half = (interval.high - interval.low) / 2
    if half == 0:
        return 1.0 if interval.mean == 0 else 0.0
    t = interval.mean / half * float(stdtrit(interval.n - 1, (1 + level) / 2))
    return float(2 * stdtr(interval.n - 1, -abs(t)))


def holm(p: Sequence[float]) -> list[float]:
    """Return p values after Holm's step-down correction (1979), in the order given."""
    order = np.argsort(p, kind="stable")
    found, largest = [0.0] * len(p), 0.0
    for place, k in enumerate(order):
        largest = max(largest, min(1.0, (len(p) - place) * p[k]))
        found[k] = largest
    return found


class HasInterval(Protocol):
    """An effect, however its interval was made."""

    @property
    def interval(self) -> Interval:
        """Over seeds or splits."""
        ...


def over_tables(each: Mapping[str, HasInterval]) -> Interval | None:
    """Return the mean effect over tables and its interval, which counts tables, not seeds; None for fewer than two."""
    return clustered([effect.interval.mean for effect in each.values()], list(each)) if each else None


def mean_ranks(scores: Scores, methods: Sequence[str]) -> tuple[dict[str, float], int]:
    """Return each method's mean rank by mean error (1 is best, ties share), and over how many tables that have all."""
    from scipy.stats import rankdata  # slow to import

    whole = [table for table in scores.values() if all(method in table for method in methods)]
    if not whole:
        return {}, 0
    ranks = rankdata([[mean_error(table[method]) for method in methods] for table in whole], axis=1)
    return dict(zip(methods, ranks.mean(axis=0).tolist(), strict=True)), len(whole)


def friedman(ranks: Mapping[str, float], tables: int) -> float:
    """Return the p value of Friedman's test in the form of Iman and Davenport (1980), for mean ranks over tables."""
    k = len(ranks)
    chi = 12 * tables / (k * (k + 1)) * (sum(rank**2 for rank in ranks.values()) - k * (k + 1) ** 2 / 4)
    if tables * (k - 1) - chi <= 0:
        return 0.0
    statistic = (tables - 1) * chi / (tables * (k - 1) - chi)
    return float(fdtrc(k - 1, (k - 1) * (tables - 1), statistic))


def critical_difference(methods: int, tables: int, level: float) -> float:
    """Return how far apart two mean ranks must lie to differ by Nemenyi's test (Demsar 2006, Section 3.2.2)."""
    from scipy.stats import studentized_range  # slow to import

    q = float(studentized_range.ppf(1 - level, methods, np.inf)) / math.sqrt(2)
    return q * math.sqrt(methods * (methods + 1) / (6 * tables))


def wilcoxon(differences: Sequence[float]) -> float:
    """Return the two-sided p value of the signed-rank test (zeros left out), exact without ties up to 50 values.

    Otherwise the normal approximation with the corrections for ties and for continuity is used.
    """
    from scipy.stats import wilcoxon as signed_ranks  # slow to import

    values = [d for d in differences if d != 0]
    exact = len(values) <= 50 and len({abs(d) for d in values}) == len(values)
    method = "exact" if exact else "approx"
    return float(signed_ranks(values, method=method, correction=True).pvalue) if values else 1.0


def against_erm(scores: Scores, methods: Sequence[str]) -> dict[str, float]:
    """Return the p value of each method against ERM over tables, Wilcoxon's after Holm's correction."""
    others = [method for method in methods if method != BASE]
    both = [[each for each in scores.values() if {method, BASE} <= each.keys()] for method in others]
    p = [wilcoxon([mean_error(e[m]) - mean_error(e[BASE]) for e in own]) for m, own in zip(others, both, strict=True)]
    return dict(zip(others, holm(p), strict=True))
