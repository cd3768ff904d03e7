"""What `scripts.render` makes of the published study: results/study/when.md, its picture, and what README says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from scripts.claims.prose import splice
from scripts.records.stats import clustered
from scripts.records.tables import interval_text, markdown_rows
from scripts.study import limits
from scripts.study.effects import (
    BASE,
    Effect,
    Scores,
    against_erm,
    critical_difference,
    effects,
    explained,
    friedman,
    mean_error,
    mean_ranks,
    over_tables,
    scores_of,
    sign_test,
)
from scripts.study.names import CONTROL, DECIMALS, heading, title
from scripts.study.protocols import COMMITS, SMALL, Protocol1, load_protocol1
from scripts.study.published import FOLDER, read
from scripts.study.rules import TRAIN_SHARE

Record = Mapping[str, Any]
SUMMARY = ("method", "tables", "wins", "losses", "below 0 (sign test)", "median effect", "mean effect")


def texts() -> dict[str, str]:
    """Return the text of the page by its path below results/; none if nothing is published."""
    given = published()
    return {"study/when.md": splice((FOLDER / "when.md").read_text(), parts(*given))} if given[0] else {}


def readme() -> str:
    """Return what README says of the published study; empty if nothing is published."""
    return headline(*published())


def figures() -> dict[str, Figure]:
    """Return the picture of mean ranks by its path below results/; none if too little is published."""
    records, rules, *_ = published()
    figure = draw_ranks(scores_of(records, "all"), list(rules.methods), rules.level)
    return {"study/ranks.png": figure} if figure else {}


def published() -> tuple[list[dict[str, Any]], Protocol1, list[dict[str, Any]], Protocol1]:
    """Return the published records of the study and its rules, then those with small validation."""
    rules, other = load_protocol1(), load_protocol1(SMALL)
    return read(rules), rules, read(other), other


def parts(records: Sequence[Record], rules: Protocol1, small: Sequence[Record], other: Protocol1) -> dict[str, str]:
    """Return what is filled into the page, by its place; what has no record is empty.

    Args:
        records, rules: of the study.
        small, other: of its few-rows conditions with small validation.
    """
    conditions = (*rules.conditions, *other.conditions)
    scores = {condition.name: scores_of([*records, *small], condition.name) for condition in conditions}
    found = {c: {m: each for m in c.methods if m != BASE and (each := effects(scores[c.name], m))} for c in conditions}
    whole = next(c for c in rules.conditions if c.name == "all")
    few = [[heading(c), *row] for c, each in found.items() if c != whole for row in summary(each, rules.level)]
    resampled = [
        [heading(c), str(slope.n), interval_text(slope, 2), interval_text(difference, DECIMALS)]
        for c, each in found.items()
        if (both := explained(each.get("cmixup", {}), each.get(CONTROL, {})))
        for slope, difference in [both]
    ]
    return {
        **_origin(records, rules), "budget": str(len(rules.rates) * rules.points), "seeds": str(rules.seeds),
        "tables": str(len(rules.tables)), "level": f"{rules.level:g}", "cost": cost(records),
        "limits": "\n".join(f"- {item}" for item in limits.items(records, rules, small, other)),
        "all": "\n".join(markdown_rows(SUMMARY, summary(found[whole], rules.level))),
        **ranking(scores["all"], whole.methods, rules.level),
        "by_table": "\n".join(by_table(scores["all"], found[whole], rules.level)),
        "others": "\n".join(markdown_rows(["", *SUMMARY], few)),
        "resampled": "\n".join(markdown_rows(["", "tables", "share of the effect", "minus C-Mixup"], resampled)),
        **{f"small_{name}": text for name, text in _origin(small, other).items()},
        "small_errors": erm_changes(records, rules, small, other),
    }  # fmt: skip


def _origin(records: Sequence[Record], rules: Protocol1) -> dict[str, str]:
    commits = ", ".join(sorted({record["commit"][:7] for record in records if record.get("commit")}))
    cells = f"{len(records)} of {len(rules.cells())}"
    return {"fixed": COMMITS[rules.name], "sha": rules.checksum[:12], "commits": commits, "cells": cells}


def counts(each: Mapping[str, Effect], level: float) -> list[str]:
    """Return tables, wins, losses, how many effects are below 0, and the mean effect, as a row of a page."""
    verdicts = [effect.verdict(level) for effect in each.values()]
    wins, losses = (str(verdicts.count(kind)) for kind in ("win", "loss"))
    below, _, p = sign_test([effect.interval.mean for effect in each.values()])
    return [str(len(each)), wins, losses, f"{below} (p {p:.2g})", interval_text(over_tables(each), DECIMALS)]


def erm_changes(records: Sequence[Record], rules: Protocol1, small: Sequence[Record], other: Protocol1) -> str:
    """Return by how many percent ERM's error is higher with small validation, mean over tables and its interval."""
    found = []
    for condition in other.conditions:
        alike = [c for c in rules.conditions if limits.training(c) == limits.training(condition)]
        before, after = (scores_of(*of) for of in ((records, alike[0].name), (small, condition.name)))
        tables = [table for table in after if BASE in after[table] and BASE in before.get(table, {})]
        means = [[mean_error(scores[table][BASE]) for table in tables] for scores in (before, after)]
        if tables:
            change = clustered([100 * (b / a - 1) for a, b in zip(*means, strict=True)], tables)
            labels = "noisy" if condition.label_noise else "clean"
            found.append(f"{interval_text(change, 1)} % with {labels} labels")
    return " and ".join(found)


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
    records: Sequence[Record], rules: Protocol1, small: Sequence[Record], other: Protocol1, method: str = "cmixup"
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
    lines = [about, "", *markdown_rows(["", "tables", "better", "worse", "difference"], body)]
    lines += ["", line] if (line := others(records, rules, method)) else []
    said = limits.items(records, rules, small, other, brief=True)
    return "\n".join([*lines, *([""] if said else []), *(f"- {line}" for line in said)])


