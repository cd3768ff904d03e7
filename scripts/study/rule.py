"""A rule that foretells C-Mixup minus ERM from a table's traits, judged on tables that it has not seen.

Candidates from "always ERM" to a ridge regression on all traits are compared by leaving out one table after another;
the choice is made inside that of another table that is left out (nested cross-validation), so that what is said of the
rule holds for tables that neither it nor its choice has seen. All conditions of a table are left out together.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from scripts.records.stats import Interval, clustered
from scripts.study.effects import BASE, scores_of
from scripts.study.traits import TRAITS

METHOD = "cmixup"
FOLLOWED = "C-Mixup where the rule foretells a gain"
BY_OTHERS = "for each seed, C-Mixup where it helps on the mean of the other seeds"
PENALTIES = (3.0, 30.0, 300.0)
FILE = "rule.json"
DIGITS = 6

Record = Mapping[str, Any]


@dataclass(frozen=True)
class Case:
    """One table under one condition.

    Attributes:
        table, condition: names.
        traits: values in the order of `TRAITS`.
        effect: C-Mixup's test error minus ERM's, in percent of ERM's, both meaned over seeds.
        by_validation: the same if the lower validation error of the tuning seed decides which of both is used.
        by_others: the same if for each seed the test errors of the other seeds decide.
        error: standard error of the effect over seeds.
    """

    table: str
    condition: str
    traits: tuple[float, ...]
    effect: float
    by_validation: float
    by_others: float = 0.0
    error: float = 0.0


@dataclass(frozen=True)
class Rule:
    """A fitted line: `intercept + sum(weight * (trait - mean) / std)`, in percent of ERM's error.

    Attributes:
        name: which candidate it is.
        intercept, weights, means, stds: of the line, by trait.
        low, high: the range of each trait that it was fitted on.
        spread: root mean squared error on tables that it has not seen.
        followed: what following it changes there against always using ERM, in percent: mean and interval.
        by_others: the same for whoever goes by the sign that other seeds of the same table show.
        cases, tables: it was fitted on.
    """

    name: str
    intercept: float
    weights: list[float]
    means: list[float]
    stds: list[float]
    low: list[float]
    high: list[float]
    spread: float
    followed: list[float]
    by_others: list[float]
    cases: int
    tables: int

    @property
    def helps(self) -> bool:
        """Whether following it lowers the error on tables that it has not seen, by more than the interval."""
        return bool(self.followed) and self.followed[2] < 0

    def __call__(self, traits: Sequence[float]) -> float:
        """Return the expected effect in percent; traits beyond the range count as its end."""
        inside = np.clip(np.asarray(traits, dtype=float), self.low, self.high)
        return float(self.intercept + (inside - self.means) / self.stds @ np.array(self.weights))

    def beyond(self, traits: Sequence[float]) -> list[str]:
        """Return which traits lie beyond the range that it was fitted on."""
        each = zip(TRAITS, traits, self.low, self.high, strict=True)
        return [name for name, value, low, high in each if not low <= value <= high]


@dataclass(frozen=True)
class Judgement:
    """What the rule does on tables that it has not seen, intervals over tables, in percent of ERM's error.

    Attributes:
        squared: mean squared error of the rule's prediction minus that of predicting 0.
        policies: change of the error against always using ERM, by policy.
        by_own: the mean change where the sign and the change are of the same seeds, which chance makes negative.
        by_chance: what that is expected to be if the effect is 0 everywhere.
        signs: share of cases whose sign was foretold, among those where the rule does not say 0.
        chosen: how often each candidate was the choice.
        spread: see `Rule`.
    """

    squared: Interval | None
    policies: dict[str, Interval | None]
    by_own: float
    by_chance: float
    signs: float
    chosen: dict[str, int]
    spread: float


def cases_of(records: Sequence[Record], traits: Iterable[Record]) -> list[Case]:
    """Return the cases that have ERM, C-Mixup and traits."""
    described = {(t["table"], t["condition"]): tuple(t["traits"][name] for name in TRAITS) for t in traits}
    best = {(r["table"], r["condition"], r["method"]): min(t["val"] for t in r["trials"]) for r in records}
    found = []
    for condition in dict.fromkeys(record["condition"] for record in records):
        for table, methods in scores_of(records, condition).items():
            key = (table, condition)
            if BASE in methods and METHOD in methods and key in described:
                seeds = [seed for seed in methods[BASE] if seed in methods[METHOD]]
                erm, ours = (np.array([methods[m][seed] for seed in seeds]) for m in (BASE, METHOD))
                effect = 100 * (float(ours.mean()) / float(erm.mean()) - 1)
                lower = best[*key, METHOD] < best[*key, BASE]
                by_others, error = judged_by_others(100 * (ours - erm) / erm.mean())
                found.append(Case(*key, described[key], effect, effect if lower else 0.0, by_others, error))
    return found


def judged_by_others(differences: np.ndarray) -> tuple[float, float]:
    """Return the mean of differences by seed that is left where other seeds decide, and the mean's standard error.

    A seed's difference counts where the mean of the others is below 0: none judges a sign that it chose.
    """
    others = differences.sum() - differences
    kept = np.where(others < 0, differences, 0.0)
    return float(kept.mean()), float(differences.std(ddof=1)) / math.sqrt(len(differences))


# ---- candidates: each takes traits (n, k) and effects (n,), and returns intercept and weights by standardised trait

Fit = Callable[[np.ndarray, np.ndarray], tuple[float, np.ndarray]]


def mean(x: np.ndarray, y: np.ndarray) -> tuple[float, np.ndarray]:
    """Foretell the mean effect."""
    return float(y.mean()), np.zeros(x.shape[1])


def ridge(penalty: float, columns: Sequence[int] | None = None) -> Fit:
    """Return a ridge regression on all traits, or on some."""

    def fit(x: np.ndarray, y: np.ndarray) -> tuple[float, np.ndarray]:
        used = list(range(x.shape[1])) if columns is None else list(columns)
        part, weights = x[:, used], np.zeros(x.shape[1])
        weights[used] = np.linalg.solve(part.T @ part + penalty * np.eye(len(used)), part.T @ (y - y.mean()))
        return float(y.mean()), weights

    return fit


ALWAYS_ERM = "always ERM"
CANDIDATES: dict[str, Fit] = {
    ALWAYS_ERM: lambda x, _: (0.0, np.zeros(x.shape[1])),
    "the mean effect": mean,
    **{f"ridge, penalty {penalty:g}": ridge(penalty) for penalty in PENALTIES},
    **{f"{name} alone": ridge(PENALTIES[0], [k]) for k, name in enumerate(TRAITS)},
}


def left_out(cases: Sequence[Case], choose_from: Callable[[Sequence[Case]], str]) -> tuple[np.ndarray, list[str]]:
    """Foretell every case by a candidate that is chosen and fitted on the other tables.

    Args:
        cases: all of them.
        choose_from: takes the cases of the other tables and returns the name of a candidate.

    Returns:
        The predictions, `(n,)`, and the candidate that each table got.
    """
    found, chosen = np.empty(len(cases)), list[str]()
    for table in dict.fromkeys(case.table for case in cases):
        others = [case for case in cases if case.table != table]
        chosen.append(choose_from(others))
        rule = fit_rule(chosen[-1], others)
        for k, case in enumerate(cases):
            if case.table == table:
                found[k] = rule(case.traits)
    return found, chosen


def choose(cases: Sequence[Case]) -> str:
    """Return the candidate with the lowest squared error on tables that are left out."""
    effect = np.array([case.effect for case in cases])
    errors = {name: float(np.square(left_out(cases, partial(_always, name))[0] - effect).mean()) for name in CANDIDATES}
    return min(errors, key=errors.__getitem__)


def _always(name: str, _: Sequence[Case]) -> str:
    return name


def fit_rule(name: str, cases: Sequence[Case], judged: Judgement | None = None) -> Rule:
    """Fit one candidate on cases; `judged` is what the rule says of itself."""
    x = np.array([case.traits for case in cases])
    y = np.array([case.effect for case in cases])
    means, std = x.mean(axis=0), x.std(axis=0)
    stds = np.where(std > 0, std, 1.0)
    intercept, weights = CANDIDATES[name]((x - means) / stds, y)
    return Rule(
        name=name,
        intercept=round(intercept, DIGITS),
        weights=_rounded(weights),
        means=_rounded(means),
        stds=_rounded(stds),
        low=_rounded(x.min(axis=0)),
        high=_rounded(x.max(axis=0)),
        spread=round(judged.spread, DIGITS) if judged else math.nan,
        followed=_numbers(judged.policies[FOLLOWED]) if judged else [],
        by_others=_numbers(judged.policies[BY_OTHERS]) if judged else [],
        cases=len(cases),
        tables=len({case.table for case in cases}),
    )


def _numbers(interval: Interval | None) -> list[float]:
    return [] if interval is None else _rounded(np.array([interval.mean, interval.low, interval.high]))


def _rounded(values: np.ndarray) -> list[float]:
    return [round(float(value), DIGITS) for value in values]


def judge(cases: Sequence[Case]) -> Judgement:
    """Leave out one table after another, choose and fit on the others, and foretell it."""
    foretold, chosen = left_out(cases, choose)
    tables = [case.table for case in cases]
    effect = np.array([case.effect for case in cases])
    policies = {
        "C-Mixup always": effect,
        FOLLOWED: np.where(foretold < 0, effect, 0.0),
        "tune and train both, keep the lower validation error": np.array([case.by_validation for case in cases]),
        BY_OTHERS: np.array([case.by_others for case in cases]),
    }
    says = foretold != 0
    return Judgement(
        clustered((np.square(foretold - effect) - np.square(effect)).tolist(), tables),
        {name: clustered(values.tolist(), tables) for name, values in policies.items()},
        float(np.minimum(effect, 0.0).mean()),
        -float(np.mean([case.error for case in cases])) / math.sqrt(2 * math.pi),  # E min(z, 0) of a normal z
        float((np.sign(foretold) == np.sign(effect))[says].mean()) if says.any() else float("nan"),
        dict(Counter(chosen).most_common()),
        float(np.sqrt(np.square(foretold - effect).mean())),
    )


def to_json(rule: Rule) -> str:
    """Return a rule as text."""
    return json.dumps({**asdict(rule), "traits": list(TRAITS)}, indent=1) + "\n"


def read_rule(path: Path) -> Rule:
    """Return the rule that `to_json` wrote."""
    given = json.loads(path.read_text())
    given.pop("traits")
    return Rule(**given)
