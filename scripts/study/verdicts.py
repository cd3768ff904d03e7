"""What protocol 2 says of a method on a table: it gains, it loses, it makes no difference of 1 %, or it cannot be told.

The tests behind that are over the splits of a table, and over tables. A split counts once: the errors of its sets of
initial weights are averaged, and splits of the same rows overlap, which the correction of Nadeau and Bengio (2003)
allows for.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from textwrap import fill
from typing import Any

import numpy as np
from scipy.special import bdtr, fdtrc, stdtr, stdtrit

from cmixup.errors import InputError
from scripts.records.stats import Interval, clustered, paired
from scripts.records.tables import interval_text
from scripts.study.rules import BASE, HELD_SHARE, TRAIN_SHARE

GAINS, LOSES, EQUAL, UNTOLD = "gains", "loses", "no difference", "cannot be told"
VERDICTS = (GAINS, LOSES, EQUAL, UNTOLD)
OVERLAP = HELD_SHARE / TRAIN_SHARE  # test rows for each training row
POWER = 0.8
WIDTH = 100  # columns of a verdict's lines

Errors = Mapping[str, Mapping[str, Mapping[int, float]]]  # of the test rows by table, method and split


@dataclass(frozen=True)
class Change:
    """A method's error minus ERM's on one table, in percent of ERM's mean error; below 0 is better.

    Attributes:
        interval: over splits, 95 %, corrected for their overlap.
        p: of the t test that belongs to it.
        detectable: the smallest effect that this test would have found in `POWER` of such studies.
        corrected: Holm's p value, over the tables of the setting.
    """

    interval: Interval
    p: float
    detectable: float
    corrected: float = math.nan

    def verdict(self, level: float, equal: float) -> str:
        """Return one of `VERDICTS`.

        Args:
            level: below which the corrected p value, and each of the two one-sided tests, counts.
            equal: percent of ERM's error; an effect that lies within makes no difference, whatever its sign.
        """
        if self.equivalence(equal) < level:
            return EQUAL
        if self.corrected < level:
            return GAINS if self.interval.mean < 0 else LOSES
        return UNTOLD

    def equivalence(self, equal: float) -> float:
        """Return the p value of two one-sided t tests (Schuirmann 1987) that the effect lies within `equal`."""
        mean, n = self.interval.mean, self.interval.n
        if (error := standard_error(self.interval)) == 0:
            return 0.0 if abs(mean) < equal else 1.0
        return float(stdtr(n - 1, (abs(mean) - equal) / error))


def standard_error(interval: Interval) -> float:
    """Return the standard error that a 95 % t interval was made of."""
    return (interval.high - interval.low) / 2 / float(stdtrit(interval.n - 1, 0.975))


def t_test(interval: Interval) -> float:
    """Return the two-sided p value of the t test that a 95 % t interval belongs to."""
    if (error := standard_error(interval)) == 0:
        return 1.0 if interval.mean == 0 else 0.0
    return float(2 * stdtr(interval.n - 1, -abs(interval.mean / error)))


def overlapping(interval: Interval, overlap: float) -> Interval:
    """Return an interval over n splits of the same rows after the correction of Nadeau and Bengio (2003).

    Their variance of the mean is `(1 / n + overlap) s^2` for `s^2 / n`, with `overlap` test rows for each training row.
    """
    half = (interval.high - interval.low) / 2 * math.sqrt(1 + interval.n * overlap)
    return replace(interval, low=interval.mean - half, high=interval.mean + half)


def holm(p: Sequence[float]) -> list[float]:
    """Return p values after Holm's step-down correction (1979), in the order given."""
    order = np.argsort(p, kind="stable")
    found, largest = [0.0] * len(p), 0.0
    for place, k in enumerate(order):
        largest = max(largest, min(1.0, (len(p) - place) * p[k]))
        found[k] = largest
    return found


def errors_of(records: Iterable[Mapping[str, Any]], condition: str, score: str = "test") -> Errors:
    """Return the errors of one setting by table, method and split, each the mean over initial weights.

    Args:
        records: of cells.
        condition: the setting.
        score: "test", "test_balanced" or "test_worst"; tables that lack it are left out. An ensemble's more weights
            count as much together as another's two, which are the first of them.
    """
    found: dict[str, dict[str, dict[int, float]]] = {}
    for record in records:
        if record["condition"] != condition:
            continue
        rows: dict[int, list[float]] = {}
        for row in sorted(record["seeds"], key=lambda row: row["seed"]):
            if score in row:
                rows.setdefault(row["split"], []).append(row[score])
        means = {split: float(np.mean(values[:2])) for split, values in rows.items()}
        finite = {split: value for split, value in means.items() if math.isfinite(value)}
        if finite:
            found.setdefault(record["table"], {})[record["method"]] = finite
    return found


def changes(errors: Errors, method: str, overlap: float = OVERLAP) -> dict[str, Change]:
    """Return what a method changes on every table that has it and ERM on two splits or more.

    Args:
        errors: of one setting.
        method: which.
        overlap: test rows for each training row; 0 takes splits as independent.
    """
    found = {}
    for table, methods in errors.items():
        if not {method, BASE} <= methods.keys():
            continue
        whole = mean_error(methods[BASE])
        ours, base = ({s: 100 * v / whole for s, v in methods[name].items()} for name in (method, BASE))
        if (interval := paired(ours, base)) is not None:
            interval = overlapping(interval, overlap)
            quantiles = sum(float(stdtrit(interval.n - 1, q)) for q in (0.975, POWER))
            found[table] = Change(interval, t_test(interval), quantiles * standard_error(interval))
    corrected = holm([change.p for change in found.values()])
    return {t: replace(change, corrected=p) for (t, change), p in zip(found.items(), corrected, strict=True)}


