"""What all parts of the study say of mixing: the first table of when.md, and the answers of the referee's page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from scripts.effects.verdicts import HIGHER, LOWER, UNTOLD, Effect, chance_text
from scripts.protocol.protocols import Protocol2, rules_named
from scripts.records.tables import interval_text, markdown_rows
from scripts.study.evidence import METHOD, Setting, later_cells, with_later_splits
from scripts.study.likelihood import DIGITS
from scripts.study.parts import (
    ARMS,
    LIKELIHOOD,
    NATS,
    NETWORKS,
    lower_first,
    part_settings,
    unit_of,
    upper_first,
)

NOT_RUN = "Not run yet"


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


def with_more_splits(rules: Protocol2) -> tuple[Effect | None, int, int]:
    """Return C-Mixup's effect over the splits of protocol 2 and the later ones, and how many cells of these there are.

    There is none before ERM and C-Mixup have all tables with the later splits.
    """
    there, wanted = later_cells()
    own = with_later_splits().effect(METHOD, rules) if len(there) == wanted else None
    return own, len(there), wanted


def of_part(name: str) -> Iterator[Answer]:
    """Yield what methods change in each whole setting of a part, by the name of its rules."""
    rules = rules_named(name)
    for each in part_settings(name):
        yield from (Answer(name, each.where, arm, own, unit_of(rules)) for arm, own in each.by_title.items())


def on_networks() -> Iterator[Answer]:
    """Yield what methods change on other networks, in each of their whole settings."""
    for name in NETWORKS:
        yield from of_part(name)


def in_short(answers: Sequence[Answer], size: str) -> str:
    """Return the one answer of a part, or how many have each direction, and the largest probability of a gain."""
    if not answers:
        return NOT_RUN
    if len(answers) == 1:
        (one,) = answers
        new = f"A new table gains {size} with probability {chance_text(one.chances[0])}."
        return f"Mean effect {one.size} ({one.direction}). {new}"
    lower, higher, untold = (sum(one.own.direction() == way for one in answers) for way in (LOWER, HIGHER, UNTOLD))
    most = chance_text(max(one.chances[0] for one in answers))
    return (
        f"Mean effect in {len(answers)} comparisons: lower in {lower}, higher in {higher}, {untold} cannot be told. "
        f"A new table gains {size} with probability {most} at most."
    )


def first_lines(found: Sequence[Setting], rules: Protocol2) -> str:
    """Return the first lines of when.md: a table of questions on C-Mixup, with an answer in a row each."""
    last = found[-1]
    own = [each for each in tuned(found, rules, (METHOD,)) if each.setting.startswith(last.title)]
    more, there, of = with_more_splits(rules)
    if more:
        own.append(Answer("tuned", f"{with_later_splits().splits} splits", "C-Mixup", more))
    parts = {
        "Does C-Mixup help, tuned?": own,
        **{f"On {lower_first(title) if title.startswith('A ') else title}?": [*of_part(name)]
           for name, title in NETWORKS.items()},
        "Does it improve likelihood beyond rescaling?": [*of_part(LIKELIHOOD)],
    }  # fmt: skip
    body = []
    for question, each in parts.items():
        mine = [one for one in each if one.arm.startswith("C-Mixup")]
        settings = [upper_first("; ".join(dict.fromkeys(one.setting for one in mine)) or NOT_RUN)]
        if each is own and not more:
            settings.append(f"more splits: {lower_first(NOT_RUN)} ({there} of {of} cells)")
        names = [one.arm.removeprefix("C-Mixup").removeprefix(", ") for one in mine]
        sizes = [f"{name}{': ' if name else ''}{one.size} ({one.own.direction()})"
                 for name, one in zip(names, mine, strict=True)]  # fmt: skip
        chances = (", ".join(chance_text(one.chances[k]) for one in mine) for k in (0, 1))
        body.append([f"**{question}**", "; ".join(settings), "; ".join(sizes) or "—", *(c or "—" for c in chances)])
    size = f"a new table gains {rules.equal:g} % ({rules.equal / 100:g} {NATS})"
    heads = ["question", "setting", "mean effect", size, "loses it"]
    return "\n".join(markdown_rows(heads, body, left=3))
