"""Ours, the paper's and the authors' own code side by side: results/tables/authors_code.md."""

from __future__ import annotations

import itertools
import math
from typing import Any

from scripts.config.compose import part_file
from scripts.records import names
from scripts.records.experiment import load_experiment
from scripts.records.rescored import published_records
from scripts.report.evidence import Evidence, Query, Unsupported, published_evidence, sample_difference, sample_of
from scripts.report.register import writes
from scripts.report.result_table import Block, markdown_page, markdown_table, signed_text, summary_text
from scripts.report.tables import make_table, standard_records
from scripts.stats.intervals import Summary, interval_text, unpaired_difference

HEAD = """# Ours, the paper's and the authors' code, preset released

Mean ± standard deviation over n seeds. Two means *agree* if they differ by at most two standard errors of their
difference, 2 sqrt(std²/n + std²/n), where n of the paper is 3; z is ours minus the paper's in these. The authors' code
is their release, run by us (`results/paper/original_rerun.csv`); next to it are our runs of the same seeds, and ours
minus theirs with its 95 % t interval, paired by seed where both codes split alike, and bold where it excludes 0. No
interval is corrected for how many there are."""
AUTHORS_HEAD = ("authors' code", "ours, same seeds", "ours minus theirs")
PRESET, ABLATION = "released", "ablation_ood"  # the latter has the bandwidths that no preset has


def against_paper(ours: Summary, paper: Summary) -> str:
    """Return how our mean stands to the paper's; a spread that is not known counts as none."""
    difference = unpaired_difference(ours, paper)
    if ours.n < 2:
        return "one seed: none"
    if abs(difference.mean) <= 2 * difference.error:
        return "agrees"
    return "ours is higher" if difference.mean > 0 else "ours is lower"


@writes
def authors_page() -> dict[str, str]:
    """Return the page."""
    table = make_table(load_experiment("table1"), standard_records(published_records()), PRESET)
    e = published_evidence()
    tables = [agreement_table(block, e) for block in table.blocks]
    tables += [authors_table(dataset, e) for dataset in ("crime", "skillcraft")]
    end = "`python -m scripts.reproduce table1 preset=released` and `table3` train these runs; `make publish` renders."
    return {"tables/authors_code.md": markdown_page(HEAD, *tables, end)}


def agreement_table(block: Block, evidence: Evidence) -> str:
    """Return the Markdown table of a dataset of Table 1, for test RMSE."""
    body, n = [], 0
    for method, scores in block.cells.items():
        cell, same = scores["rmse"], {"dataset": block.dataset, "method": method}
        if cell.ours is None or cell.paper is None:
            continue
        codes = against_authors(evidence, {"experiment": "table1", "preset": PRESET, **same}, same, cell.decimals)
        texts = [mean_std(one, cell.decimals) for one in (cell.paper, cell.ours)]
        verdict, z = against_paper(cell.ours, cell.paper), signed_text(cell.z, 1)
        body.append([names.method_title(method), *texts, verdict, z, *(codes or "———")])
        n = max(n, cell.ours.n)
    head = [names.dataset_title(block.dataset), "paper", f"ours, n = {n}", "verdict", "z", *AUTHORS_HEAD]
    return markdown_table(head, body)


def authors_table(dataset: str, evidence: Evidence) -> str:
    """Return the Markdown table of a dataset of Table 3 over methods, bandwidths and scores that both codes have."""
    published, body = part_file("dataset", dataset)["presets"][PRESET]["bandwidth"], []
    widths = {"crime": (0.1, 4.0), "skillcraft": (0.0005, 1.0)}[dataset]
    cells = [("erm", None), ("mixup", None), ("manifold_mixup", None), *(("cmixup", width) for width in widths)]
    for (method, bandwidth), metric in itertools.product(cells, ("rmse", "worst_rmse")):
        same = {"dataset": dataset, "method": method, "metric": metric}
        ours: dict[str, Any] = {"experiment": "table3", "preset": PRESET, **same}
        if bandwidth not in (None, published):
            ours |= {"experiment": ABLATION, "options": {"method.bandwidth": bandwidth}}
        if texts := against_authors(evidence, ours, {**same, "bandwidth": bandwidth}, 3):
            name = names.method_title(method) + ("" if bandwidth is None else f", bandwidth {bandwidth:g}")
            body.append([name, names.metric_title(metric), *texts])
    return markdown_table([names.dataset_title(dataset), "score", *AUTHORS_HEAD], body)


def against_authors(evidence: Evidence, ours: Query, theirs: Query, decimals: int) -> list[str]:
    """Return the authors' mean, ours of the same seeds and the difference as text; nothing where a side has no runs."""
    try:
        other, mine = evidence.authors(**theirs), evidence.runs(**ours)
    except Unsupported:
        return []
    shared = sample_of({s: v for s, v in mine.values.items() if s in other.values}, mine.units)
    first, second = mean_std(other.summary, decimals), mean_std(shared.summary, decimals)
    difference = interval_text(sample_difference(shared, other), decimals, bold=True)
    return [f"{first}, n = {other.summary.n}", second, difference]


def mean_std(value: Summary, decimals: int) -> str:
    """Return mean ± standard deviation; a mean without one says so."""
    return summary_text(value, decimals) + (" (n = 1)" if math.isnan(value.std) else "")
