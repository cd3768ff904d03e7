"""The page of the rule: can a table's training rows foretell whether C-Mixup helps?"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from scripts.records.tables import markdown_rows
from scripts.report.sweep import interval_text
from scripts.study.effects import ranked
from scripts.study.rule import ALWAYS_ERM, BY_OTHERS, Case, Judgement, Rule
from scripts.study.traits import TRAITS

DECIMALS = 2


def render(cases: Sequence[Case], rule: Rule, judged: Judgement) -> str:
    """Return the page as Markdown."""
    effect = [case.effect for case in cases]
    below = sum(value < 0 for value in effect)
    about = (
        f"{rule.cases} cases (a table under a condition of [the study](when.md)) of {rule.tables} tables. The effect "
        "is C-Mixup's test error minus ERM's in percent of ERM's, both tuned alike and meaned over seeds: below 0 in "
        f"{below} cases, median {np.median(effect):+.{DECIMALS}f} %. The traits are measured on training rows alone."
    )
    parts = ["# Can it be foretold?", "", about, "", *_traits(cases), "", "## On tables that it has not seen", ""]
    counts = ", ".join(f"{name} ({n})" for name, n in judged.chosen.items())
    how = (
        "Every table is left out once with all of its conditions; on the others a candidate is chosen by leaving out "
        f"one table after another again, and fitted. Chosen: {counts}. Intervals are 95 % t intervals over tables."
    )
    body = [[name, interval_text(found, DECIMALS)] for name, found in judged.policies.items()]
    parts += [how, "", *markdown_rows(["what is done", "test error against always ERM, %"], body), ""]
    return "\n".join([*parts, *_verdict(rule, judged)]) + "\n"


def _traits(cases: Sequence[Case]) -> list[str]:
    effect = ranked([case.effect for case in cases])
    body = []
    for k, (name, what) in enumerate(TRAITS.items()):
        values = [case.traits[k] for case in cases]
        rho = _correlation(ranked(values), effect)
        body.append([name, what, f"{min(values):.2f} to {max(values):.2f}", f"{rho:+.2f}"])
    return markdown_rows(["trait", "what it is", "range", "rank correlation with the effect"], body)


def _verdict(rule: Rule, judged: Judgement) -> list[str]:
    squared = interval_text(judged.squared, DECIMALS)
    lines = [
        f"Its squared error minus that of foretelling 0 is {squared} (below 0: it foretells something); root mean "
        f"squared error {judged.spread:.{DECIMALS}f} %"
        + ("" if math.isnan(judged.signs) else f", sign right in {100 * judged.signs:.0f} % of the cases")
        + "."
    ]
    if rule.helps:
        lines.append("Following the rule lowers the error on tables that it has not seen.")
    else:
        lines.append(f'No rule tried here beats "{ALWAYS_ERM}".')
    lines.append(
        "Is there a sign to foretell? Where the other seeds of the same table choose it, it changes the error by "
        f"{interval_text(judged.policies[BY_OTHERS], DECIMALS)} %. Judged on the seeds that chose it that would be "
        f"{judged.by_own:+.{DECIMALS}f} %, and chance alone gives {judged.by_chance:+.{DECIMALS}f} % where C-Mixup "
        "changes nothing."
    )
    weights = ", ".join(f"{n} {w:+.2f}" for n, w in zip(TRAITS, rule.weights, strict=True) if w)
    fitted = f'On all cases the choice is "{rule.name}": {rule.intercept:+.2f} %'
    lines.append(
        f"{fitted}{f', and by standardised trait {weights}' if weights else ''}. `python -m scripts.advise` uses it."
    )
    return [line for text in lines for line in (text, "")][:-1]


def _correlation(first: Sequence[float], second: Sequence[float]) -> float:
    if len(set(first)) < 2 or len(set(second)) < 2:
        return 0.0
    return float(np.corrcoef(first, second)[0, 1])
