"""Sentences held to records: `results/claims.yaml`, read and checked (CONTRIBUTING.md says how to add one)."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from cmixup.errors import InputError
from scripts.claims.evidence import Evidence, as_text
from scripts.claims.statistic import Number, evaluate_statistic, rule_holds
from scripts.config.compose import read_part
from scripts.records import names

FILE = "claims.yaml"
CHECK_KEYS = {"of", "each", "holds", "times"}
CLAIM_KEYS = {"text", "of", "checks"}
TYPED = re.compile(r"\d+\.\d+|\d+ ?%|± ?\d+")


@dataclass(frozen=True)
class Case:
    """One combination of what a check is for: its numbers, and whether every rule holds for it."""

    label: str
    numbers: Mapping[str, Number]
    holds: bool


@dataclass(frozen=True)
class Series:
    """What a text may print of one named number over all combinations of its check.

    As it is, it prints the only number, or every one behind its combination: `ERM +0.1, mixup +0.2`. Where the check
    says how often its rules hold, only the combinations for which they do are listed.

    Attributes:
        numbers: by the label of their combination.
        held, compared: for how many combinations the rules hold, and how many there are.
    """

    numbers: Mapping[str, Number]
    held: int
    compared: int

    def __format__(self, spec: str) -> str:
        if list(self.numbers) == [""]:
            return format(self.numbers[""], spec)
        return joined_words([f"{label} {value:{spec}}" for label, value in self.numbers.items()])

    @property
    def where(self) -> str:
        """The combinations in words."""
        return joined_words(list(self.numbers))

    @property
    def least(self) -> Number:
        """The smallest of the numbers."""
        return min(self.numbers.values(), key=lambda v: v.mean)

    @property
    def most(self) -> Number:
        """The largest of the numbers."""
        return max(self.numbers.values(), key=lambda v: v.mean)

    @property
    def n(self) -> str:
        """How many values each of the numbers rests on."""
        found = {v.n for v in self.numbers.values()}
        return str(min(found)) if len(found) == 1 else f"{min(found)} to {max(found)}"

    @property
    def mean(self) -> float:
        """The only number without its interval."""
        (only,) = self.numbers.values()
        return only.mean


def joined_words(words: Sequence[str]) -> str:
    """Return words as a list in a sentence."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words) or "none"


@dataclass(frozen=True)
class Check:
    """Numbers for every combination of `each`, and the rules that hold for as many of them as `times` says.

    Attributes:
        of: the query that all numbers start from.
        each: mappings from a key of the query, or from a `$name` that stands elsewhere, to a list of values. Every
            combination of one mapping's values is taken, of all mappings one after the other.
        numbers: statistics by name.
        rules: all of them must hold.
        times: a relation such as ">= 3" on the number of combinations; "" is all of them, "any" asks nothing.
    """

    of: Mapping[str, Any]
    each: Sequence[Mapping[str, Sequence[Any]]]
    numbers: Mapping[str, Mapping[str, Any]]
    rules: Sequence[str]
    times: str = ""

    def cases(self, evidence: Evidence) -> Iterator[Case]:
        """Yield every combination with its numbers."""
        varying = {key for each in self.each for key, values in each.items() if len(values) > 1 or len(self.each) > 1}
        for each in self.each:
            for values in itertools.product(*each.values()):
                chosen = dict(zip(each, values, strict=True))
                query = {**self.of, **{k: v for k, v in chosen.items() if not k.startswith("$")}}
                found: dict[str, Number] = {}
                for name, node in self.numbers.items():
                    found[name] = evaluate_statistic(_put_values(node, chosen), query, evidence, found)
                label = _choice_label({k: v for k, v in chosen.items() if k in varying})
                yield Case(label, found, all(rule_holds(rule, found) for rule in self.rules))

    def stands(self, cases: Sequence[Case]) -> bool:
        """Return whether the rules hold as often as they must."""
        held = Number(sum(case.holds for case in cases))
        return self.times == "any" or rule_holds(f"held {self.times or f'== {len(cases)}'}", {"held": held})


@dataclass(frozen=True)
class Claim:
    """One entry of the file."""

    name: str
    text: str
    checks: Sequence[Check]


@dataclass(frozen=True)
class Verdict:
    """A claim over given evidence.

    Attributes:
        claim: which.
        text: its sentence with current numbers.
        checks: every check with its combinations.
        error: why it could not be checked, such as records that are not there.
    """

    claim: Claim
    text: str = ""
    checks: Sequence[tuple[Check, Sequence[Case]]] = field(default_factory=list)
    error: str = ""

    @property
    def holds(self) -> bool:
        """Whether the sentence may be printed."""
        return not self.error and all(check.stands(cases) for check, cases in self.checks)

    def lines(self) -> list[str]:
        """Return what the command prints of it."""
        found = [f"{'HOLDS' if self.holds else 'FAILS'} {self.claim.name}"]
        if self.error:
            return [*found, f"    {self.error}"]
        found.append(f"    {self.text}")
        for check, cases in self.checks:
            held = sum(case.holds for case in cases)
            wanted = "" if check.stands(cases) else f", must be {check.times or 'all'}"
            if check.rules:
                found.append(f"    {'; '.join(check.rules)}: {held} of {len(cases)}{wanted}")
            for case in cases:
                mark = "" if case.holds else "no: "
                numbers = ", ".join(f"{name} = {value:.4f}" for name, value in case.numbers.items())
                found.append(f"        {mark}{case.label}{' ' if case.label else ''}{numbers}")
        return found


