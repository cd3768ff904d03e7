"""What limits the study: splits that overlap, gains too small to see, short training, large validation, processors."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from scripts.claims.check import joined
from scripts.records.names import method_title
from scripts.records.tables import interval_text
from scripts.study.effects import BASE, Effect, Scores, effects, least, mean_error, over_tables, scores_of, sign_test
from scripts.study.names import CONTROL, DECIMALS, heading, title, validated
from scripts.study.protocols import Protocol1
from scripts.study.rules import HELD_SHARE, TRAIN_SHARE, Condition

Record = Mapping[str, Any]
OVERLAP = HELD_SHARE / TRAIN_SHARE  # test rows for each training row, of splits that redraw all rows of a table
LATE = 90  # epochs of 100: a run that is best there or later might have gone on
LATE_SHARE = 0.4  # of a table's runs, from which on it counts as unfinished
GAINS = (5, 1)  # percent of ERM's error


def items(
    records: Sequence[Record], rules: Protocol1, small: Sequence[Record], other: Protocol1, *, brief: bool = False
) -> list[str]:
    """Return the sentences on what limits the study, those that have numbers to say.

    Args:
        records, rules: of the study.
        small, other: of its few-rows conditions with small validation.
        brief: without validation and processors, and without the names of tables.
    """
    scores = scores_of(records, "all")
    said = [
        overlap(scores, rules), power(scores, rules), epochs(records, "cmixup", by_name=not brief),
        validation(rules) if small and not brief else "", other_side(records, rules, small, other),
        "" if brief else processors(records),
    ]  # fmt: skip
    return [line for line in said if line]


def training(condition: Condition) -> tuple[int | None, float]:
    """Return what conditions with other validation have in common: training rows and the noise of their labels."""
    return condition.train_rows, condition.label_noise


def mixing(methods: Iterable[str]) -> list[str]:
    """Return the methods that mix."""
    return [method for method in methods if method not in (BASE, CONTROL)]


def verdicts(each: Mapping[str, Effect], level: float) -> tuple[int, int]:
    """Return how many wins and losses there are."""
    found = [effect.verdict(level) for effect in each.values()]
    return found.count("win"), found.count("loss")


def overlap(scores: Scores, rules: Protocol1) -> str:
    """Return what is left of wins and losses on all rows if the splits' overlap is allowed for; "" without any pair."""
    methods = mixing(rules.methods)
    plain = [verdicts(effects(scores, method), rules.level) for method in methods]
    wide = {method: verdicts(effects(scores, method, OVERLAP), rules.level) for method in methods}
    pairs = sum(len(effects(scores, method)) for method in methods)
    if not pairs:
        return ""
    left = [f"{title(method)} {losses}" for method, (_, losses) in wide.items() if losses]
    (wins, losses), (before, lost) = (map(sum, zip(*each, strict=True)) for each in (wide.values(), plain))
    return (
        f"**The {rules.seeds} splits of a table overlap**, so that the intervals of a table are too narrow. With the "
        f"correction of Nadeau and Bengio (2003) {losses} of the {lost} losses of methods that mix stay on all rows"
        f"{f' ({joined(left)})' if left else ''}, and there are {wins} wins ({before} without it)."
    )


def excluded(scores: Scores, methods: Iterable[str], gain: float, overlapping: float = 0.0) -> tuple[int, int]:
    """Return in how many pairs of a method and a table a gain is excluded, and how many pairs there are.

    Args:
        scores: of one condition.
        methods: which.
        gain: in percent of ERM's error; excluded if the one-sided 95 % bound of the effect lies above it.
        overlapping: see `effects`.
    """
    found = [
        least(effect.interval) > -gain / 100 * mean_error(scores[table][BASE])
        for method in methods
        for table, effect in effects(scores, method, overlapping).items()
    ]
    return sum(found), len(found)


def power(scores: Scores, rules: Protocol1) -> str:
    """Return what no win on all rows excludes, with the correction for overlap and without; "" without any pair."""
    methods = mixing(rules.methods)
    counts = {gain: (excluded(scores, methods, gain, OVERLAP), excluded(scores, methods, gain)) for gain in GAINS}
    (first, pairs), _ = counts[GAINS[0]]
    if not pairs:
        return ""
    others = "".join(f", of {gain} % in {counts[gain][0][0]}" for gain in GAINS[1:])
    plain = " and ".join(str(counts[gain][1][0]) for gain in GAINS)
    return (
        f"**No win does not mean no gain.** Of {pairs} pairs of a method and a table on all rows, a gain of {GAINS[0]} "
        f"% of ERM's error is excluded in {first}{others} (one-sided, 95 %, each by itself, with that correction; "
        f"without it {plain})."
    )


