"""results/statements.csv: each published difference beside ours, one tidy row a result, and the counts of pages.

A difference of the paper is established where Welch's 95 % interval over its own seeds excludes 0.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any

import numpy as np

from cmixup.metrics import metric_of
from scripts.records.csv_rows import to_csv
from scripts.report.evidence import Evidence, Sample, published_evidence, sentence
from scripts.report.paper.verdicts import (
    IDLE,
    OPPOSITE,
    PAPER,
    REPRODUCES,
    SAME,
    SMALL,
    Finding,
    find_all,
    load_artefacts,
)
from scripts.report.rendering import fills, writes
from scripts.report.result_table import markdown_table
from scripts.stats.intervals import interval_text

#: Datasets whose rows the seed splits anew; on all others it changes the initialisation and the order of rows alone.
SPLIT_BY_SEED = ("airfoil",)
TRIPLES, SEED, FEWEST = 200_000, 2022, 10
COLUMNS = (
    "statement", "comparison", "dataset", "preset", "network", "metric", "n", "varies", "paper",
    "paper_low", "paper_high", "established", "ours", "low", "high", "direction", "magnitude", "smallest_effect",
    "smallest_over_paper", "favour_paired", "favour_unpaired", "as_large_paired", "as_large_unpaired",
)  # fmt: skip


@functools.cache
def published_statements() -> tuple[Finding, ...]:
    """Return the published differences between methods that our runs are compared with, read once."""
    evidence = published_evidence()
    return tuple(finding for artefact in load_artefacts() for finding in find_all(artefact, evidence))


def triple_differences(first: Sample, second: Sample, *, paired: bool) -> np.ndarray:
    """Return the mean of first minus second over `TRIPLES` draws of three seeds, which are distinct.

    Paired draws take the same seeds for both; others draw three for each, as three unpaired runs would. The draws are
    those of a generator with a fixed seed.
    """
    seeds = sorted(set(first.values) & set(second.values))
    rng, n = np.random.default_rng(SEED), len(seeds)
    one, other = (np.array([sample.values[seed] for seed in seeds]) for sample in (first, second))

    def draw() -> np.ndarray:
        a, b, c = (rng.integers(n - k, size=TRIPLES) for k in range(3))
        b += b >= a
        low, high = np.minimum(a, b), np.maximum(a, b)
        c += c >= low
        c += c >= high
        return np.stack([a, b, c])

    places = draw()
    return np.asarray(one[places].mean(0) - other[places if paired else draw()].mean(0))


def triple_shares(finding: Finding) -> dict[str, float]:
    """Return the shares of triples of seeds whose mean favours the first method, and by as much as published."""
    if finding.n < FEWEST or not finding.metric:
        return {}
    lower, shares = metric_of(finding.metric).lower_is_better, {}
    for name, paired in (("paired", True), ("unpaired", False)):
        gains = triple_differences(*finding.samples, paired=paired) * (-1 if lower else 1)
        published = finding.paper.mean * (-1 if lower else 1)
        shares[f"favour_{name}"] = float((gains > 0).mean())
        shares[f"as_large_{name}"] = float((gains >= published).mean())
    return shares


@functools.cache
def all_shares() -> dict[tuple[str, str, str], dict[str, float]]:
    """Return `triple_shares` of every statement, by title, name and preset, computed once."""
    return {one.key: triple_shares(one) for one in published_statements()}


def statement_row(one: Finding) -> dict[str, Any]:
    """Return a statement as a row of the CSV file."""
    (low, high), half = one.interval, (one.ours.high - one.ours.low) / 2 if one.ours else None
    varies = "split and initialisation" if one.dataset in SPLIT_BY_SEED else "initialisation"
    numbers = {"ours": one.ours.mean, "low": one.ours.low, "high": one.ours.high} if one.ours else {}
    rounded = {
        "paper": one.paper.mean, "paper_low": low, "paper_high": high, **numbers, "smallest_effect": half,
        "smallest_over_paper": half / abs(one.paper.mean) if half else None, **all_shares()[one.key],
    }  # fmt: skip
    texts = {"statement": one.title, "dataset": one.name, "varies": varies}
    own = {key: getattr(one, key) for key in COLUMNS if key not in {*texts, *rounded} and hasattr(one, key)}
    return {**own, **texts, **{key: None if v is None else float(f"{v:.4g}") for key, v in rounded.items()}}


@fills
def statements_part() -> dict[str, dict[str, str]]:
    """Return the table of the statements that the paper's seeds do not establish; results/README.md has the others."""
    body = []
    for one in (one for one in published_statements() if not one.established):
        (low, high), n = one.interval, one.decimals
        body.append([one.title.partition(" (")[0], f"{one.name}, preset {one.preset}" if one.preset else one.name,
                     f"{one.paper.mean:+.{n}f} [{low:+.{n}f}, {high:+.{n}f}]", interval_text(one.ours, n), str(one.n),
                     one.outcome])  # fmt: skip
    head = ("of", "on", "the paper's", "ours", "n", "outcome")
    return {"results/findings.md": {"statements": markdown_table(head, body, left=2)}}


