"""What each change of a preset does to the scores, with one thing changed at a time, over the same seeds."""

from __future__ import annotations

import statistics

import pandas as pd

from scripts.plan.selection import variant_identity, variant_rows
from scripts.records import names
from scripts.records.experiment import Experiment, all_experiments, paper_rows
from scripts.records.records import by_seed, select_records
from scripts.records.rescored import published_records
from scripts.report.register import writes
from scripts.report.result_table import markdown_page, markdown_table, mean_text
from scripts.report.tables import made_by
from scripts.stats.intervals import interval_text, paired_or_none

LEGEND = """Mean ± standard deviation over n seeds. Change: paired difference of the test score to the method's first
row over shared seeds, mean [95 % t interval]; minus ERM: to it with the same change. Partners: effective partners as a
share of the training rows; 1 is mixup, 0 is ERM."""


def variant_tables(experiment: Experiment, records: pd.DataFrame) -> str:
    """Return a table a dataset."""
    records = select_records(records, experiment=experiment.name)
    metrics, rival = experiment.metrics, experiment.methods[0]
    titles = ["changed", "n", *map(names.metric_title, metrics), "change", f"minus {names.method_title(rival)}"]
    printed = {(r["dataset"], r["method"], r["metric"]): f"{r['mean']} ± {r['std']}" for r in paper_rows(experiment)}
    parts: list[str] = []
    for dataset in experiment.datasets:
        rows = [v for v in variant_rows(experiment) if v.dataset == dataset]
        runs = {v: select_records(records, **variant_identity(experiment.name, v)) for v in rows}
        scores = {v: {m: by_seed(mine, metric=m) for m in metrics} for v, mine in runs.items()}
        bases = {v.method: v for v in reversed(rows)}  # the first row of each method
        same_change = {v.label: v for v in rows if v.method == rival}
        body = []
        for v, of_metric in scores.items():
            if not (values := of_metric[metrics[0]]):
                continue
            base, beside = bases[v.method], same_change.get(v.label, bases[rival])
            change = paired_or_none(values, scores[base][metrics[0]]) if v != base else None
            lead = paired_or_none(values, scores[beside][metrics[0]]) if v.method != rival else None
            fractions = select_records(runs[v], metric="effective_fraction")["value"].tolist()
            body.append([
                names.method_title(v.method), v.label, str(len(values)), *map(mean_text, of_metric.values()),
                interval_text(change), interval_text(lead),
                f"{statistics.fmean(fractions):.3g}" if fractions else "—",
            ])  # fmt: skip
        if body:
            head = [names.dataset_title(dataset), *titles, "partners"]
            paper = [
                [names.method_title(m), "the paper", "3", *(printed[dataset, m, metric] for metric in metrics), *"———"]
                for m in experiment.methods
            ]
            parts.append(markdown_table(head, paper + body))
    return "\n\n".join(parts)


@writes
def variant_pages() -> dict[str, str]:
    """Return the page of every experiment with variants."""
    records, texts = published_records(), {}
    for experiment in (one for one in all_experiments() if one.variants):
        page = markdown_page(f"# {experiment.title}", LEGEND, variant_tables(experiment, records))
        texts[f"tables/{experiment.name}_paper.md"] = page + made_by(experiment.name, "paper")
    return texts
