"""Crime and SkillCraft beside the authors' code, seed by seed: where the two differ and what is known to differ."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from scripts.claims.evidence import AUTHORS, Absent, Evidence, Sample
from scripts.claims.paper_verdict import against_authors
from scripts.records import names
from scripts.records.experiment import Experiment
from scripts.records.records import read_csv
from scripts.records.tables import markdown_rows

PRESET, UNEXPLAINED = "released", "unexplained"
ABLATION = "ablation_ood"  # has the bandwidths that no preset has
LEGEND = (
    "Preset released against the authors' code (results/paper/original_rerun.csv) over the same seeds, mean ± standard "
    "deviation; the difference is paired by seed, with its 95 % t interval, bold where that excludes 0. So it does in "
    "{found} of {n} comparisons."
)


def authors_table(
    experiment: Experiment, datasets: Sequence[str], evidence: Evidence, explained: Sequence[Mapping[str, Any]]
) -> str:
    """Return a Markdown table a dataset, over methods, bandwidths and scores that both codes have.

    Args:
        experiment: whose records are ours.
        datasets: which of its datasets.
        evidence: our records and their runs.
        explained: rows with `of`, the keys of the comparisons that they are about, and `by`, what is known to differ.
    """
    parts, found, n = [], 0, 0
    for dataset in datasets:
        body = []
        for cell in _cells(evidence, experiment, dataset):
            for metric in experiment.metrics:
                ours, theirs = _pair(evidence, experiment.name, {**cell, "metric": metric})
                if ours is None or theirs is None:
                    continue
                cells, interval = against_authors(ours, theirs, 3)
                apart = interval is not None and not interval.low <= 0 <= interval.high
                n, found = n + 1, found + apart
                bandwidth = f", bandwidth {float(cell['bandwidth']):g}" if cell["bandwidth"] else ""
                name, why = f"{names.method_title(cell['method'])}{bandwidth}", {**cell, "metric": metric}
                body.append([name, names.metric_title(metric), *cells, reason(why, explained) if apart else "—"])
        head = [names.dataset_title(dataset), "score", "authors' code", "ours, same seeds", "ours minus theirs",
                "explained by"]  # fmt: skip
        parts += ["", *markdown_rows(head, body)]
    return "\n".join([LEGEND.format(found=found, n=n), *parts])


def reason(cell: Mapping[str, Any], explained: Sequence[Mapping[str, Any]]) -> str:
    """Return what explains the difference of a cell, by the first row whose keys fit it."""
    return next(
        (e["by"] for e in explained if all(str(cell.get(k)) == str(v) for k, v in e["of"].items())), UNEXPLAINED
    )


def _cells(evidence: Evidence, experiment: Experiment, dataset: str) -> list[dict[str, str]]:
    """Return the authors' configurations in the order of our methods; "" is no bandwidth."""
    rows = [r for r in read_csv(evidence.results / AUTHORS) if r["dataset"] == dataset]
    found = {(r["method"], r["bandwidth"]): r for r in rows}
    order = sorted(found, key=lambda k: (experiment.methods.index(k[0]), float(k[1] or 0)))
    return [{"dataset": dataset, "method": method, "bandwidth": bandwidth} for method, bandwidth in order]


def _pair(evidence: Evidence, experiment: str, cell: Mapping[str, str]) -> tuple[Sample | None, Sample | None]:
    query = {key: cell[key] for key in ("dataset", "method", "metric")}
    bandwidth = {"bandwidth": float(cell["bandwidth"])} if cell["bandwidth"] else {}
    try:
        theirs = evidence.sample({"from": "authors", **query, **bandwidth})
    except Absent:
        return None, None
    changed = {"method.bandwidth": bandwidth.get("bandwidth")}
    for runs_of, options in ((experiment, {}), (experiment, changed), (ABLATION, changed)):
        ours = {"experiment": runs_of, "preset": PRESET, "options": options, **query}
        try:
            if not bandwidth or math.isclose(evidence.bandwidth(ours), bandwidth["bandwidth"]):
                return evidence.sample(ours), theirs
        except Absent:
            continue
    return None, theirs