@writes
def statements_file() -> dict[str, str]:
    """Return results/statements.csv."""
    return {"statements.csv": to_csv(map(statement_row, published_statements()), COLUMNS)}


def outcome_counts(every: Iterable[Finding]) -> str:
    """Return the outcomes of some statements in a few words each."""
    outcomes = [one.outcome for one in every]
    exact, small = outcomes.count(REPRODUCES), outcomes.count(SMALL)
    same, opposite = (sum(o.startswith(word) for o in outcomes) for word in (SAME, OPPOSITE))
    left = len(outcomes) - exact - same - opposite - small
    words = ((same, "same direction"), (opposite, "opposite"), (small, "no clear gain"), (left, "undecided"))
    return f"{len(outcomes)} results: {', '.join([f'{exact} reproduce', *(f'{n} {what}' for n, what in words if n)])}"


@sentence("results/README.md")
def paper_counts(_: Evidence) -> str:
    """Which published differences the paper's seeds establish, and what came of these and of the others."""
    every = [one for one in published_statements() if one.direction != IDLE]
    held = [one for one in every if one.established]
    full, small = ([one for one in held if (one.network == PAPER) == own] for own in (True, False))
    count, total, own = (len({one.published for one in some}) for some in (held, every, full))
    return (
        f"The paper's own three seeds establish {count} of the {total} differences that we could test: their 95 % "
        f"interval excludes 0. {own} of these ran at the paper's networks, each with two sets of hyperparameters. "
        f"Their {outcome_counts(full)}. The others ran at smaller networks or on rendered objects, "
        f"RCF-MNIST by best and by last epoch. Their "
        f"{outcome_counts(small)}. Differences that are not established have "
        f"{outcome_counts(one for one in every if not one.established)}"
    )


@sentence("results/README.md")
def three_seeds(_: Evidence) -> str:
    """How often three unpaired seeds would favour C-Mixup, and by as much as published."""
    parts, every = [], [one for one in published_statements() if one.network == PAPER and one.established]
    for name in dict.fromkeys(one.name for one in every):
        shares = [all_shares()[one.key] for one in every if one.name == name]
        ahead, large = (_percents([one[f"{key}_unpaired"] for one in shares]) for key in ("favour", "as_large"))
        parts.append(f"{name[0].upper()}{name[1:]}: {ahead} and {large}")
    return (
        "In which shares of draws would three unpaired seeds, as in the paper, show C-Mixup ahead, and ahead by as "
        f"much as published? {'. '.join(parts)}. Draws are from our seeds, over both presets"
    )


def _percents(shares: list[float]) -> str:
    low, high = (f"{100 * end:.0f}" for end in (min(shares), max(shares)))
    return f"{low} %" if low == high else f"{low} to {high} %"
