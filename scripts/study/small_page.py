"""The few-rows conditions with as little validation as training rows allow, beside the published ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from scripts.records.stats import clustered
from scripts.records.tables import markdown_rows
from scripts.report.sweep import interval_text
from scripts.study.effects import BASE, Effect, Scores, effects, over_tables, scores_of, sign_test
from scripts.study.names import DECIMALS, title, validated
from scripts.study.rules import COMMITS, Condition, Rules

Record = Mapping[str, Any]
BELOW = "below 0 (sign test)"


def like(condition: Condition, rules: Rules) -> Condition | None:
    """Return the condition of other rules with the same training rows and noise, or None."""
    same = (condition.train_rows, condition.label_noise)
    return next((c for c in rules.conditions if (c.train_rows, c.label_noise) == same), None)


def render(records: Sequence[Record], rules: Rules, small: Sequence[Record], other: Rules) -> list[str]:
    """Return the section: every method under a small condition and under the published one like it.

    Args:
        records, rules: of the study.
        small, other: records and rules of the conditions with small validation.
    """
    body, errors = [], list[str]()
    for condition in other.conditions:
        base, scores = like(condition, rules), scores_of(small, condition.name)
        if base is None or not scores:
            continue
        before = scores_of(records, base.name)
        errors.append(f"{erm_change(before, scores)} with {labels(condition)} labels")
        for method in condition.methods:
            for where, each in ((base, effects(before, method)), (condition, effects(scores, method))):
                if method != BASE and each:
                    body.append([title(method), labels(where), validated(where), *counts(each, rules.level)])
    if not body:
        return []
    commits = sorted({record["commit"][:7] for record in small if record.get("commit")})
    about = (
        f"By [rules of their own](../../configs/study/{other.name}.yaml), fixed before the first run (commit "
        f"{COMMITS[other.name]}, SHA-256 {other.checksum[:12]}; runs of commit {', '.join(commits)}); {len(small)} of "
        f"{len(other.cells())} cells are here. ERM's own error changes by {' and '.join(errors)}, mean over tables."
    )
    head = ["method", "training labels", "validation", "tables", "wins", "losses", BELOW, "mean effect"]
    return [about, "", *markdown_rows(head, body)]


def labels(condition: Condition) -> str:
    """Return how noisy the training labels of a condition are."""
    return "noisy" if condition.label_noise else "clean"


def counts(each: Mapping[str, Effect], level: float) -> list[str]:
    """Return tables, wins, losses, how many effects are below 0, and the mean effect, as a row of a page."""
    verdicts = [effect.verdict(level) for effect in each.values()]
    wins, losses = (str(verdicts.count(kind)) for kind in ("win", "loss"))
    return [str(len(each)), wins, losses, below_zero(each), interval_text(over_tables(each), DECIMALS)]


def below_zero(each: Mapping[str, Effect]) -> str:
    """Return how many effects are below 0, with the p value of the sign test over tables."""
    below, _, p = sign_test([effect.interval.mean for effect in each.values()])
    return f"{below} (p {p:.2g})"


def erm_change(before: Scores, after: Scores) -> str:
    """Return by how many percent ERM's error is higher, mean over tables and its interval."""
    tables = [table for table in after if BASE in after[table] and BASE in before.get(table, {})]
    means = [[float(np.mean(list(scores[table][BASE].values()))) for table in tables] for scores in (before, after)]
    return interval_text(clustered([100 * (b / a - 1) for a, b in zip(*means, strict=True)], tables), 1) + " %"
