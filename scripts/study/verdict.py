"""Effects in words: what is printed of a method that is tried beside what is stored, and the sentences of pages."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from textwrap import fill
from typing import Any

from cmixup.errors import InputError
from scripts.records.tables import interval_text
from scripts.stats.effects import (
    BASE,
    EQUIVALENT,
    IMPROVES,
    INCONCLUSIVE,
    WORSENS,
    Effect,
    errors_of,
    method_effect,
    rank_methods,
)

WIDTH = 80  # columns of a verdict's lines


def chance_text(p: float) -> str:
    """Return a probability as pages print it."""
    return "below 0.01" if p < 0.01 else "above 0.99" if p > 0.99 else f"{p:.2f}"


def mean_text(effect: Effect) -> str:
    """Return the mean effect by the hierarchical model and the unweighted mean, each with its interval."""
    model, plain = interval_text(effect.overall, 1), interval_text(effect.unweighted, 1)
    return f"{model} % by the hierarchical model, unweighted {plain} %"


def direction_text(effect: Effect) -> str:
    """Return in words which side of 0 the mean effect lies on."""
    way = effect.direction()
    return "the direction is inconclusive" if way == INCONCLUSIVE else f"the mean error is {way}"


def counts_text(effect: Effect, equal: float) -> str:
    """Return in words on how many tables the error improves, worsens, is equivalent, or is inconclusive."""
    n = {verdict: count or "none" for verdict, count in effect.counts().items()}
    return (
        f"the error improves by {equal:g} % or more on {n[IMPROVES]} of the tables and worsens as much on "
        f"{n[WORSENS]}; it is practically equivalent on {n[EQUIVALENT]} and inconclusive on {n[INCONCLUSIVE]}"
    )


def new_text(effect: Effect, equal: float) -> str:
    """Return in a sentence what to expect of a table that nobody has seen."""
    chances = effect.posterior.new.chances
    return (
        f"Predictive probability that the error improves by at least {equal:g} % on a new table: "
        f"{chance_text(chances.gain)}; that it worsens as much: {chance_text(chances.loss)}."
    )


def degenerate_splits(records: Sequence[Mapping[str, Any]], method: str) -> tuple[int, int]:
    """Return on how many splits tuning chose ERM itself for a method, and of how many."""
    rows = ((r["table"], row) for r in records if r["method"] == method for row in r["seeds"])
    words = {(table, row["split"]): row["options"] for table, row in rows}
    return sum(map(is_erm, words.values())), len(words)


def is_erm(words: Sequence[str]) -> bool:
    """Return whether a run's words choose ERM, and no file of another method in its place."""
    return [word for word in words if "method" in word] == [f"method={BASE}"]


def method_verdict(
    records: Sequence[Mapping[str, Any]], condition: str, method: str, level: float, equal: float
) -> str:
    """Return the verdict on a method in a setting: each table, the mean, a new table, and its rank.

    Args:
        records: of the method, of ERM and of whatever it is to be ranked with, on the tables that it is judged on.
        condition: the setting.
        method: which.
        level, equal: see `scripts.stats.effects.method_effect`.

    Raises:
        InputError: the method and ERM share no table with two splits.
    """
    records = [record for record in records if record["condition"] == condition]
    errors = errors_of(records)
    effect, order = method_effect(errors, method, level, equal), rank_methods(errors, method)
    if not effect:
        raise InputError(f"{method} and {BASE} share no table of setting {condition} with two splits or more")
    erm, splits = degenerate_splits(records, method)
    tuned = f"Degenerate (equals ERM) on {erm} of {splits} splits, where tuning chose ERM itself."
    options = [trial["options"] for r in records if r["method"] == method for trial in r["trials"]]
    if options and all(map(is_erm, options)):
        tuned = "Rate and decay are those that tuning chose for ERM; the method was not tuned."
    width = max(map(len, effect.means))
    tables = "".join(
        f"  {table:<{width}}  {interval_text(interval, 1):>20}  {verdict}\n"
        for table, (interval, verdict) in effect.tables.items()
    )
    counts, rank = counts_text(effect, equal), [name for name, _ in order].index(method) + 1
    lines = [
        f"Verdict on {method}, setting {condition}, {len(effect.means)} tables",
        f"Mean effect: {mean_text(effect)}; {direction_text(effect)}.",
        f"{counts[0].upper()}{counts[1:]}.",
        new_text(effect, equal),
        f"Rank by mean error {rank} of {len(order)}: {', '.join(f'{name} {mean:.4f}' for name, mean in order)}.",
        tuned,
    ]
    head = "Test error minus ERM's, % of ERM's, by the hierarchical model, 95 % intervals"
    return f"{head}\n{tables}" + "\n".join(fill(line, WIDTH, break_on_hyphens=False) for line in lines)
