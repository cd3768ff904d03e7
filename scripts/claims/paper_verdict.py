"""What reproduces: ours, the paper's and the authors' own code side by side, with a verdict by rule."""

from __future__ import annotations

import math
from collections.abc import Sequence

from cmixup.errors import InputError
from scripts.claims.evidence import AUTHORS as AUTHORS_FILE
from scripts.claims.evidence import Absent, Evidence, Query, sample_difference, sample_of
from scripts.config.compose import part_file
from scripts.records import names
from scripts.records.experiment import Experiment
from scripts.records.records import read_csv
from scripts.records.stats import Interval, Summary
from scripts.records.tables import ResultTable, interval_text, markdown_rows, summary_text, z_text

RULE = (
    "**How verdicts are given.** Two means agree if they differ by at most two standard errors of their difference, "
    "2 sqrt(std²/n + std²/n), where n of the paper is 3; otherwise ours is higher or lower. z is ours minus the "
    "paper's in these standard errors. Here this is applied to "
    "{n} comparisons, of which {agree} agree; were every true difference 0, about one in twenty would still not, and "
    "with three seeds more than that. Words that compare two methods or two codes over seeds (better, worse, level) go "
    "by the 95 % t interval of the difference, which excludes 0 or contains it: paired by seed where both sides have "
    "the same splits, Welch's of two samples elsewhere. {intervals}No interval is corrected for how many there are."
)
AUTHORS = (
    "Authors' code: their release, run by us (results/paper/original_rerun.csv), mean ± std over n seeds; next to it "
    "our runs of the same seeds, and ours minus theirs with its 95 % interval, bold where that excludes 0."
)
AUTHORS_HEAD = ("authors' code", "ours, same seeds", "ours minus theirs")
PRESET, ABLATION = "released", "ablation_ood"  # the latter has the bandwidths that no preset has
AUTHORS_TABLE = (
    "Preset released against the authors' code (results/paper/original_rerun.csv) over the same seeds, mean ± standard "
    "deviation; the difference is paired by seed, with its 95 % t interval, bold where that excludes 0. So it does in "
    "{found} of {n} comparisons."
)


def means_agree(first: Summary, second: Summary) -> bool:
    """Return whether two means differ by at most two standard errors; a spread that is not known counts as none."""
    error = math.sqrt(sum(0 if math.isnan(s.std) else s.std**2 / s.n for s in (first, second)))
    return abs(first.mean - second.mean) <= 2 * error


def against_paper(ours: Summary, paper: Summary) -> str:
    """Return how ours stands to the paper's mean."""
    if ours.n < 2:
        return "one seed: none"
    if means_agree(ours, paper):
        return "agrees"
    return "ours is higher" if ours.mean > paper.mean else "ours is lower"


def agreement_lines(table: ResultTable, evidence: Evidence, preset: str, intervals: int = 0) -> list[str]:
    """Return the rule and a Markdown table a dataset, for test RMSE.

    Args:
        table: Table 1 of one preset.
        evidence: what it was made from, and the authors' runs.
        preset: its preset.
        intervals: how many intervals stand behind the sentences of the pages.
    """
    parts, given = [], []
    for block in table.blocks:
        body = []
        for method, cells in block.cells.items():
            cell = cells["rmse"]
            d, paper = cell.decimals, cell.printed
            if cell.ours is None or paper is None:
                continue
            given.append(against_paper(cell.ours, paper))
            query = {"experiment": "table1", "preset": preset, "dataset": block.dataset, "method": method,
                     "metric": "rmse"}  # fmt: skip
            body.append(
                [
                    names.method_title(method),
                    mean_std(paper, d),
                    mean_std(cell.ours, d),
                    given[-1],
                    z_text(cell),
                    *compare_codes(evidence, query, d),
                ]
            )
        n = max(c["rmse"].ours.n for c in block.cells.values() if c["rmse"].ours)
        head = [names.dataset_title(block.dataset), "paper", f"ours, n = {n}", "verdict", "z", *AUTHORS_HEAD]
        parts += ["", *markdown_rows(head, body)]
    made = [g for g in given if not g.startswith("one seed")]
    stand = f"{intervals} such intervals stand behind the sentences of these pages. " if intervals else ""
    rule = RULE.format(n=len(made), agree=made.count("agrees"), intervals=stand)
    return [rule, "", AUTHORS, *parts]


def compare_codes(evidence: Evidence, query: Query, decimals: int) -> list[str]:
    """Return the authors' mean, ours over the same seeds, and the difference, as text; dashes without their runs."""
    theirs = {key: query[key] for key in ("dataset", "method", "metric")}
    try:
        return against_authors(evidence, query, theirs, decimals)[0]
    except InputError:
        return ["—"] * 3


def against_authors(evidence: Evidence, ours: Query, theirs: Query, decimals: int) -> tuple[list[str], Interval | None]:
    """Return, as text, the authors' mean, ours of the same seeds and the difference, and then the difference itself.

    Raises:
        InputError: a side has no runs, or no seed is shared.
    """
    other, mine = evidence.sample({"from": "authors", **theirs}), evidence.sample(ours)
    shared = sample_of({s: v for s, v in mine.values.items() if s in other.values}, mine.units)
    found = sample_difference(shared, other)
    first = f"{mean_std(other.summary, decimals)}, n = {other.summary.n}"
    return [first, mean_std(shared.summary, decimals), interval_text(found, decimals, bold=True)], found


def authors_table(experiment: Experiment, datasets: Sequence[str], evidence: Evidence) -> str:
    """Return a Markdown table a dataset of `experiment`, over methods, bandwidths and scores that both codes have."""
    parts, apart = [], []
    for dataset in datasets:
        rows = [r for r in read_csv(evidence.results / AUTHORS_FILE) if r["dataset"] == dataset]
        cells = {(r["method"], float(r["bandwidth"]) if r["bandwidth"] else None) for r in rows}
        published, body = part_file("dataset", dataset)["presets"][PRESET]["bandwidth"], []
        for method, bandwidth in sorted(cells, key=lambda c: (experiment.methods.index(c[0]), c[1] or 0)):
            for metric in experiment.metrics:
                ours = {"experiment": experiment.name, "preset": PRESET, "dataset": dataset, "method": method,
                        "metric": metric}  # fmt: skip
                theirs = {"dataset": dataset, "method": method, "metric": metric}
                if bandwidth is not None:
                    theirs["bandwidth"] = bandwidth
                if bandwidth not in (None, published):
                    ours |= {"experiment": ABLATION, "options": {"method.bandwidth": bandwidth}}
                try:
                    shown, found = against_authors(evidence, ours, theirs, 3)
                except Absent:
                    continue
                apart.append(found is not None and not found.low <= 0 <= found.high)
                name = names.method_title(method) + ("" if bandwidth is None else f", bandwidth {bandwidth:g}")
                body.append([name, names.metric_title(metric), *shown, "unexplained" if apart[-1] else "—"])
        head = [names.dataset_title(dataset), "score", *AUTHORS_HEAD, "explained by"]
        parts += ["", *markdown_rows(head, body)]
    return "\n".join([AUTHORS_TABLE.format(found=sum(apart), n=len(apart)), *parts])


def mean_std(value: Summary, decimals: int) -> str:
    """Return mean ± standard deviation; a mean without one says so."""
    return summary_text(value, decimals) + (" (n = 1)" if math.isnan(value.std) else "")
