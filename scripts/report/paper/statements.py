"""results/statements.csv: each published difference beside ours, one tidy row a result, and the counts of pages.

A difference of the paper is established where Welch's 95 % interval over its own seeds excludes 0.
"""

import functools
from collections.abc import Iterable
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from cmixup.metrics import metric_of
from scripts.records.csv_rows import to_csv
from scripts.report.evidence import Sample, experiment_of, published_evidence
from scripts.report.figures import BLUE, GREY, ORANGE, legend_below, new_subplots
from scripts.report.paper.verdicts import (
    BETTER,
    IDLE,
    PAPER,
    UNDECIDED,
    WORSE,
    Finding,
    find_all,
    load_artefacts,
    scores_of,
)
from scripts.report.rendering import draws, fills, writes
from scripts.report.result_table import markdown_table
from scripts.stats.intervals import interval_text, unpaired_difference

#: Datasets whose rows the seed splits anew; on all others it changes the initialisation and the order of rows alone.
SPLIT_BY_SEED = ("airfoil",)
DIRECTIONS = {BETTER: "same", WORSE: "opposite", UNDECIDED: "inconclusive"}  # as the CSV file has them
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
    first_scores, second_scores = (np.array([sample.values[seed] for seed in seeds]) for sample in (first, second))

    def draw() -> np.ndarray:
        a, b, c = (rng.integers(n - k, size=TRIPLES) for k in range(3))
        b += b >= a
        low, high = np.minimum(a, b), np.maximum(a, b)
        c += c >= low
        c += c >= high
        return np.stack([a, b, c])

    places = draw()
    return np.asarray(first_scores[places].mean(0) - second_scores[places if paired else draw()].mean(0))


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
    return {finding.key: triple_shares(finding) for finding in published_statements()}


def statement_row(finding: Finding) -> dict[str, Any]:
    """Return a statement as a row of the CSV file."""
    (low, high), margin = finding.paper.ends(), (finding.ours.high - finding.ours.low) / 2 if finding.ours else None
    varies = "split and initialisation" if finding.dataset in SPLIT_BY_SEED else "initialisation"
    numbers = {"ours": finding.ours.mean, "low": finding.ours.low, "high": finding.ours.high} if finding.ours else {}
    rounded = {
        "paper": finding.paper.mean, "paper_low": low, "paper_high": high, **numbers, "smallest_effect": margin,
        "smallest_over_paper": margin / abs(finding.paper.mean) if margin else None, **all_shares()[finding.key],
    }  # fmt: skip
    direction = DIRECTIONS.get(finding.direction, finding.direction)
    texts = {"statement": finding.title, "comparison": finding.compared, "dataset": finding.name, "varies": varies,
             "direction": direction}  # fmt: skip
    fields = {key: getattr(finding, key) for key in COLUMNS if key not in {*texts, *rounded} and hasattr(finding, key)}
    return {**fields, **texts, **{key: None if v is None else float(f"{v:.4g}") for key, v in rounded.items()}}


@fills
def statements_part() -> dict[str, dict[str, str]]:
    """Return the table of the statements that the paper's seeds do not establish; results/README.md has the others."""
    body = []
    for one in (one for one in published_statements() if not one.established):
        (low, high), n = one.paper.ends(), one.decimals
        body.append([one.title.partition(" (")[0], f"{one.name}, `{one.preset}`",
                     f"{one.paper.mean:+.{n}f} [{low:+.{n}f}, {high:+.{n}f}]", interval_text(one.ours, n), str(one.n),
                     one.outcome])  # fmt: skip
    head = ("of", "on", "the paper's", "ours", "n", "outcome")
    return {"results/findings.md": {"statements": markdown_table(head, body, left=2)}}


@writes
def statements_file() -> dict[str, str]:
    """Return results/statements.csv."""
    return {"statements.csv": to_csv(map(statement_row, published_statements()), COLUMNS)}


def outcome_counts(findings: Iterable[Finding]) -> dict[str, int]:
    """Return how many results are better, worse and undecided."""
    compared = [finding.direction for finding in findings]
    return {word: compared.count(word) for word in (BETTER, WORSE, UNDECIDED)}


def significant_by_preset() -> dict[str, list[Finding]]:
    """Return the statements that the paper's seeds establish, by preset; only those with `cpu` have another network."""
    judged = [one for one in published_statements() if one.ours and one.direction != IDLE and not one.last_epoch]
    established = [one for one in judged if one.established]
    return {preset: [one for one in established if one.preset == preset] for preset in ("paper", "released", "cpu")}


