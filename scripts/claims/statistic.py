"""The statistics that a sentence may print and be held to, and the rules by which it stands.

A statistic is a short mapping, such as `{difference: [cmixup, erm]}`, in which a name stands for the query with that
method and `each` for the query as it is; further keys change the query. A rule is a short text, such as `d below 0`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from cmixup.errors import InputError
from cmixup.metrics import lower_is_better
from scripts.claims.evidence import Evidence, Query, sample_difference
from scripts.claims.paper_verdict import means_agree
from scripts.records.stats import Summary, clustered_interval, of_interval

Node = Mapping[str, Any]


@dataclass(frozen=True)
class Number:
    """One statistic: a number, its standard deviation over n values or its interval where it has one.

    It prints as the number, as `+0.121 [-0.029, +0.271]` where it has an interval.
    """

    mean: float
    std: float = math.nan
    n: int = 0
    low: float = math.nan
    high: float = math.nan

    def __format__(self, spec: str) -> str:
        """Print with a format of floats, `.3f` for instance, or `g` for counts."""
        spec = spec or ".3f"
        if math.isnan(self.low):
            return format(self.mean, spec)
        return f"{self.mean:+{spec}} [{self.low:+{spec}}, {self.high:+{spec}}]"

    @property
    def width(self) -> float:
        """The width of its interval."""
        return self.high - self.low


def selected_query(selection: Any, query: Query) -> Query:
    """Return the query that `selection` stands for: `each`, the name of a method, or a mapping of what it changes."""
    if selection == "each":
        return query
    return {**query, **(selection if isinstance(selection, Mapping) else {"method": selection})}


def mean_of(evidence: Evidence, query: Query, of: Any, _: Node) -> Number:
    """Return the mean over seeds, with the standard deviation (n - 1 in the denominator)."""
    found = evidence.sample(selected_query(of, query)).summary
    return Number(found.mean, found.std, found.n)


def std_of(evidence: Evidence, query: Query, of: Any, _: Node) -> Number:
    """Return the standard deviation over seeds."""
    found = evidence.sample(selected_query(of, query)).summary
    return Number(found.std, n=found.n)


def interval_of(evidence: Evidence, query: Query, of: Any, _: Node) -> Number:
    """Return the mean over units with its 95 % t interval, over clusters where the query names some.

    Raises:
        InputError: fewer than two units or clusters.
    """
    found = evidence.sample(selected_query(of, query))
    groups = found.clusters or {unit: unit for unit in found.values}
    own = clustered_interval(list(found.values.values()), [groups[unit] for unit in found.values])
    if own is None:
        raise InputError(f"{query} must have two values or more for an interval")
    return Number(own.mean, n=own.n, low=own.low, high=own.high)


def minus_of(evidence: Evidence, query: Query, of: Sequence[Any], _: Node) -> Number:
    """Return first minus second with its 95 % interval; without one where there is one seed."""
    first, second = (evidence.sample(selected_query(s, query)) for s in of)
    found = sample_difference(first, second)
    if found is None:
        return Number(first.summary.mean - second.summary.mean, n=min(first.summary.n, second.summary.n))
    return Number(found.mean, n=found.n, low=found.low, high=found.high)


def p_value(evidence: Evidence, query: Query, of: Sequence[Any], options: Node) -> Number:
    """Return the p value of first minus second, two-sided and paired, times how many `tests` there are; at most 1.

    Raises:
        InputError: both sides share no units, or too few.
    """
    first, second = (evidence.sample(selected_query(s, query)) for s in of)
    found = sample_difference(first, second)
    if found is None or not (first.units and first.units == second.units):
        raise InputError("a p value must be of two sides with the same seeds, of two seeds or more")
    return Number(min(1.0, of_interval(found).chance * options.get("tests", 1)), n=found.n)


def rank_of(evidence: Evidence, query: Query, of: Any, options: Node) -> Number:
    """Return the rank of a method's mean among others', 1 is best; its mean over datasets where the query lists some.

    Equal means share the mean of their ranks.
    """
    wanted = selected_query(of, query)
    datasets = wanted["dataset"] if isinstance(wanted["dataset"], list) else [wanted["dataset"]]
    sign = 1 if lower_is_better(wanted["metric"]) else -1
    ranks = []
    for dataset in datasets:
        scores = {
            m: sign * evidence.sample({**wanted, "dataset": dataset, "method": m}).summary.mean
            for m in {*options["among"], wanted["method"]}
        }
        mine = scores[wanted["method"]]
        ranks.append(1 + sum(s < mine for s in scores.values()) + (sum(s == mine for s in scores.values()) - 1) / 2)
        if any(map(math.isnan, scores.values())):
            return Number(math.nan)
    return Number(sum(ranks) / len(ranks), n=len(ranks))


def spread_of(evidence: Evidence, query: Query, of: Sequence[Any], _: Node) -> Number:
    """Return the distance of the largest mean from the smallest."""
    means = [evidence.sample(selected_query(s, query)).summary.mean for s in of]
    return Number(math.nan if any(map(math.isnan, means)) else max(means) - min(means), n=len(means))


def count_of(evidence: Evidence, query: Query, of: Any, options: Node) -> Number:
    """Return how many runs, or rows of a file, have a value above a bound; n is how many there are."""
    runs = evidence.facts(selected_query(of, query))
    return Number(sum(max(values) > options["above"] for values in runs), n=len(runs))


STATISTICS: dict[str, Callable[[Evidence, Query, Any, Node], Number]] = {
    "mean": mean_of, "std": std_of, "interval": interval_of, "difference": minus_of, "p": p_value, "rank": rank_of,
    "spread": spread_of, "count": count_of,
}  # fmt: skip
#: These are of numbers that the check named before, or of a constant.
DERIVED: dict[str, Callable[..., float]] = {
    "minus": lambda a, b: a.mean - b.mean,
    "ratio": lambda a, b: a.mean / b.mean,
    "wider": lambda a, b: a.width / b.width,
}
OPTIONS = {"among", "above", "tests"}


def evaluate_statistic(node: Node, query: Query, evidence: Evidence, before: Mapping[str, Number]) -> Number:
    """Return the number that a statistic gives.

    Args:
        node: one key that names the statistic, its options, and changes of the query.
        query: where it is taken.
        evidence: the source of all numbers.
        before: numbers by name, for statistics of these.

    Raises:
        InputError: no or several statistics are named, or a query finds nothing.
    """
    named = [key for key in node if key in STATISTICS or key in DERIVED]
    if len(named) != 1:
        raise InputError(f"{dict(node)} must name one statistic of {', '.join((*STATISTICS, *DERIVED))}")
    (name,) = named
    if name in DERIVED:
        return Number(DERIVED[name](*(before[n] if n in before else Number(n) for n in node[name])))
    changes = {key: value for key, value in node.items() if key != name and key not in OPTIONS}
    return STATISTICS[name](evidence, {**query, **changes}, node[name], node)


#: Of two numbers and how far apart they may lie; the first three are of the first one's interval.
RELATIONS: dict[str, Callable[[Number, Number, float], bool]] = {
    "below": lambda a, b, _: a.high < b.mean,
    "above": lambda a, b, _: a.low > b.mean,
    "contains": lambda a, b, _: a.low <= b.mean <= a.high,
    "agrees": lambda a, b, _: means_agree(Summary(a.mean, a.std, a.n), Summary(b.mean, b.std, b.n)),
    "==": lambda a, b, within: abs(a.mean - b.mean) <= within,
    "<=": lambda a, b, _: a.mean <= b.mean,
    ">=": lambda a, b, _: a.mean >= b.mean,
    "<": lambda a, b, _: a.mean < b.mean,
    ">": lambda a, b, _: a.mean > b.mean,
}
RULE = re.compile(rf"(\w+)( not)? ({'|'.join(RELATIONS)}) (\S+)(?: within (\S+))?")


def rule_holds(rule: str, numbers: Mapping[str, Number]) -> bool:
    """Return whether a rule holds; never where a number in it is not finite.

    Raises:
        InputError: the text is no rule, or names a number that there is not.
    """
    parts = RULE.fullmatch(rule)
    if not parts:
        raise InputError(f"rule must be '<name> [not] below|above|contains|agrees|==|<|<=|>|>= <other>', got {rule!r}")
    name, negated, relation, other, within = parts.groups()
    first, second = (_read_operand(word, numbers, rule) for word in (name, other))
    interval = relation in ("below", "above", "contains")
    if interval and math.isnan(first.low) and math.isfinite(first.mean):
        raise InputError(f"rule {rule!r} is of an interval, but {name} has none: it rests on one value")
    needed = [second.mean, *([first.low, first.high] if interval else [first.mean])]
    if not all(map(math.isfinite, needed)):
        return False
    return bool(RELATIONS[relation](first, second, float(within or 0))) != bool(negated)


def _read_operand(word: str, numbers: Mapping[str, Number], rule: str) -> Number:
    if word in numbers:
        return numbers[word]
    try:
        return Number(float(word))
    except ValueError:
        raise InputError(f"rule {rule!r} names {word}, which is none of {', '.join(numbers)}") from None
