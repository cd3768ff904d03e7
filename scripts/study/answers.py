"""What all parts of the study say of mixing, in a line each: the first lines of when.md, and the referee's page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from scripts.effects.verdicts import UNTOLD, Effect, chance_text, errors_of, method_effect
from scripts.protocol.protocols import Protocol2, rules_named
from scripts.protocol.published import read_store
from scripts.protocol.rules import BASE
from scripts.records.tables import interval_text
from scripts.study.evidence import METHOD, Setting
from scripts.study.likelihood import DIGITS
from scripts.study.parts import (
    ARMS,
    LIKELIHOOD,
    MORE_SPLITS,
    NETWORKS,
    lower_first,
    part_settings,
    unit_of,
    upper_first,
)

NOT_RUN = "not run yet"


class Answer(NamedTuple):
    """What one arm changes in one setting of one part of the study.

    Attributes:
        part: of the study: "tuned", or the name of the rules.
        setting: with its tables and splits, in words.
        arm: the method, in words.
        own: its effect.
        unit: of the effect.
    """

    part: str
    setting: str
    arm: str
    own: Effect
    unit: str = "%"

    @property
    def size(self) -> str:
        """The mean effect by the model with its interval and unit."""
        return f"{interval_text(self.own.overall, 1 if self.unit == '%' else DIGITS)} {self.unit}"

    @property
    def direction(self) -> str:
        """Whether the mean is lower or higher, or that its direction cannot be told."""
        found = self.own.direction()
        return found if found != UNTOLD else f"direction {UNTOLD}"

    @property
    def chances(self) -> tuple[float, float]:
        """The probabilities that a new table gains or loses the size that counts."""
        return self.own.posterior.new.chances.gain, self.own.posterior.new.chances.loss


def tuned(found: Sequence[Setting], rules: Protocol2, methods: Sequence[str]) -> Iterator[Answer]:
    """Yield what tuned methods change in each whole setting of protocol 2."""
    for setting in (each for each in found if each.whole):
        where = f"{setting.title}, {setting.progress}, {rules.splits} splits"
        for method in methods:
            if own := setting.effect(method, rules):
                yield Answer("tuned", where, ARMS.get(method, method), own)


def with_more_splits(found: Setting, rules: Protocol2) -> tuple[Effect | None, int, int]:
    """Return C-Mixup's effect over the splits of protocol 2 and the later ones, and how many cells of these there are.

    There is none before ERM and C-Mixup have all tables with the later splits.
    """
    more = rules_named(MORE_SPLITS)
    wanted = {cell.key for cell in more.cells(methods=[BASE, METHOD])}
    records = [r for r in read_store(more) if r["method"] in (BASE, METHOD)]
    if len(records) < len(wanted):
        return None, len(records), len(wanted)
    errors = {table: {m: dict(each) for m, each in own.items()} for table, own in found.errors().items()}
    for table, own in errors_of(records, found.condition.name).items():
        for method, by_split in own.items():
            errors[table][method] |= by_split
    return method_effect(errors, METHOD, rules.level, rules.equal), len(records), len(wanted)


def of_part(name: str) -> Iterator[Answer]:
    """Yield what methods change in each whole setting of a part, by the name of its rules."""
    rules = rules_named(name)
    for each in part_settings(name):
        yield from (Answer(name, each.where, arm, own, unit_of(rules)) for arm, own in each.by_title.items())


def on_networks() -> Iterator[Answer]:
    """Yield what methods change on other networks, in each of their whole settings."""
    for name in NETWORKS:
        yield from of_part(name)


def in_a_line(answers: Sequence[Answer], size: str) -> str:
    """Return what answers of one part say, a sentence for each setting."""
    said = []
    for setting in dict.fromkeys(each.setting for each in answers):
        own = [each for each in answers if each.setting == setting]
        arms = "; ".join(f"{one.arm} {one.size} ({one.direction})" for one in own)
        new = ", ".join(chance_text(one.chances[0]) for one in own)
        said.append(f"{upper_first(setting)}: {arms}. A new table gains {size} with probability {new}.")
    return " ".join(said) or f"{upper_first(NOT_RUN)}."


def first_lines(found: Sequence[Setting], rules: Protocol2) -> str:
    """Return the first lines of when.md: a question and its answer in each."""
    last, size = found[-1], f"{rules.equal:g} %"
    own = [each for each in tuned(found, rules, (METHOD,)) if each.setting.startswith(last.title)]
    more, there, of = with_more_splits(last, rules)
    later = Answer("tuned", "", "", more) if more else None
    splits = (
        f"With the later splits: {later.size} ({later.direction}), "
        f"a gain of {size} with probability {chance_text(later.chances[0])}."
        if later else f"More splits: {NOT_RUN} ({there} of {of} cells are published)."
    )  # fmt: skip
    mixing = [each for each in of_part(LIKELIHOOD) if each.arm != ARMS["input_noise"]]
    lines = [f"- **Does C-Mixup help, tuned?** {in_a_line(own, size)} {splits}"]
    for name, title in NETWORKS.items():
        said = lower_first(title) if title.startswith("A ") else title
        lines.append(f"- **On {said}?** {in_a_line([*of_part(name)], size)}")
    lines.append(f"- **Does mixing improve likelihood beyond rescaling?** {in_a_line(mixing, '0.01 nats')}")
    return "\n".join(lines)
