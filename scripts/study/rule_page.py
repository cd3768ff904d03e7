"""The numbers and tables of results/study/rule.md: can a table's training rows foretell whether C-Mixup helps?"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from scripts.records.tables import interval_text, markdown_rows
from scripts.study.effects import ranked
from scripts.study.rule import ALWAYS_ERM, BY_OTHERS, Case, Judgement, Rule
from scripts.study.traits import TRAITS

DECIMALS = 2


def parts(cases: Sequence[Case], rule: Rule, judged: Judgement) -> dict[str, str]:
    """Return what is filled into the page, by its place."""
    effect = [case.effect for case in cases]
    places, body = ranked(effect), []
    for k, (name, what) in enumerate(TRAITS.items()):
        values = [case.traits[k] for case in cases]
        rho = np.corrcoef(ranked(values), places)[0, 1] if len({*values}) > 1 < len({*effect}) else 0.0
        body.append([name, what, f"{min(values):.2f} to {max(values):.2f}", f"{rho:+.2f}"])
    policies = [[name, interval_text(found, DECIMALS)] for name, found in judged.policies.items()]
    kept = "Following the rule lowers the error on tables that it has not seen."
    weights = ", ".join(f"{n} {w:+.2f}" for n, w in zip(TRAITS, rule.weights, strict=True) if w)
    return {
        "cases": str(rule.cases), "tables": str(rule.tables), "below": str(sum(value < 0 for value in effect)),
        "median": f"{np.median(effect):+.{DECIMALS}f}",
        "traits": "\n".join(markdown_rows(["trait", "what it is", "range", "rank correlation with the effect"], body)),
        "chosen": ", ".join(f"{name} ({n})" for name, n in judged.chosen.items()),
        "policies": "\n".join(markdown_rows(["what is done", "test error against always ERM, %"], policies)),
        "squared": interval_text(judged.squared, DECIMALS), "spread": f"{judged.spread:.{DECIMALS}f}",
        "signs": f"{100 * judged.signs:.0f}",
        "kept": kept if rule.helps else f'No rule tried here beats "{ALWAYS_ERM}".',
        "by_others": interval_text(judged.policies[BY_OTHERS], DECIMALS), "by_own": f"{judged.by_own:+.{DECIMALS}f}",
        "by_chance": f"{judged.by_chance:+.{DECIMALS}f}", "name": rule.name, "intercept": f"{rule.intercept:+.2f}",
        "weights": weights or "none",
    }  # fmt: skip
