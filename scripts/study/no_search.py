"""The pages of the study without a search: every method trains with the rate and decay that ERM's tuning chose.

Rules: configs/study/no_search.yaml for the study's network and network_*.yaml for others, each committed before its
first run. Methods are paired by split and initial weights.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Any

import numpy as np

from scripts.effects.verdicts import VERDICTS, Effect, chance_text, direction_text, sign_text, verdict_name
from scripts.protocol.protocols import Protocol2, load_protocol2, rules_named
from scripts.protocol.published import read_store
from scripts.protocol.rules import BASE
from scripts.records.register import writes
from scripts.records.tables import interval_text, markdown_rows
from scripts.report.places import WIDTH
from scripts.study.effect_tables import row_head, table_row
from scripts.study.evidence import TITLES
from scripts.study.parts import ARMS, NETWORKS, NO_SEARCH, lower_first, part_settings

PAGE, OF_NETWORKS = "study/no_search.md", "study/networks.md"
#: The two questions of the rules: the setting, the method of protocol 2 and its title, and the arms that answer.
QUESTIONS = (
    ("rows100", "cmixup", "C-Mixup", ("cmixup_alpha02", "cmixup_alpha2")),
    ("rows100_noise", "mixup", "mixup", ("mixup_alpha02",)),
)
COUNTS = {5: "five"}  # in words
ABOUT = {
    "network_wide": "The study's network with two layers of {model.width} units, not 128.",
    "network_realmlp": "RealMLP (Holzmüller and others 2024): {model.depth} layers of {model.width} units; without "
    "its schedule of rates, label clamp and robust scaling.",
    "network_tabm": "TabM (Gorishniy and others 2025): {model.k} members of {model.depth} layers of {model.width}; "
    "the paper has 32 members of 512.",
}  # fmt: skip


def describe_effect(name: str, found: Effect) -> list[str]:
    """Return the row of a method in the page's table."""
    counts, new = found.counts(), found.posterior.new.chances
    model, plain = interval_text(found.overall, 1), interval_text(found.plain, 1)
    chances = f"{chance_text(new.gain)} / {chance_text(new.loss)}"
    return [name, model, plain, direction_text(found), *(str(counts[kind]) for kind in VERDICTS), chances]


def lead(
    records: Sequence[Mapping[str, Any]], setting: str, method: str, shared: int, each: int
) -> tuple[float, int, int]:
    """Return how often a method's own trials of protocol 2 were better than ERM's of the same rate and decay.

    Args:
        records: of protocol 2.
        setting, method: which.
        shared, each: how many of the trials of a split are ERM's first ones, of how many.

    Returns:
        The share of points with the lower validation error, and on how many tables that is more than half, of how many.
    """
    own = {(r["table"], r["method"]): r["trials"] for r in records if r["condition"] == setting}
    shares = []
    for table in {table for table, _ in own}:
        pairs = zip(own[table, method], own[table, BASE], strict=True)
        below = [one["val"] < erm["val"] for k, (one, erm) in enumerate(pairs) if k % each >= shared]
        shares.append(float(np.mean(below)))
    return float(np.mean(shares)), sum(share > 0.5 for share in shares), len(shares)


def answer(
    records: Sequence[Mapping[str, Any]], found: Mapping[str, Mapping[str, Effect]], rules: Protocol2
) -> list[str]:
    """Return a sentence for each question: what protocol 2 saw on validation, and what came on test rows."""
    lines = []
    for setting, method, title, arms in QUESTIONS:
        share, tables, of = lead(records, setting, method, rules.shared, rules.trials_each)
        told = [
            f"With {ARMS[arm].partition(', ')[2]} {direction_text(own)}: {interval_text(own.overall, 1)} %, a lower "
            f"mean on {sign_text(own.means)}."
            for arm in arms if (own := found.get(setting, {}).get(arm))
        ]  # fmt: skip
        came = " ".join(told) or "not run yet."
        said = (
            f"- **{TITLES[setting]}**: at the same rate and decay, {title} had the lower validation error at "
            f"{100 * share:.0f} % of the points of protocol 2 ({tables} of {of} tables). On test rows: {came}"
        )
        lines.append(fill(said, WIDTH, subsequent_indent="  ", break_on_hyphens=False))
    return lines


