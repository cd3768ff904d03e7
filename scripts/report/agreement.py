"""Ours, the paper's and the authors' own code side by side: results/tables/authors_code.md."""

from __future__ import annotations

import itertools
from typing import Any

from scripts.config.compose import part_file
from scripts.records import names
from scripts.records.experiment import load_experiment
from scripts.records.rescored import published_records
from scripts.report.evidence import Evidence, Query, Unsupported, published_evidence, sample_difference, sample_of
from scripts.report.register import writes
from scripts.report.result_table import Block, markdown_page, markdown_table, summary_text
from scripts.report.tables import make_table, standard_records
from scripts.stats.intervals import interval_text

HEAD = """# Ours, the paper's and the authors' code, preset released

Mean ± standard deviation over n seeds, 3 of the paper. A difference has its 95 % t interval, bold where it excludes 0.
The authors' code is their release, run by us (`results/paper/original_rerun.csv`); ours minus theirs is of the same
seeds, paired where both codes split alike."""
AUTHORS_HEAD = ("authors' code", "ours minus theirs")
PRESET, ABLATION = "released", "ablation_ood"  # the latter has the bandwidths that no preset has


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
        texts = [summary_text(one, cell.decimals) for one in (cell.paper, cell.ours)]
        body.append([names.method_title(method), *texts, cell.difference_text, *(codes or "——")])
        n = max(n, cell.ours.n)
    head = [names.dataset_title(block.dataset), "paper", f"ours, n = {n}", "ours minus the paper's", *AUTHORS_HEAD]
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
    """Return the authors' mean, and ours of the same seeds minus it, as text; nothing where a side has no runs."""
    try:
        other, mine = evidence.authors(**theirs), evidence.runs(**ours)
    except Unsupported:
        return []
    shared = sample_of({s: v for s, v in mine.values.items() if s in other.values}, mine.units)
    difference = interval_text(sample_difference(shared, other), decimals, bold=True)
    return [f"{summary_text(other.summary, decimals)}, n = {other.summary.n}", difference]
