"""What docs/report.md says beyond the paper: a table for each part of the study, and what others found.

The report is read without the other pages, so the tables are complete: every setting and method that is published.
"""

from __future__ import annotations

from collections.abc import Sequence
from textwrap import fill

from scripts.claims.prose import WIDTH
from scripts.effects.verdicts import HIGHER, LOWER, UNTOLD, chance_text
from scripts.protocol.protocols import load_protocol2, rules_named
from scripts.records.register import fills
from scripts.records.tables import interval_text, markdown_rows
from scripts.study import answers, likelihood
from scripts.study.answers import Answer
from scripts.study.elsewhere import Comparison, count_states, counts_text, read_comparisons, tuned_text
from scripts.study.evidence import ENSEMBLE, study_settings
from scripts.study.evidence import READS as STUDY
from scripts.study.page import mixing_methods
from scripts.study.parts import (
    LIKELIHOOD,
    NATS,
    NETWORKS,
    NO_SEARCH,
    arm_effect,
    lower_first,
    part_settings,
    upper_first,
)

PAGE = "docs/report.md"
READS = (*STUDY, "results/runs", "results/predictions/study_likelihood", "results/study/elsewhere.yaml")


@fills(*READS)
def beyond_parts() -> dict[str, dict[str, str]]:
    """Return the report's tables: `settings`, `untuned`, `networks`, `likelihood` and `others`."""
    rules, found = load_protocol2(), study_settings()
    return {
        PAGE: {
            "settings": effect_table([*answers.tuned(found, rules, (*mixing_methods(rules), ENSEMBLE))]),
            "untuned": effect_table([*answers.of_part(NO_SEARCH)]),
            "networks": effect_table([*answers.on_networks()]),
            "likelihood": effect_table([*answers.of_part(LIKELIHOOD), *likelihood_controls()], "0.01 nats"),
            "others": others_text(read_comparisons()),
        }
    }


def likelihood_controls() -> list[Answer]:
    """Return what averaging five networks changes of the likelihood: the control that must be seen."""
    rules, found = rules_named(LIKELIHOOD), []
    for each in part_settings(LIKELIHOOD):
        known = [*each.records, *likelihood.ensembles(each.records, rules)]
        effect = arm_effect(known, each.name, likelihood.ENSEMBLE, rules)
        found.append(Answer(LIKELIHOOD, each.where, likelihood.ENSEMBLE, effect, NATS))
    return found


def effect_table(found: Sequence[Answer], size: str = "1 %") -> str:
    """Return a Markdown table of effects: a row a method, settings in the order in which they first occur.

    Args:
        found: the effects, all in one unit.
        size: what a new table gains or loses.
    """
    if not found:
        return "No cell of this part is published yet."
    unit = found[0].unit
    digits = 1 if unit == "%" else likelihood.DIGITS
    head = ["setting", "method", f"mean effect, {unit}", f"each table alike, {unit}", "direction"]
    head.append(f"a new table gains {size}, loses it")
    lines = [f"| {' | '.join(head)} |", "| --- | --- | ---: | ---: | --- | ---: |"]
    for setting in dict.fromkeys((one.part, one.setting) for one in found):
        own = [one for one in found if (one.part, one.setting) == setting]
        for k, one in enumerate(own):
            place = place_text(one) if k == 0 else ""
            means = [interval_text(each, digits) for each in (one.own.overall, one.own.plain)]
            new = ", ".join(map(chance_text, one.chances))
            lines.append(f"| {place} | {one.arm} | {' | '.join(means)} | {one.own.direction()} | {new} |")
    return "\n".join(lines)


def place_text(one: Answer) -> str:
    """Return the network, where it is not the study's, and the setting."""
    network = NETWORKS.get(one.part)
    return upper_first(f"{network}; {lower_first(one.setting)}" if network else one.setting)


def others_text(every: Sequence[Comparison]) -> str:
    """Return what others found: how many comparisons have which state, in all and for each source."""
    said = f"{counts_text(every)} Where both sides were tuned, that is in one study: {tuned_text(every)}"
    groups: dict[str, list[Comparison]] = {}
    for own in every:
        source = own["source"]
        groups.setdefault(list(groups)[-1] if source.startswith("the same") else source, []).append(own)
    body = []
    for source, mine in groups.items():
        below, states = count_states(mine)
        body.append([source, mine[0]["task"], below, *map(str, states.values())])
    head = ["source", "task", "pairs with a lower error", LOWER, HIGHER, UNTOLD]
    return f"{fill(said, WIDTH, break_on_hyphens=False)}\n\n" + "\n".join(markdown_rows(head, body))
