"""The page of the study without a search: every method trains with the rate and decay that ERM's tuning chose.

Rules: configs/study/no_search.yaml, committed before the first run. Methods are paired by split and initial weights.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from textwrap import fill
from typing import Any

import numpy as np

from scripts.claims.prose import WIDTH
from scripts.effects.verdicts import (
    VERDICTS,
    Effect,
    Errors,
    chance_text,
    direction_text,
    method_effect,
    sign_text,
    verdict_name,
)
from scripts.protocol.protocols import Protocol2, load_protocol2, rules_named
from scripts.protocol.published import read_store
from scripts.protocol.rules import BASE
from scripts.records.experiment import RESULTS
from scripts.records.published import published_reports
from scripts.records.register import writes
from scripts.records.tables import interval_text, markdown_rows

EXPERIMENT, PAGE = "study_no_search", "study/no_search.md"
SETTINGS = {
    "rows100": "100 training rows",
    "rows100_noise": "100 training rows, noisy labels",
    "random": "all rows, split at random",
}
TITLES = {
    "cmixup_alpha02": "C-Mixup, alpha 0.2",
    "cmixup_alpha2": "C-Mixup, alpha 2",
    "mixup_alpha02": "mixup, alpha 0.2",
    "input_noise": "Gaussian noise on inputs",
}
EQUAL = 1.0  # percent of ERM's error that counts as no difference
#: The two questions of the rules: the setting, the method of protocol 2 and its title, and the arms that answer.
QUESTIONS = (
    ("rows100", "cmixup", "C-Mixup", ("cmixup_alpha02", "cmixup_alpha2")),
    ("rows100_noise", "mixup", "mixup", ("mixup_alpha02",)),
)
COUNTS = {5: "five"}  # in words


def errors_of_reports(reports: Iterable[Mapping[str, Any]], setting: str) -> Errors:
    """Return the test errors of one setting by table, method and split, each the mean over initial weights.

    Args:
        reports: of published runs, see `scripts.records.published.published_reports`.
        setting: a key of `SETTINGS`.
    """
    found: dict[str, dict[str, dict[int, list[float]]]] = {}
    for report in reports:
        if report["options"]["condition"] == setting:
            of_table = found.setdefault(report["dataset"], {}).setdefault(report["method"], {})
            of_table.setdefault(report["split"], []).append(report["scores"]["test"]["nrmse"])
    return {
        table: {name: {split: float(np.mean(errors)) for split, errors in own.items()} for name, own in methods.items()}
        for table, methods in found.items()
    }


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
            f"with {TITLES[arm].partition(', ')[2]} its mean error changes by {interval_text(own.overall, 1)} %, "
            f"{direction_text(own)}, and it is lower on {sign_text(own.means)}"
            for arm in arms if (own := found.get(setting, {}).get(arm))
        ]  # fmt: skip
        came = "; ".join(told) or "not run yet"
        said = (
            f"- **{SETTINGS[setting][0].upper()}{SETTINGS[setting][1:]}**: at the same rate and decay, {title} had the "
            f"lower validation error at {100 * share:.0f} % of the points of protocol 2 ({tables} of {of} tables). "
            f"On test rows: {came}."
        )
        lines.append(fill(said, WIDTH, subsequent_indent="  ", break_on_hyphens=False))
    return lines


@writes("results/runs/study_no_search", "results/runs/study")
def write_page() -> dict[str, str]:
    """Return the page by its path below results/."""
    rules, records = rules_named("no_search"), read_store(load_protocol2())
    reports = published_reports(RESULTS, (EXPERIMENT,))
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
    head += [f"tables: {verdict_name(kind, EQUAL)}" for kind in VERDICTS] + ["a new table gains / loses 1 %"]
    every = {setting: errors_of_reports(reports, setting) for setting in SETTINGS}
    effects = {}
    for setting, errors in every.items():
        found = {name: own for name in TITLES if (own := method_effect(errors, name, rules.level, EQUAL))}
        if len(errors) == len(rules.tables) and len(found) == len(TITLES):
            effects[setting] = found
    lines += ["What the two leads on validation became:", "", *answer(records, effects, rules), ""]
    for setting, title in SETTINGS.items():
        errors, found = every[setting], effects.get(setting, {})
        lines += [f"## {title[0].upper()}{title[1:]}", ""]
        rows = [describe_effect(TITLES[name], own) for name, own in found.items()]
        if not rows:
            lines += ["Not run yet.", ""]
            continue
        splits = {len(own) for methods in errors.values() for own in methods.values()}
        lines += markdown_rows(head, rows)
        lines += [
            "",
            f"{len(errors)} tables, {max(splits)} splits, {COUNTS.get(rules.weights, rules.weights)} sets of initial",
            "weights a split. Test error minus ERM's in percent of ERM's, paired by split and weights, with 95 %",
            "intervals; below 0 is better.",
            "[When does mixing help?](when.md) has the model and the rule of each verdict.",
            "Noise on inputs is the control that mixes nothing.",
            "",
        ]
    train, write = "python -m scripts.study train rules=no_search", "python -m scripts.render"
    lines += [f"`{train}` trains these cells; `{write}` writes this page.", ""]
    return {PAGE: "\n".join(lines)}