def others(records: Sequence[Record], rules: Protocol1, method: str) -> str:
    """Return a sentence on how often the other methods that mix are better or worse than ERM on all rows."""
    scores = scores_of(records, "all")
    of = [name for name in limits.mixing(rules.methods) if name != method]
    verdicts = [effect.verdict(rules.level) for name in of for effect in effects(scores, name).values()]
    if not verdicts:
        return ""
    return (
        f"The other methods that mix ({'; '.join(map(title, of))}), on all rows: better in {verdicts.count('win')} of "
        f"{len(verdicts)} pairs of a method and a table, worse in {verdicts.count('loss')}. Every table is on [the "
        "study's page](results/study/when.md)."
    )


def summary(found: Mapping[str, Mapping[str, Effect]], level: float) -> list[list[str]]:
    """Return a row a method: wins, losses, the sign test, the median and the mean effect."""
    body = []
    for method, each in found.items():
        median = float(np.median([effect.interval.mean for effect in each.values()]))
        *row, mean = counts(each, level)
        body.append([title(method), *row, f"{median:+.{DECIMALS}f}", mean])
    return body


def ranking(scores: Scores, methods: Sequence[str], level: float) -> dict[str, str]:
    """Return mean ranks, Friedman's test, and how far apart by Nemenyi's test; empty for fewer than three tables."""
    ranks, n = mean_ranks(scores, methods)
    if n < 3:
        return dict.fromkeys(("ranked", "ranks", "friedman", "critical"), "")
    p = against_erm(scores, methods)
    ordered = sorted(ranks, key=ranks.__getitem__)
    text = ", ".join(f"{title(m)} {ranks[m]:.2f}" + (f" (p {p[m]:.2g})" if m in p else "") for m in ordered)
    apart = f"{critical_difference(len(ranks), n, level):.2f}"
    return {"ranked": str(n), "ranks": text, "friedman": f"{friedman(ranks, n):.2g}", "critical": apart}


def by_table(scores: Scores, found: Mapping[str, Mapping[str, Effect]], level: float) -> list[str]:
    """Return ERM's error and every effect, table by table; wins and losses are bold."""
    body = []
    for table, methods in scores.items():
        if BASE in methods:
            row = [table, f"{mean_error(methods[BASE]):.{DECIMALS}f}"]
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