def counts(each: Mapping[str, Change], level: float, equal: float) -> dict[str, int]:
    """Return how many tables have each verdict."""
    found = Counter(change.verdict(level, equal) for change in each.values())
    return {verdict: found[verdict] for verdict in VERDICTS}


def sign_test(differences: Sequence[float]) -> tuple[int, int, float]:
    """Return how many differences are below 0, of how many that are not 0, and the two-sided binomial p value."""
    below, n = sum(d < 0 for d in differences), sum(d != 0 for d in differences)
    return below, n, min(1.0, 2 * float(bdtr(min(below, n - below), n, 0.5))) if n else 1.0


def sign_text(each: Mapping[str, Change]) -> str:
    """Return on how many tables the change is below 0, of how many, with the p value of the sign test."""
    return "{} of {} (p {:.2g})".format(*sign_test([change.interval.mean for change in each.values()]))


def over_tables(each: Mapping[str, Change]) -> Interval | None:
    """Return the mean change over tables and its interval, which counts tables, not splits; None for fewer than two."""
    return clustered([change.interval.mean for change in each.values()], list(each)) if each else None


def chosen_erm(records: Sequence[Mapping[str, Any]], condition: str, method: str) -> tuple[int, int]:
    """Return on how many splits tuning chose ERM itself for a method, and of how many."""
    own = [record for record in records if (record["condition"], record["method"]) == (condition, method)]
    words = {(r["table"], row["split"]): row["options"] for r in own for row in r["seeds"]}
    return sum(map(is_erm, words.values())), len(words)


def is_erm(words: Sequence[str]) -> bool:
    """Return whether a run's words choose ERM, and no file of another method in its place."""
    return [word for word in words if "method" in word] == [f"method={BASE}"]


def win_rates(errors: Errors, methods: Sequence[str]) -> dict[tuple[str, str], float]:
    """Return the share of tables on which the first of two methods has the lower mean error; ties count half."""
    found = {}
    for one in methods:
        for other in methods:
            both = [each for each in errors.values() if {one, other} <= each.keys()]
            means = [[mean_error(each[m]) for m in (one, other)] for each in both]
            if one != other and means:
                found[one, other] = float(np.mean([0.5 * (a == b) + (a < b) for a, b in means]))
    return found


def ranking(errors: Errors, method: str) -> list[tuple[str, float]]:
    """Return the methods that have all tables of one of them, with their mean errors over these, the best first."""
    tables = [methods for methods in errors.values() if method in methods]
    names = sorted(name for name in set().union(*tables) if all(name in methods for methods in tables))
    means = {name: float(np.mean([mean_error(methods[name]) for methods in tables])) for name in names}
    return sorted(means.items(), key=lambda pair: pair[1])


def mean_error(by_seed: Mapping[int, float]) -> float:
    """Return the mean test error over seeds."""
    return float(np.mean(list(by_seed.values())))


def mean_ranks(errors: Errors, methods: Sequence[str]) -> tuple[dict[str, float], int]:
    """Return each method's mean rank by mean error (1 is best, ties share), and over how many tables that have all."""
    from scipy.stats import rankdata  # slow to import

    whole = [table for table in errors.values() if all(method in table for method in methods)]
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


def against_erm(errors: Errors, methods: Sequence[str]) -> dict[str, float]:
    """Return the p value of each method against ERM over tables, Wilcoxon's after Holm's correction."""
    others = [method for method in methods if method != BASE]
    both = [[each for each in errors.values() if {method, BASE} <= each.keys()] for method in others]
    p = [wilcoxon([mean_error(e[m]) - mean_error(e[BASE]) for e in own]) for m, own in zip(others, both, strict=True)]
    return dict(zip(others, holm(p), strict=True))


def verdict(records: Sequence[Mapping[str, Any]], condition: str, method: str, level: float, equal: float) -> str:
    """Return what is said of a method in a setting: where it stands, each table's verdict, and what could be seen.

    Args:
        records: of the method, of ERM and of whatever it is to stand beside, on the tables that it is judged on.
        condition: the setting.
        method: which.
        level, equal: see `Change.verdict`.

    Raises:
        InputError: the method and ERM share no table with two splits.
    """
    errors = errors_of(records, condition)
    each, order = changes(errors, method), ranking(errors, method)
    if not each:
        raise InputError(f"{method} and {BASE} share no table of setting {condition} with two splits or more")
    place = [name for name, _ in order].index(method) + 1
    width = max(map(len, each))
    found = counts(each, level, equal)
    seen = np.quantile([change.detectable for change in each.values()], (0.25, 0.5, 0.75))
    erm, splits = chosen_erm(records, condition, method)
    tables = "".join(
        f"  {table:<{width}}  {interval_text(change.interval, 1):>20}  {change.verdict(level, equal)}\n"
        for table, change in each.items()
    )
    means = ", ".join(f"{name} {mean:.4f}" for name, mean in order)
    over = interval_text(over_tables(each), 1)
    return (
        f"Test error minus ERM's, in % of ERM's, with 95 % intervals over splits:\n{tables}"
        f"Verdict on {method}, setting {condition}, {len(each)} tables: {place} of {len(order)} by mean error\n"
        f"{fill(f'({means}).', WIDTH)}\n"
        f"Against ERM it gains on {found[GAINS]}, loses on {found[LOSES]}, makes no difference of {equal:g} % on "
        f"{found[EQUAL]}, and cannot be told on {found[UNTOLD]};\nmean over tables {over} %."
        f"\nWhat {POWER:.0%} of such studies would have seen, before Holm's correction: {seen[1]:.1f} % in the median "
        f"table\n(quartiles {seen[0]:.1f} and {seen[2]:.1f}).\nTuning chose ERM itself on {erm} of {splits} splits."
    )