@writes
def write_page() -> dict[str, str]:
    """Return the page of the study's network by its path below results/."""
    rules, records = rules_named(NO_SEARCH), read_store(load_protocol2())
    whole = {each.name: each for each in part_settings(NO_SEARCH)}
    lines = [
        "# The study without a search",
        "",
        "Does mixing lower the error where nothing is tuned for it? Every method trains with the learning rate and",
        "weight decay that ERM's tuning chose on the split, and with options that were fixed before the first run",
        "([rules](../../configs/study/no_search.yaml)). The rules ask two questions: is C-Mixup better than ERM with",
        "100 training rows, and is mixup better with 100 training rows and noisy labels?",
        "",
    ]
    head = ["", "change by a model of all tables, %", "all tables alike, %", "direction of the mean"]
    head += [f"tables: {verdict_name(kind, rules.equal)}" for kind in VERDICTS] + ["a new table gains / loses 1 %"]
    effects = {name: each.effects for name, each in whole.items()}
    lines += ["The two leads on validation, and the same pairs on test rows:", "", *answer(records, effects, rules), ""]
    for condition in rules.conditions:
        lines += [f"## {TITLES[condition.name]}", ""]
        if not (found := whole.get(condition.name)):
            lines += ["Not run yet.", ""]
            continue
        lines += markdown_rows(head, [describe_effect(ARMS[arm], own) for arm, own in found.effects.items()])
        lines += [
            "",
            f"{found.tables}, {found.splits} splits, {COUNTS.get(rules.weights, rules.weights)} sets of initial",
            "weights a split. Test error minus ERM's in percent of ERM's, paired by split and weights, with 95 %",
            "intervals; below 0 is better.",
            "[When does mixing help?](when.md) has the model and the rule of each verdict.",
            "Noise on inputs is the control that mixes nothing.",
            "",
        ]
    train, write = "python -m scripts.study train rules=no_search", "python -m scripts.render"
    lines += [f"`{train}` trains these cells; `{write}` writes this page.", ""]
    return {PAGE: "\n".join(lines)}


@writes
def write_networks() -> dict[str, str]:
    """Return the page of other networks, on which ERM alone is tuned, by its path below results/."""
    lines = [
        "# Other networks",
        "",
        "Does mixing help a wider network, or one of today? ERM alone is tuned on each split. Every method trains with",
        "the rate and decay that this chose, and with options that were fixed before the first run. Effects are",
        "against ERM on the same network.",
        "",
    ]
    for name, title in NETWORKS.items():
        rules = rules_named(name)
        about = ABOUT[name]
        for key, value in rules.network.items():
            about = about.replace(f"{{{key}}}", str(value))
        lines += [f"## {title}", "", f"{about} [Rules](../../configs/study/{name}.yaml).", ""]
        missing = {condition.name: lower_first(TITLES[condition.name]) for condition in rules.conditions}
        for each in part_settings(name):
            body = [[ARMS[arm], *table_row(own), sign_text(own.means)] for arm, own in each.effects.items()]
            lines += [f"### {TITLES[each.name]} ({each.tables})", ""]
            lines += [*markdown_rows(["method", *row_head(rules), "below 0 (sign test)"], body), ""]
            del missing[each.name]
        if missing:
            lines += [f"Not run yet: {'; '.join(missing.values())}.", ""]
    lines += [
        "[When does mixing help?](when.md) has the model of effects and the rule of each verdict.",
        "",
        "`python -m scripts.study train rules=network_realmlp` trains these cells; `python -m scripts.render` writes",
        "this page. `python -m scripts.study method=mine.py model=realmlp` [ranks your method](../../docs/bench.md)",
        "there.",
        "",
    ]
    return {OF_NETWORKS: "\n".join(lines)}
