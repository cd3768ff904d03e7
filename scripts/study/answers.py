"""What all parts of the study say of mixing, in a line each: the first lines of when.md, and the referee's page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from scripts.effects.verdicts import UNTOLD, Effect, chance_text, errors_of, method_effect
from scripts.protocol.protocols import Protocol2, rules_named
from scripts.protocol.published import read_store
from scripts.protocol.rules import BASE
from scripts.records.experiment import RESULTS
from scripts.records.published import published_reports
from scripts.records.tables import interval_text
from scripts.study import likelihood, networks, no_search
from scripts.study.evidence import Setting, whole_records
from scripts.study.front import METHOD

SPLITS = "more_splits"
NOT_RUN = "not run yet"


class Answer(NamedTuple):
    """What one arm changes in one setting of one part of the study.

    Attributes:
        part: of the study: "tuned", "untuned", "likelihood" or the name of a network's rules.
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
        return f"{interval_text(self.own.overall, 1 if self.unit == '%' else likelihood.DIGITS)} {self.unit}"

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
                yield Answer("tuned", where, likelihood.TITLES.get(method, method), own)


def with_more_splits(found: Setting, rules: Protocol2) -> tuple[Effect | None, int, int]:
    """Return C-Mixup's effect over the splits of protocol 2 and the later ones, and how many cells of these there are.

    There is none before ERM and C-Mixup have all tables with the later splits.
    """
    more = rules_named(SPLITS)
    wanted = {cell.key for cell in more.cells(methods=[BASE, METHOD])}
    records = [r for r in read_store(more) if r["method"] in (BASE, METHOD)]
    if len(records) < len(wanted):
        return None, len(records), len(wanted)
    errors = {table: {m: dict(each) for m, each in own.items()} for table, own in found.errors().items()}
    for table, own in errors_of(records, found.condition.name).items():
        for method, by_split in own.items():
            errors[table][method] |= by_split
    return method_effect(errors, METHOD, rules.level, rules.equal), len(records), len(wanted)


def untuned() -> Iterator[Answer]:
    """Yield what methods change at ERM's rate and decay, in each whole setting of the study without a search."""
    rules = rules_named("no_search")
    reports = published_reports(RESULTS, (no_search.EXPERIMENT,))
    for name, title in no_search.SETTINGS.items():
        errors = no_search.errors_of_reports(reports, name)
        each = {arm: method_effect(errors, arm, rules.level, no_search.EQUAL) for arm in no_search.TITLES}
        if len(errors) == len(rules.tables) and all(each.values()):
            where = f"{title}, {len(errors)} tables, {rules.splits} splits"
            yield from (Answer("untuned", where, no_search.TITLES[arm], own) for arm, own in each.items() if own)


def on_networks() -> Iterator[Answer]:
    """Yield what methods change on other networks, in each of their whole settings."""
    for name in networks.NETWORKS:
        splits = rules_named(name).splits
        for setting, tables, each in networks.effects(name):
            where = f"{setting}, {tables}, {splits} splits"
            yield from (Answer(name, where, networks.TITLES[arm], own) for arm, own in each.items())


def of_likelihood() -> Iterator[Answer]:
    """Yield what methods change of the rescaled likelihood, in each setting that is whole."""
    rules = rules_named("likelihood")
    records = read_store(rules)
    for condition, title in likelihood.SETTINGS.items():
        own, tables = whole_records(records, rules, condition)
        for name, arm in likelihood.TITLES.items() if own else ():
            found = likelihood.effect_of(own, condition, name, rules)
            yield Answer("likelihood", f"{title}, {tables}, {rules.splits} splits", arm, found, likelihood.UNIT)


def in_a_line(answers: Sequence[Answer], size: str) -> str:
    """Return what answers of one part say, a sentence for each setting."""
    said = []
    for setting in dict.fromkeys(each.setting for each in answers):
        own = [each for each in answers if each.setting == setting]
        arms = "; ".join(f"{one.arm} {one.size} ({one.direction})" for one in own)
        new = ", ".join(chance_text(one.chances[0]) for one in own)
        said.append(f"{setting[0].upper()}{setting[1:]}: {arms}. A new table gains {size} with probability {new}.")
    return " ".join(said) or f"{NOT_RUN[0].upper()}{NOT_RUN[1:]}."


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
    other, nats = list(on_networks()), list(of_likelihood())
    mixing = [each for each in nats if each.arm != likelihood.TITLES["input_noise"]]
    lines = [f"- **Does C-Mixup help, tuned?** {in_a_line(own, size)} {splits}"]
    for name, title in networks.NETWORKS.items():
        lines.append(f"- **On {title[0].lower() + title[1:] if title[0] == 'A' else title}?** "
                     f"{in_a_line([each for each in other if each.part == name], size)}")  # fmt: skip
    lines.append(f"- **Does mixing improve likelihood beyond rescaling?** {in_a_line(mixing, '0.01 nats')}")
    return "\n".join(lines)
