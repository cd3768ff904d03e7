"""The page of the study: wins and losses, effects table by table, ranks, size and noise, resampling alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from scripts.records.tables import markdown_rows
from scripts.report.sweep import interval_text
from scripts.study import limits, small_page
from scripts.study.effects import (
    BASE,
    Effect,
    Scores,
    against_erm,
    critical_difference,
    effects,
    explained,
    friedman,
    mean_ranks,
    scores_of,
)
from scripts.study.names import CONTROL, DECIMALS, heading, title
from scripts.study.rules import COMMITS, TRAIN_SHARE, Rules
from scripts.study.small_page import BELOW, counts

Record = Mapping[str, Any]


def render(records: Sequence[Record], rules: Rules, small: Sequence[Record], other: Rules) -> str:
    """Return the page as Markdown; what has no record is said to be missing.

    Args:
        records, rules: of the study.
        small, other: of its few-rows conditions with small validation.
    """
    commits = sorted({record["commit"][:7] for record in records if record.get("commit")})
    budget, sha = len(rules.rates) * rules.points, rules.checksum[:12]
    about = (
        f"{len(rules.tables)} real tables ([which](README.md)), by the [rules](../../configs/study/rules.yaml) that "
        f"were fixed before the first run (commit {COMMITS[rules.name]}, SHA-256 {sha}; runs of commits "
        f"{', '.join(commits)}): the same splits, network and budget of {budget} trials for every method, ERM too; "
        f"{rules.seeds} seeds. {len(records)} of {len(rules.cells())} cells are here{cost(records)}."
    )
    legend = (
        "Effects are a method's test error minus ERM's in standard deviations of the label, below 0 where it helps: "
        "mean [95 % t interval]. In a row of a table they are paired over seeds; over tables the interval counts "
        f"tables. A win or a loss has a p value below {rules.level:g} after Holm's correction over tables; the sign "
        "test over tables is not corrected."
    )
    parts = ["# When does mixing help?", "", about, "", legend]
    if items := limits.items(records, rules, small, other):
        parts += ["", "## What limits this", "", *(f"- {item}" for item in items)]
    for condition in rules.conditions:
        scores = scores_of(records, condition.name)
        found = {m: effects(scores, m) for m in condition.methods if m != BASE}
        if any(found.values()):
            parts += ["", f"## {heading(condition)}", "", *summary(found, rules.level)]
            if condition.name == "all" and (lines := ranking(scores, condition.methods, rules.level)):
                parts += ["", *lines]
            if "cmixup" in found and CONTROL in found:
                parts += ["", *resampling(found["cmixup"], found[CONTROL])]
            if condition.name == "all":
                parts += ["", "### Table by table", "", *by_table(scores, found, rules.level)]
    if section := small_page.render(records, rules, small, other):
        parts += ["", "## As few rows for validation", "", *section]
    return "\n".join(parts) + "\n"


def cost(records: Sequence[Record]) -> str:
    """Return what the cells took: all of them, and those of the table on all rows that is nearest to 1,000 rows."""
    whole: dict[str, list[Record]] = {}
    for record in records:
        if record["condition"] == "all":
            whole.setdefault(record["table"], []).append(record)
    if not whole:
        return ""
    near = min(whole.values(), key=lambda of: abs(of[0]["train_rows"] - 1000 * TRAIN_SHARE))
    hours, minutes = sum(r["seconds"] for r in records) / 3600, sum(r["seconds"] for r in near) / 60
    return (
        f" and took {hours:.1f} hours of a core, the {len(near)} methods of {near[0]['table']} "
        f"({near[0]['train_rows']} training rows) {minutes:.1f} minutes"
    )


def headline(
    records: Sequence[Record], rules: Rules, small: Sequence[Record], other: Rules, method: str = "cmixup"
) -> str:
    """Return what README says: wins and losses of a method against ERM under every condition that has records."""
    body = []
    for condition in (*rules.conditions, *other.conditions):
        each = effects(scores_of([*records, *small], condition.name), method)
        if len(each) > 1:
            tables, wins, losses, _, mean = counts(each, rules.level)
            body.append([heading(condition), tables, wins, losses, mean])
    if not body:
        return ""
    about = (
        f"{title(method)}, against ERM on other real tables: {len(rules.rates) * rules.points} trials for either, "
        f"{rules.seeds} seeds; better and worse after Holm's correction; the difference is in standard deviations of "
        "the label, mean over tables [95 % t interval]."
    )
    table = markdown_rows(["", "tables", "better", "worse", "difference"], body)
    return "\n".join([about, "", *table, *others(records, rules, method), *_limits(records, rules, small, other)])


def _limits(records: Sequence[Record], rules: Rules, small: Sequence[Record], other: Rules) -> list[str]:
    scores = scores_of(records, "all")
    said = [
        limits.overlap(scores, rules),
        limits.power(scores, rules),
        limits.epochs(records, "cmixup"),
        limits.other_side(records, rules, small, other),
    ]
    return ["", *(f"- {line}" for line in said if line)] if any(said) else []


def others(records: Sequence[Record], rules: Rules, method: str) -> list[str]:
    """Return a sentence on how often the other methods that mix are better or worse than ERM on all rows."""
    scores = scores_of(records, "all")
    names_of = [name for name in rules.methods if name not in (BASE, method, CONTROL)]
    verdicts = [effect.verdict(rules.level) for name in names_of for effect in effects(scores, name).values()]
    if not verdicts:
        return []
    line = (
        f"The other methods that mix ({'; '.join(map(title, names_of))}), on all rows: better in "
        f"{verdicts.count('win')} of {len(verdicts)} pairs of a method and a table, worse in {verdicts.count('loss')}. "
        "Every table is on [the study's page](results/study/when.md)."
    )
    return ["", line]


def summary(found: Mapping[str, Mapping[str, Effect]], level: float) -> list[str]:
    """Return wins, losses, the sign test and the mean effect of every method."""
    body = []
    for method, each in found.items():
        if each:
            median = float(np.median([effect.interval.mean for effect in each.values()]))
            *row, mean = counts(each, level)
            body.append([title(method), *row, f"{median:+.{DECIMALS}f}", mean])
    return markdown_rows(["method", "tables", "wins", "losses", BELOW, "median effect", "mean effect"], body)


def ranking(scores: Scores, methods: Sequence[str], level: float) -> list[str]:
    """Return the mean ranks, Friedman's and Nemenyi's tests, and each method against ERM over tables."""
    ranks, n = mean_ranks(scores, methods)
    if n < 3:
        return []
    p = against_erm(scores, methods)
    ordered = sorted(ranks, key=ranks.__getitem__)
    text = ", ".join(f"{title(m)} {ranks[m]:.2f}" + (f" (p {p[m]:.2g})" if m in p else "") for m in ordered)
    line = (
        f"Mean ranks over {n} tables, with the p value against ERM (Wilcoxon's signed ranks, Holm's correction): "
        f"{text}. Friedman's test that all are alike: p {friedman(ranks, n):.2g}. By Nemenyi's test two methods differ "
        f"whose ranks are {critical_difference(len(ranks), n, level):.2f} apart (the critical difference)."
    )
    return [line, "", "![mean ranks and the critical difference](ranks.png)"]


def resampling(whole: Mapping[str, Effect], part: Mapping[str, Effect]) -> list[str]:
    """Return how much of C-Mixup's effect resampling alone has."""
    found = explained(whole, part)
    if found is None:
        return []
    slope, difference = found
    line = (
        f"Resampling alone (pairs drawn as C-Mixup does, not mixed) has {interval_text(slope, 2)} of C-Mixup's effect "
        f"(slope through the origin over {slope.n} tables; 1 is all of it), and its error is "
        f"{interval_text(difference, DECIMALS)} beside C-Mixup's."
    )
    return [line]