def unfinished(records: Iterable[Record], method: str) -> list[str]:
    """Return the tables on all rows where many of a method's runs are best in their last epochs."""
    return [
        record["table"]
        for record in records
        if (record["condition"], record["method"]) == ("all", method)
        and np.mean([row["best_epoch"] >= LATE for row in record["seeds"]]) >= LATE_SHARE
    ]


def epochs(records: Sequence[Record], method: str, by_name: bool = False) -> str:
    """Return on how many tables (and which) training is too short for a method, and what they do to its mean effect."""
    late, each = unfinished(records, method), effects(scores_of(records, "all"), method)
    rest = {table: effect for table, effect in each.items() if table not in late}
    total = sum(effect.interval.mean for effect in each.values())
    if not late or len(rest) < 2 or not total:
        return ""
    share = sum(each[table].interval.mean for table in late if table in each) / total
    whole, part = (interval_text(over_tables(some), DECIMALS) for some in (each, rest))
    return (
        f"**100 epochs are too few on {len(late)} of {len(each)} tables**{f' ({joined(late)})' if by_name else ''}, "
        f"where {100 * LATE_SHARE:.0f} % or more of {method_title(method)}'s runs are best at epoch {LATE} or later. "
        f"They hold {100 * share:.0f} % of its mean effect on all rows: {whole}, without them {part}."
    )


def validation(rules: Protocol1) -> str:
    """Return how large validation is where training rows are few."""
    few = [(c.train_rows, c) for c in rules.conditions if c.train_rows is not None]
    if not few:
        return ""
    train_rows, condition = min(few, key=lambda each: each[0])
    tables = [table for table in rules.tables if rules.fits(table, condition)]
    rows = np.median([round(HELD_SHARE * min(table.rows, rules.max_rows)) for table in tables])
    return (
        "**Validation is large and clean where training rows are few**: a fifth of the whole table (a median of "
        f"{rows:.0f} rows beside {train_rows}), without noise where training labels have some. The [small "
        "ones](#as-few-rows-for-validation) have 25 rows. Options are chosen once a table, on one seed: no interval "
        "here counts that choice."
    )


def processors(records: Iterable[Record]) -> str:
    """Return how often ERM and a method that is compared with it ran on different kinds of processor."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for record in records:
        if record.get("device"):
            found.setdefault((record["table"], record["condition"]), {})[record["method"]] = record["device"]
    mixed = sum(len({*devices.values()}) > 1 for devices in found.values() if BASE in devices)
    if not mixed:
        return ""
    return (
        f"**{mixed} of {len(found)} cases (a table under a condition) mix processors**: ERM ran on one kind and a "
        "method beside it on another, and rounding, which grows over the epochs, is part of their difference."
    )


def other_side(records: Sequence[Record], rules: Protocol1, small: Sequence[Record], other: Protocol1) -> str:
    """Return where a method that mixes helps on more tables than chance explains, and what small validation leaves."""
    tried = {
        (condition, method): effects(scores_of(records, condition.name), method)
        for condition in rules.conditions
        for method in mixing(condition.methods)
    }
    lines = []
    for (condition, method), each in tried.items():
        below, n, p = sign_test([effect.interval.mean for effect in each.values()])
        if p < rules.level and 2 * below > n:
            lines.append(
                f"{title(method)} with {heading(condition)} is below 0 on {below} of {n} tables (sign test, p {p:.2g}; "
                f"{interval_text(over_tables(each), DECIMALS)}){_again(condition, method, small, other)}"
            )
    if not lines:
        return ""
    how_many = f"{len(lines)} of {sum(map(bool, tried.values()))} results"
    return f"**{how_many} {'is' if len(lines) == 1 else 'are'} on the other side**: {'; '.join(lines)}."


def _again(condition: Condition, method: str, small: Sequence[Record], other: Protocol1) -> str:
    for again in other.conditions:
        each = effects(scores_of(small, again.name), method)
        if training(again) == training(condition) and each:
            below, _, p = sign_test([effect.interval.mean for effect in each.values()])
            mean = interval_text(over_tables(each), DECIMALS)
            return f"; validated on {validated(again)}, on {below} of {len(each)} (p {p:.2g}; {mean})"
    return ""
