"""What protocol 2 says of a method: the direction of its mean effect, and the size of its effect on each table.

Both are read from one model of the effects over tables (`scripts.effects.effects`), for mixing, ensembles and entries
alike. *Direction* is said of the mean alone; *size* is said of a table, and of a table that nobody has seen.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from textwrap import fill as wrapped
from typing import Any

import numpy as np
from scipy.special import bdtr, fdtrc, stdtr

from cmixup.errors import InputError
from scripts.effects.effects import Posterior, fit_effects
from scripts.effects.quadrature import Estimate
from scripts.protocol.rules import BASE, HELD_SHARE, TRAIN_SHARE
from scripts.records.stats import Interval, clustered_interval, holm_adjusted, standard_error
from scripts.records.tables import interval_text

GAINS, LOSES, EQUAL, UNTOLD = "gains", "loses", "within", "cannot be told"
VERDICTS = (GAINS, LOSES, EQUAL, UNTOLD)
LOWER, HIGHER = "lower", "higher"
OVERLAP = HELD_SHARE / TRAIN_SHARE  # test rows for each training row
WIDTH = 80  # columns of a verdict's lines

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
    def overall(self) -> Interval:
        """The mean effect of the tables with its 95 % interval, by the model."""
        return self._interval(self.posterior.overall)

    @property
    def of_new(self) -> Interval:
        """What to expect of a table that nobody has seen, with the interval of its effect."""
        return self._interval(self.posterior.new)

    @property
    def plain(self) -> Interval | None:
        """The mean over tables, each counted alike, with its t interval over tables; None for one table."""
        return clustered_interval(list(self.means.values()), list(self.means))

    @property
    def tables(self) -> dict[str, tuple[Interval, str]]:
        """The effect of each table with its 95 % interval, and the verdict on its size."""
        return {t: (self._interval(each), self.size(each)) for t, each in self.posterior.tables.items()}

    def shown(self, equal: float) -> dict[str, tuple[Interval, str]]:
        """Return `tables` with the names that pictures have for verdicts."""
        return {table: (own, verdict_name(kind, equal)) for table, (own, kind) in self.tables.items()}

    def _interval(self, each: Estimate) -> Interval:
        return Interval(each.mean, each.low, each.high, len(self.means))

    def size(self, each: Estimate) -> str:
        """Return whether an effect gains, loses, lies within the size that counts, or cannot be told."""
        chances = each.chances
        found = {GAINS: chances.gain, LOSES: chances.loss, EQUAL: chances.within}
        return next((kind for kind, chance in found.items() if chance >= self.sure), UNTOLD)

    def counts(self) -> dict[str, int]:
        """Return how many tables have each verdict."""
        found = Counter(verdict for _, verdict in self.tables.values())
        return {verdict: found[verdict] for verdict in VERDICTS}

    def direction(self) -> str:
        """Return whether the mean effect is below 0 or above, or cannot be told.

        The model and the plain mean must both say so: where they disagree, nothing is said.
        """
        below = [self.posterior.overall.below]
        if self.plain is not None:
            error = standard_error(self.plain)
            freedom = self.plain.n - 1
            below.append(float(stdtr(freedom, -self.plain.mean / error)) if error else float(self.plain.mean < 0))
        if min(below) >= self.sure:
            return LOWER
        return HIGHER if max(below) <= 1 - self.sure else UNTOLD

    def sided(self) -> tuple[int, int]:
        """Return on how many tables the effect is below 0, and on how many above, with the probability asked for."""
        below = [each.below for each in self.posterior.tables.values()]
        return sum(p >= self.sure for p in below), sum(p <= 1 - self.sure for p in below)


def errors_of(records: Iterable[Mapping[str, Any]], condition: str, score: str = "test", weights: int = 2) -> Errors:
    """Return the errors of one setting by table, method and split, each the mean over initial weights.

    Args:
        records: of cells.
        condition: the setting.
        score: "test", "test_balanced" or "test_worst"; tables that lack it are left out.
        weights: of a split that count, the first of them: an ensemble has more than another method.
    """
    found: dict[str, dict[str, dict[int, float]]] = {}
    for record in records:
        if record["condition"] != condition:
            continue
        rows: dict[int, list[float]] = {}
        for row in sorted(record["seeds"], key=lambda row: row["seed"]):
            if score in row:
                rows.setdefault(row["split"], []).append(row[score])
        means = {split: float(np.mean(values[:weights])) for split, values in rows.items()}
        finite = {split: value for split, value in means.items() if math.isfinite(value)}
        if finite:
            found.setdefault(record["table"], {})[record["method"]] = finite
    return found


def percent_differences(
    errors: Errors, method: str, base: str = BASE, *, relative: bool = True
) -> dict[str, dict[int, float]]:
    """Return a method's error minus that of `base` by table and split, in percent of the mean of `base` on the table.

    Tables without two splits of both are left out. Without `relative` they are in the unit of the errors, such as nats.
    """
    found = {}
    for table, methods in errors.items():
        if {method, base} <= methods.keys():
            ours, theirs = methods[method], methods[base]
            both = sorted(ours.keys() & theirs.keys())
            share, whole = (100, mean_error(theirs)) if relative else (1, 1.0)
            own = {s: share * (ours[s] - theirs[s]) / whole for s in both}
            if len(own) > 1:
                found[table] = own
    return found


def method_effect(
    errors: Errors, method: str, level: float, equal: float, *, base: str = BASE, overlap: float = OVERLAP,
    relative: bool = True,
) -> Effect | None:  # fmt: skip
    """Return what a method changes on the tables that have it and `base` on two splits or more; None without any.

    Args:
        errors: of one setting.
        method: which.
        level: a verdict needs a probability of 1 minus this.
        equal: percent of the error of `base`; an effect within is no gain and no loss.
        base: what it is compared with.
        overlap: test rows for each training row, see `scripts.effects.effects.fit_effects`.
        relative: see `percent_differences`; without it `equal` is in the unit of the errors.
    """
    found = percent_differences(errors, method, base, relative=relative)
    if not found:
        return None
    values = {table: tuple(own.values()) for table, own in found.items()}
    return Effect(fit_effects(values, overlap, equal), {t: float(np.mean(v)) for t, v in values.items()}, 1 - level)


def sign_test(differences: Sequence[float]) -> tuple[int, int, float]:
    """Return how many differences are below 0, of how many that are not 0, and the two-sided binomial p value."""
    below, n = sum(d < 0 for d in differences), sum(d != 0 for d in differences)
    return below, n, min(1.0, 2 * float(bdtr(min(below, n - below), n, 0.5))) if n else 1.0


def sign_text(means: Mapping[str, float]) -> str:
    """Return on how many tables the change is below 0, of how many, with the p value of the sign test."""
    return "{} of {} (p {:.2g})".format(*sign_test(list(means.values())))


def chance_text(p: float) -> str:
    """Return a probability as pages print it."""
    return "below 0.01" if p < 0.01 else "above 0.99" if p > 0.99 else f"{p:.2f}"


def verdict_name(kind: str, equal: float, unit: str = "%") -> str:
    """Return how pages and pictures name a verdict, with the size that counts."""
    return f"within {equal:g} {unit}" if kind == EQUAL else kind


def mean_text(found: Effect) -> str:
    """Return the mean effect by the model and the plain mean, each with its interval."""
    model, plain = interval_text(found.overall, 1), interval_text(found.plain, 1)
    return f"{model} % by a model of all tables, {plain} % with all counted alike"


def new_text(found: Effect, equal: float) -> str:
    """Return in a sentence what a table that nobody has seen may expect."""
    new = found.posterior.new.chances
    return (
        f"A new table gains {equal:g} % or more with probability {chance_text(new.gain)} and loses as much with "
        f"{chance_text(new.loss)}."
    )


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


def rank_methods(errors: Errors, method: str) -> list[tuple[str, float]]:
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


def friedman_p(ranks: Mapping[str, float], tables: int) -> float:
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


def wilcoxon_p(differences: Sequence[float]) -> float:
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
    p = [wilcoxon_p([mean_error(e[m]) - mean_error(e[BASE]) for e in own]) for m, own in zip(others, both, strict=True)]
    return dict(zip(others, holm_adjusted(p), strict=True))


def method_verdict(
    records: Sequence[Mapping[str, Any]], condition: str, method: str, level: float, equal: float
) -> str:
    """Return what is said of a method in a setting: each table, the mean, a new table, and its place.

    Args:
        records: of the method, of ERM and of whatever it is to be ranked with, on the tables that it is judged on.
        condition: the setting.
        method: which.
        level, equal: see `method_effect`.

    Raises:
        InputError: the method and ERM share no table with two splits.
    """
    errors = errors_of(records, condition)
    found, order = method_effect(errors, method, level, equal), rank_methods(errors, method)
    if not found:
        raise InputError(f"{method} and {BASE} share no table of setting {condition} with two splits or more")
    place = [name for name, _ in order].index(method) + 1
    width = max(map(len, found.means))
    told = found.counts()
    erm, splits = chosen_erm(records, condition, method)
    trials = [trial for r in records if r["method"] == method for trial in r.get("trials", ())]
    own = [trial["options"] for trial in trials if "options" in trial]
    tuned = f"Tuning chose ERM itself on {erm} of {splits} splits."
    if own and all(map(is_erm, own)):
        tuned = "Rate and decay are those that tuning chose for ERM; the method was not tuned."
    tables = "".join(
        f"  {table:<{width}}  {interval_text(own, 1):>20}  {verdict_name(kind, equal)}\n"
        for table, (own, kind) in found.tables.items()
    )
    means = ", ".join(f"{name} {mean:.4f}" for name, mean in order)
    size = (
        f"Size: gains {equal:g} % or more on {told[GAINS]} tables, loses as much on {told[LOSES]}, lies within on "
        f"{told[EQUAL]}, cannot be told on {told[UNTOLD]}."
    )
    said = [
        f"Verdict on {method}, setting {condition}, {len(found.means)} tables",
        f"Mean over tables: {mean_text(found)}; {direction_text(found)}.",
        size,
        new_text(found, equal),
        f"By mean error {place} of {len(order)}: {means}.",
        tuned,
    ]
    head = "Test error minus ERM's, % of ERM's, by a model of all tables, 95 % intervals"
    return f"{head}\n{tables}" + "\n".join(wrapped(line, WIDTH, break_on_hyphens=False) for line in said)


def direction_text(found: Effect) -> str:
    """Return in words which side of 0 the mean effect lies on."""
    if (way := found.direction()) != UNTOLD:
        return f"the mean error is {way}"
    below = found.posterior.overall.below
    told = max(below, 1 - below) >= found.sure  # by the model alone
    return f"{'the two means disagree, so the' if told else 'the'} direction cannot be told"