def by_table(scores: Scores, found: Mapping[str, Mapping[str, Effect]], level: float) -> list[str]:
    """Return ERM's error and every effect, table by table; wins and losses are bold."""
    body = []
    for table, methods in scores.items():
        if BASE in methods:
            row = [table, f"{np.mean(list(methods[BASE].values())):.{DECIMALS}f}"]
            for each in found.values():
                effect = each.get(table)
                text = "—" if effect is None else f"{effect.interval.mean:+.{DECIMALS}f}"
                row.append(f"**{text}**" if effect and effect.verdict(level) != "tie" else text)
            body.append(row)
    return markdown_rows(["table", "ERM", *map(title, found)], body)


def draw_ranks(scores: Scores, methods: Sequence[str], level: float) -> Figure | None:
    """Draw mean ranks and Nemenyi's critical difference about ERM's; None for fewer than three tables.

    Methods that differ from ERM over tables by Wilcoxon's test are filled.
    """
    ranks, n = mean_ranks(scores, methods)
    if n < 3:
        return None
    p, ordered = against_erm(scores, methods), sorted(ranks, key=ranks.__getitem__)
    figure = Figure(figsize=(7.2, 0.9 + 0.32 * len(ordered)))
    axis = figure.subplots()
    for place, method in enumerate(ordered):
        colour = "black" if method == BASE else "#1f77b4" if ranks[method] < ranks[BASE] else "#d62728"
        differs = method == BASE or p[method] < level
        axis.plot(ranks[method], place, "o", color=colour, markerfacecolor=colour if differs else "white")
        axis.annotate(title(method), (ranks[method], place), xytext=(8, 0), textcoords="offset points", va="center")
    reach = critical_difference(len(ranks), n, level)
    axis.axvspan(ranks[BASE] - reach, ranks[BASE] + reach, color="0.93", zorder=0)
    axis.axvline(ranks[BASE], color="black", linewidth=0.6, linestyle=":")
    axis.set_ylim(len(ordered) - 0.5, -0.5)
    axis.set_yticks([])
    low, high = ranks[BASE] - reach, ranks[BASE] + reach
    axis.set_xlim(max(min(*ranks.values(), low), 0.8) - 0.2, max(*(rank + 1.4 for rank in ranks.values()), high) + 0.2)
    axis.set_xlabel(
        f"mean rank over {n} tables, 1 is best; filled: differs from ERM (Wilcoxon, Holm);\n"
        "grey: within the critical difference of ERM (Nemenyi)"
    )
    for side in ("left", "top", "right"):
        axis.spines[side].set_visible(False)
    figure.tight_layout()
    return figure
