"""What others found: each of their comparisons with its numbers, and what may be said of it by one rule for all.

The numbers and their sources are `results/study/elsewhere.yaml`, typed from public files: no run of this project.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import yaml

from scripts.effects.verdicts import HIGHER, LOWER, UNTOLD
from scripts.protocol.published import FOLDER
from scripts.records.reads import note_read
from scripts.records.register import writes
from scripts.records.stats import Interval, clustered_interval
from scripts.records.tables import interval_text, markdown_rows
from scripts.report.places import splice_page

PAGE, NUMBERS = "study/elsewhere.md", "elsewhere.yaml"
FEWEST = 3  # controls that an interval is made of
HEAD = ("source", "task", "mixing", "tuned", "seeds", "error", "without", "with mixing", "change, %", "state")

Comparison = Mapping[str, Any]


def read_comparisons() -> list[Comparison]:
    """Return every comparison that is written down."""
    path = FOLDER / NUMBERS
    note_read(path)
    found: list[Comparison] = yaml.safe_load(path.read_text())
    return found


def change_of(own: Comparison) -> Interval | None:
    """Return the change of the error in percent, the geometric mean over pairs, or None of too few controls.

    The 95 % t interval takes pairs as independent but for those that share their control. Where the source gives an
    interval of its own, of the difference of errors, that one stands in percent of the control.
    """
    pairs = own["pairs"]
    if "interval" in own:
        ((control, mixed),) = pairs
        low, high = (100 * value / control for value in own["interval"])
        return Interval(100 * (mixed / control - 1), low, high, 1)
    controls = [control for control, _ in pairs]
    ratios = [math.log(mixed / control) for control, mixed in pairs]
    found = clustered_interval(ratios, controls) if len(set(controls)) >= FEWEST else None
    if found is None:
        return None
    mean, low, high = (100 * math.expm1(value) for value in (found.mean, found.low, found.high))
    return Interval(mean, low, high, found.n)


def state_of(own: Comparison) -> str:
    """Return whether mixing has the lower or the higher error, or that this cannot be told."""
    found = change_of(own)
    if found is None or found.low <= 0 <= found.high:
        return UNTOLD
    return LOWER if found.high < 0 else HIGHER


def comparison_rows(every: Sequence[Comparison]) -> list[str]:
    """Return a row for each comparison."""
    body = []
    for own in every:
        sides = (", ".join(f"{pair[k]:g}" for pair in own["pairs"]) for k in (0, 1))
        shown = interval_text(change_of(own), 0) if change_of(own) else "—"
        body.append([*(own[key] for key in HEAD[:6]), *sides, shown, state_of(own)])
    return markdown_rows(HEAD, body)


def count_states(every: Sequence[Comparison]) -> tuple[str, dict[str, int]]:
    """Return in how many of how many pairs mixing has the lower error, and how many comparisons have each state."""
    pairs = [pair for own in every for pair in own["pairs"]]
    states = [state_of(own) for own in every]
    below = sum(mixed < control for control, mixed in pairs)
    return f"{below} of {len(pairs)}", {state: states.count(state) for state in (LOWER, HIGHER, UNTOLD)}


def counts_text(every: Sequence[Comparison]) -> str:
    """Return how many comparisons there are and in how many the error is lower, pair by pair and by the rule."""
    below, states = count_states(every)
    told = ", ".join(f"{state} in {states[state]}" for state in (LOWER, HIGHER))
    return (
        f"In {below} pairs mixing has the lower error. By one rule for all the error is {told} and "
        f"{UNTOLD} in {states[UNTOLD]} of {len(every)} comparisons."
    )


def tuned_text(every: Sequence[Comparison]) -> str:
    """Return the same of the comparisons in which both sides were tuned."""
    return counts_text([own for own in every if own["tuned"] == "both"])


@writes
def write_page() -> dict[str, str]:
    """Return the page by its path below results/."""
    every = read_comparisons()
    made = {"counts": counts_text(every), "tuned": tuned_text(every), "comparisons": "\n".join(comparison_rows(every))}
    return {PAGE: splice_page((FOLDER / "elsewhere.md").read_text(), made)}
