"""What protocol 2 says of a method on a table: it gains, it loses, it makes no difference of 1 %, or it cannot be told.

A split counts once: the errors of its sets of initial weights are averaged, and splits of the same rows overlap, which
the correction of Nadeau and Bengio (2003) allows for.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import stdtr, stdtrit

from cmixup.errors import InputError
from scripts.records.stats import Interval, clustered, paired
from scripts.records.tables import interval_text
from scripts.study.effects import BASE, holm, overlapping, t_test
from scripts.study.rules import HELD_SHARE, TRAIN_SHARE

GAINS, LOSES, EQUAL, UNTOLD = "gains", "loses", "no difference", "cannot be told"
VERDICTS = (GAINS, LOSES, EQUAL, UNTOLD)
OVERLAP = HELD_SHARE / TRAIN_SHARE  # test rows for each training row
POWER = 0.8

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
        whole = float(np.mean(list(methods[BASE].values())))
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
            means = [[float(np.mean(list(each[m].values()))) for m in (one, other)] for each in both]
            if one != other and means:
                found[one, other] = float(np.mean([0.5 * (a == b) + (a < b) for a, b in means]))
    return found


def ranking(errors: Errors, method: str) -> list[tuple[str, float]]:
    """Return the methods that have all tables of one of them, with their mean errors over these, the best first."""
    tables = [methods for methods in errors.values() if method in methods]
    names = sorted(name for name in set().union(*tables) if all(name in methods for methods in tables))
    means = {name: float(np.mean([np.mean(list(methods[name].values())) for methods in tables])) for name in names}
    return sorted(means.items(), key=lambda pair: pair[1])


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
    over = clustered([change.interval.mean for change in each.values()], list(each))
    return (
        f"Test error minus ERM's, in % of ERM's, with 95 % intervals over splits:\n{tables}"
        f"Verdict on {method}, setting {condition}, {len(each)} tables: {place} of {len(order)} by mean error\n"
        f"({means}).\n"
        f"Against ERM it gains on {found[GAINS]}, loses on {found[LOSES]}, makes no difference of {equal:g} % on "
        f"{found[EQUAL]}, and cannot be told on {found[UNTOLD]};\nmean over tables {interval_text(over, 1)} %."
        f"\nWhat {POWER:.0%} of such studies would have seen, before Holm's correction: {seen[1]:.1f} % in the median "
        f"table\n(quartiles {seen[0]:.1f} and {seen[2]:.1f}).\nTuning chose ERM itself on {erm} of {splits} splits."
    )
