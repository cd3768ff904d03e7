"""results/statements.csv: what came of each published difference, one tidy row a result, and the counts of pages.

A difference of the paper is established where Welch's 95 % interval over its own seeds excludes 0.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from cmixup.metrics import metric_of
from scripts.records.records import to_csv
from scripts.report.evidence import Sample, published_evidence
from scripts.report.rendering import writes
from scripts.report.verdicts import Finding, find_all, load_artefacts

#: Datasets whose rows the seed splits anew; on all others it changes the initialisation and the order of rows alone.
SPLIT_BY_SEED = ("airfoil",)
PAPER, REDUCED, RENDERED = (
    "paper",
    "reduced",
    "rendered",
)  # networks; the second is narrower, or trains for fewer epochs
TRIPLES, SEED = 200_000, 2022
COLUMNS = (
    "statement", "comparison", "dataset", "preset", "network", "metric", "n", "varies", "paper", "paper_low", "paper_high",
    "established", "ours", "low", "high", "direction", "magnitude", "smallest_effect", "smallest_over_paper",
    "favour_paired", "favour_unpaired", "as_large_paired", "as_large_unpaired",
)  # fmt: skip


@dataclass(frozen=True)
class Statement:
    """A published difference between two methods and what came of it.

    Attributes:
        title: the table or figure of the paper.
        comparison: which difference, in words.
        finding: what our runs say.
    """

    title: str
    comparison: str
    finding: Finding

    @property
    def network(self) -> str:
        """`PAPER`, `REDUCED` or `RENDERED`: whose network our runs train, and on whose data."""
        if "rendering" in self.finding.where:
            return RENDERED
        return REDUCED if self.finding.preset == "cpu" else PAPER

    @property
    def interval(self) -> tuple[float, float]:
        """Welch's 95 % interval of the published difference, whose seeds are not paired."""
        assert self.finding.paper
        return self.finding.paper.ends()

    @property
    def established(self) -> bool:
        """Whether that interval excludes 0."""
        low, high = self.interval
        return low > 0 or high < 0

    @property
    def name(self) -> str:
        """The difference on a page, such as "Airfoil" or "RCF-MNIST, CutMix"."""
        return ", ".join(filter(None, (self.finding.where, self.finding.label)))


@functools.cache
def published_statements() -> tuple[Statement, ...]:
    """Return the published differences between methods that our runs are compared with, read once."""
    evidence = published_evidence()
    return tuple(
        Statement(artefact.number, artefact.decides, finding)
        for artefact in load_artefacts() if artefact.gain or artefact.number == "Table 2"
        for finding in find_all(artefact, evidence) if finding.paper
    )  # fmt: skip


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
    if (
        finding.samples is None
        or finding.paper is None
        or finding.n < 10
        or not finding.samples[0].units.startswith("seeds")
    ):
        return {}
    lower, shares = metric_of(finding.metric).lower_is_better, {}
    for name, paired in (("paired", True), ("unpaired", False)):
        gains = triple_differences(*finding.samples, paired=paired) * (-1 if lower else 1)
        published = finding.paper.mean * (-1 if lower else 1)
        shares[f"favour_{name}"] = float((gains > 0).mean())
        shares[f"as_large_{name}"] = float((gains >= published).mean())
    return shares


def statement_row(statement: Statement) -> dict[str, Any]:
    """Return a statement as a row of the CSV file."""
    one = statement.finding
    assert one.paper
    (low, high), half = statement.interval, (one.ours.high - one.ours.low) / 2 if one.ours else None
    varies = "split and initialisation" if one.dataset in SPLIT_BY_SEED else "initialisation"
    numbers = {"ours": one.ours.mean, "low": one.ours.low, "high": one.ours.high} if one.ours else {}
    rounded = {
        "paper": one.paper.mean, "paper_low": low, "paper_high": high, **numbers, "smallest_effect": half,
        "smallest_over_paper": half / abs(one.paper.mean) if half else None, **triple_shares(one),
    }  # fmt: skip
    return {
        "statement": statement.title, "comparison": statement.comparison, "dataset": statement.name, "preset": one.preset,
        "network": statement.network, "metric": one.metric, "n": one.n, "varies": varies,
        "established": statement.established, "direction": one.direction, "magnitude": one.magnitude,
        **{key: None if value is None else float(f"{value:.4g}") for key, value in rounded.items()},
    }  # fmt: skip


@writes
def statements_file() -> dict[str, str]:
    """Return results/statements.csv."""
    return {"statements.csv": to_csv(map(statement_row, published_statements()), COLUMNS)}
