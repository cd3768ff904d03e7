"""The parts of the study beside protocol 2, each by rules of its own: what their methods change in whole settings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from cmixup.losses import SQUARED
from scripts.effects.verdicts import Effect, errors_of, method_effect
from scripts.protocol.protocols import Protocol2, rules_named
from scripts.protocol.published import read_store
from scripts.protocol.rules import BASE, Condition
from scripts.study.evidence import TITLES, Record

NO_SEARCH, LIKELIHOOD = "no_search", "likelihood"
#: Titles of rules of another network than the study's.
NETWORKS = {"network_wide": "A wide network", "network_realmlp": "RealMLP", "network_tabm": "TabM"}
#: Titles of the methods of these rules.
ARMS = {
    "cmixup_alpha02": "C-Mixup, alpha 0.2", "cmixup_alpha2": "C-Mixup, alpha 2", "mixup_alpha02": "mixup, alpha 0.2",
    "mixup": "mixup", "cmixup": "C-Mixup", "regmixup": "RegMixup", "input_noise": "Gaussian noise on inputs",
}  # fmt: skip
NATS, LOG_SCORE = "nats", "test_nll_rescaled"  # of networks that predict distributions


class WholeSetting(NamedTuple):
    """One setting of a part, on all of its tables or on the lite ones, that have every method.

    Attributes:
        name: of the condition.
        tables: which those are, in words.
        splits: of each table.
        records: of the networks on these tables.
        effects: of each method but ERM, in `unit_of` the rules.
    """

    name: str
    tables: str
    splits: int
    records: list[Record]
    effects: dict[str, Effect]

    @property
    def by_title(self) -> dict[str, Effect]:
        """The effects by the methods' titles."""
        return {ARMS[arm]: own for arm, own in self.effects.items()}

    @property
    def where(self) -> str:
        """Setting, tables and splits in words."""
        return f"{lower_first(TITLES[self.name])}, {self.tables}, {self.splits} splits"


def lower_first(text: str) -> str:
    """Return a text as it stands within a sentence."""
    return text[0].lower() + text[1:]


def upper_first(text: str) -> str:
    """Return a text as it begins a sentence."""
    return text[0].upper() + text[1:]


def arms_of(rules: Protocol2) -> dict[str, str]:
    """Return the title of each method but ERM."""
    return {name: ARMS[name] for name in rules.methods if name != BASE}


def unit_of(rules: Protocol2) -> str:
    """Return the unit of effects: percent of ERM's error, or nats where networks predict distributions."""
    return "%" if rules.loss == SQUARED.name else NATS


def part_settings(name: str) -> Iterator[WholeSetting]:
    """Yield the whole settings of a part, by the name of its rules."""
    rules = rules_named(name)
    stored = read_store(rules)
    for condition in rules.conditions:
        records, tables = whole_records(stored, rules, condition)
        if records:
            each = {arm: arm_effect(records, condition.name, arm, rules) for arm in arms_of(rules)}
            yield WholeSetting(condition.name, tables, rules.splits, records, each)


def arm_effect(records: Sequence[Record], condition: str, arm: str, rules: Protocol2, score: str = "") -> Effect:
    """Return what a method changes against ERM on the same network.

    Args:
        records: of a whole setting, and of others to be compared with its ERM.
        condition: the setting.
        arm: which.
        rules: of the part.
        score: by default the one that the part is about; others than its likelihood are in percent of ERM's.
    """
    score = score or ("test" if unit_of(rules) == "%" else LOG_SCORE)
    relative = not score.startswith("test_nll")
    errors = errors_of(records, condition, score, rules.weights)
    found = method_effect(errors, arm, rules.level, rules.equal, relative=relative)
    assert found is not None
    return found


def whole_records(records: Sequence[Record], rules: Protocol2, condition: Condition) -> tuple[list[Record], str]:
    """Return the records of a setting on all tables, or the lite ones, that have all methods, and which those are."""
    own = [record for record in records if record["condition"] == condition.name]
    there: dict[str, set[str]] = {}
    for record in own:
        there.setdefault(record["table"], set()).add(record["method"])
    tables = {table for table, methods in there.items() if methods >= set(condition.methods)}
    every, lite = {cell.table.name for cell in rules.cells(conditions=[condition.name])}, set(rules.lite_tables())
    kept = every if tables >= every else lite if tables >= lite else set()
    said = f"{len(kept)} tables" if kept == every else f"the {len(kept)} tables with the fewest rows"
    return [record for record in own if record["table"] in kept], said