def read_claims(path: Path) -> dict[str, Any]:
    """Return the content of the file of claims.

    Raises:
        InputError: it is no YAML.
    """
    try:
        return read_part(path)
    except yaml.YAMLError as error:
        raise InputError(f"{path} is not YAML: {' '.join(str(error).split())}") from None


def load_claims(path: Path) -> list[Claim]:
    """Return the claims of a file.

    Raises:
        InputError: an entry with an unknown key or without text.
    """
    content = read_claims(path)
    lists = {f"${name}": value for name, value in content["lists"].items()}
    return [_parse_claim(name, node, lists) for name, node in content["claims"].items()]


def _parse_claim(name: str, node: Mapping[str, Any], lists: Mapping[str, Any]) -> Claim:
    if "text" not in node:
        raise InputError(f"claim {name} must have a text")
    if typed := TYPED.findall(re.sub(r"\{[^}]*\}", "", node["text"])):
        raise InputError(f"text of claim {name} holds {typed[0]!r}: its numbers come from statistics, {{name:.3f}}")
    single = "checks" not in node
    if not single and (unknown := set(node) - CLAIM_KEYS):
        raise InputError(f"claim {name} has checks, so {', '.join(sorted(unknown))} must stand in one of them")
    nodes = [{k: v for k, v in node.items() if k != "text"}] if single else node["checks"]
    return Claim(
        name, " ".join(node["text"].split()), [_parse_check(name, n, node.get("of", {}), lists) for n in nodes]
    )


def _parse_check(name: str, node: Mapping[str, Any], of: Mapping[str, Any], lists: Mapping[str, Any]) -> Check:
    node, of = _put_values(node, lists), _put_values(of, lists)
    numbers = {key: value for key, value in node.items() if key not in CHECK_KEYS}
    if not all(isinstance(value, Mapping) for value in numbers.values()):
        raise InputError(f"claim {name}: every number must be a mapping such as {{mean: erm}}, got {numbers}")
    rules = node.get("holds", [])
    of = {**of, **node.get("of", {})}
    each = node.get("each", {})
    return Check(
        of,
        each if isinstance(each, list) else [each],
        numbers,
        [rules] if isinstance(rules, str) else rules,
        str(node.get("times", "")),
    )


def _put_values(node: Any, values: Mapping[str, Any]) -> Any:
    """Return a node with `$name` replaced by its value, wherever it stands alone."""
    if isinstance(node, Mapping):
        return {key: _put_values(value, values) for key, value in node.items()}
    if isinstance(node, list):
        return [_put_values(value, values) for value in node]
    return values.get(node, node) if isinstance(node, str) else node


def _choice_label(chosen: Mapping[str, Any]) -> str:
    titles = {
        "dataset": names.dataset_title, "method": names.method_title, "column": names.method_title,
        "metric": names.metric_title, "preset": "preset {}".format, "bandwidth": "bandwidth {:g}".format,
    }  # fmt: skip
    # What is put in elsewhere belongs to the combination's other keys, and says nothing new.
    said = {k: v for k, v in chosen.items() if not (k.startswith("$") and isinstance(v, Mapping) and len(chosen) > 1)}
    words = {key: _value_words(value, titles.get(key.lstrip("$"), as_text)) for key, value in said.items()}
    first, *rest = [words[key] for key in sorted(words, key=lambda k: k not in ("method", "column"))] or [""]
    return f"{first} ({', '.join(rest)})" if rest else first


def _value_words(value: Any, title: Any) -> str:
    if isinstance(value, list):
        return " and ".join(_value_words(v, names.method_title) for v in value)
    if isinstance(value, Mapping):
        options = {
            key.rpartition(".")[2]: v for key, v in value.items() if key != "train.track"
        }  # which changes nothing
        return " ".join(f"{key} {as_text(v)}" for key, v in options.items()) or "nothing changed"
    return str(title(value))


def check_claim(claim: Claim, evidence: Evidence) -> Verdict:
    """Return whether a claim holds, with all numbers; what cannot be checked does not hold."""
    try:
        checks = [(c, list(c.cases(evidence))) for c in claim.checks]
        series: dict[str, Series] = {}
        for one, cases in checks:
            shown = [case for case in cases if case.holds] if one.times else cases
            held = sum(case.holds for case in cases)
            for name in one.numbers:
                if name in series:
                    raise InputError(f"{name} names two numbers")
                series[name] = Series({c.label: c.numbers[name] for c in shown}, held, len(cases))
        return Verdict(claim, claim.text.format(**series), checks)
    except (InputError, ArithmeticError, AttributeError, LookupError, ValueError) as error:
        return Verdict(claim, error=f"{type(error).__name__}: {error}")


def check_all(evidence: Evidence) -> list[Verdict]:
    """Return the verdict on every claim of the folder that holds the evidence."""
    return [check_claim(claim, evidence) for claim in load_claims(evidence.results / FILE)]


def count_intervals(verdicts: Sequence[Verdict]) -> int:
    """Return how many different intervals the claims rest on, over all combinations of all checks."""
    numbers = [n for v in verdicts for _, cases in v.checks for case in cases for n in case.numbers.values()]
    return len({(n.mean, n.low, n.high) for n in numbers if not math.isnan(n.low)})