def printed_gains() -> int:
    """Return how many gains over ERM the paper's seeds establish in Tables 1 and 3, whether we have runs or not."""
    e, sides = published_evidence(), []
    for table in (artefact for artefact in load_artefacts() if artefact.experiment in ("table1", "table3")):
        for dataset in experiment_of(table.experiment).datasets:
            for metric in scores_of(table, dataset):
                query = {"from": "paper", "experiment": table.experiment, "dataset": dataset, "metric": metric}
                ours, erm = (e.find({**query, "method": method}) for method in ("cmixup", "erm"))
                if ours and erm:
                    side = unpaired_difference(ours.summary, erm.summary).side
                    sides.append(-side if metric_of(metric).lower_is_better else side)
    return sides.count(1)


def answer() -> str:
    """Whether the paper's significant gains appear with its networks."""
    gains = significant_by_preset()["paper"]
    (better, worse, undecided), n, printed = outcome_counts(gains).values(), len(gains), printed_gains()
    assert better < n / 2
    return (f"Mostly not. The paper's Tables 1 and 3 report {printed} significant gains of C-Mixup over training "
            f"without mixing (ERM); we could test {n}. With the paper's networks and hyperparameters, our runs find a "
            f"gain for {better} of these {n}, a loss for {worse}, and leave {undecided} undecided")  # fmt: skip


@fills
def count_parts() -> dict[str, dict[str, str]]:
    """Return the answer, the table of outcomes, and that of the shares of three unpaired seeds that favour C-Mixup."""
    printed, released, others = significant_by_preset().values()
    unsettled = [one for one in published_statements() if one.ours and not one.established and one.direction != IDLE]
    body = []
    rest = [[one for one in unsettled if one.preset == preset] for preset in ("released", "cpu")]
    for findings in (printed, released, others, *rest):
        for text in dict.fromkeys(one.comparison for one in findings):
            group = [one for one in findings if one.comparison == text]
            side = "significant" if group[0].established else "not significant"
            counts = map(str, outcome_counts(group).values())
            body.append([side, *_difference_and_datasets(group), f"`{group[0].preset}`", *counts])
    ours = (f"{word} in our runs" for word in outcome_counts(()))
    head = ("in the paper", "difference", "on", "our preset", *ours)
    at_paper = [one for one in printed + released if all_shares()[one.key]]
    seeds, places = [], list(dict.fromkeys(one.name for one in at_paper))
    for one in sorted(at_paper, key=lambda one: places.index(one.name)):
        shares = (all_shares()[one.key][f"{key}_unpaired"] for key in ("favour", "as_large"))
        seeds.append([f"{one.name}, `{one.preset}`", *(f"{100 * share:.0f} %" for share in shares)])
    three = markdown_table(("three seeds a method", "draws with C-Mixup ahead", "ahead by as much as published"), seeds)
    outcomes = markdown_table(head, body, left=4)
    return {"results/README.md": {"outcomes": outcomes, "three_seeds": three, "answer": answer()}}


def _difference_and_datasets(findings: list[Finding]) -> tuple[str, str]:
    """What is subtracted from what, alike for all of these, and their datasets."""
    first, *others = findings
    places = ", ".join(dict.fromkeys(finding.where for finding in findings))
    if len({finding.label for finding in findings}) > 3:  # Table 5's have long names
        return first.comparison.format(f"{len(findings)} other distances"), places
    likewise = ", ".join(dict.fromkeys(finding.label for finding in others if finding.label))
    return first.compared + f"; likewise {likewise}" * bool(likewise), places


PRESETS = {
    "paper": ("printed hyperparameters; dot: all seeds, 95 %", BLUE),
    "released": ("the authors' code's; dot: all seeds, 95 %", ORANGE),
}


@draws
def triples_picture() -> dict[str, Figure]:
    """Return the distribution of the difference over three seeds a method, unpaired as the paper's."""
    rows = [one for one in published_statements() if one.network == PAPER and one.established and all_shares()[one.key]]
    places = list(dict.fromkeys(one.name for one in rows))
    figure, axes = new_subplots(1, len(places), (3.1 * len(places), 3.1))
    for axis, place in zip(axes[0], places, strict=True):
        for k, one in enumerate(one for one in rows if one.name == place):
            label, colour = PRESETS[one.preset]
            assert one.ours
            values = triple_differences(*one.samples, paired=False)
            axis.hist(values, bins=80, histtype="step", density=True, color=colour, label=label)
            ours, height = one.ours, -0.05 * (k + 1)
            axis.errorbar(ours.mean, height, xerr=ours.bar, fmt="o", color=colour, markersize=4,
                          transform=axis.get_xaxis_transform(), clip_on=False)  # fmt: skip
            if not k:
                axis.axvline(one.paper.mean, color="black", linestyle="--", label="the paper's difference")
        axis.axvline(0, color=GREY, linewidth=0.8)
        axis.set(title=place, yticks=[])
        axis.tick_params(axis="x", pad=14)
    axes[0][0].set_ylabel("C-Mixup minus ERM,\nmeans of three runs", fontsize=9)
    legend_below(figure)
    return {"figures/three_seeds.png": figure}
