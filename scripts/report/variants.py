"""What each change of a preset does to the scores, with one thing changed at a time, over the same seeds."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

import pandas as pd

from scripts.plan.selection import Variant, variant_identity, variant_rows
from scripts.records import names
from scripts.records.experiment import Experiment, all_experiments, paper_rows
from scripts.records.records import by_seed, select_records
from scripts.records.rescored import published_records
from scripts.report.overfitting import Curve, published_curves
from scripts.report.register import writes
from scripts.report.result_table import markdown_rows, mean_text
from scripts.report.tables import made_by
from scripts.stats.intervals import interval_text, paired_or_none

LEGEND = """Mean ± standard deviation over n seeds. Change: paired difference of the test score to the method's first
row over shared seeds, mean [95 % t interval]; minus ERM: to it with the same change. Partners: effective partners as a
share of the training rows; 1 is mixup, 0 is ERM."""


def variant_tables(experiment: Experiment, records: pd.DataFrame, curves: Sequence[Curve]) -> str:
    """Return a table a dataset, and what another selection of the checkpoint would have given."""
    records = select_records(records, experiment=experiment.name)
    rival, metrics = names.method_title(experiment.methods[0]), [names.metric_title(m) for m in experiment.metrics]
    parts: list[str] = []
    for dataset in experiment.datasets:
        mine = [v for v in variant_rows(experiment) if v.dataset == dataset]
        table = [line for v in mine if (line := _variant_line(experiment, records, v, mine))]
        if table:
            head = [names.dataset_title(dataset), "changed", "n", *metrics, "change", f"minus {rival}", "partners"]
            parts += ["", *markdown_rows(head, [*_paper_lines(experiment, dataset), *table])]
            parts += ["", *_selection_lines(experiment, [c for c in curves if c.dataset == dataset])]
    return "\n".join(parts[1:])


def _variant_values(records: pd.DataFrame, experiment: Experiment, variant: Variant, metric: str) -> dict[int, float]:
    return by_seed(records, metric=metric, **variant_identity(experiment.name, variant))


def _variant_line(
    experiment: Experiment, records: pd.DataFrame, variant: Variant, mine: Sequence[Variant]
) -> list[str] | None:
    first, *others = experiment.metrics
    values = _variant_values(records, experiment, variant, first)
    if not values:
        return None
    scores = [_variant_values(records, experiment, variant, metric) for metric in (first, *others)]
    base = next(v for v in mine if v.method == variant.method)
    change = paired_or_none(values, _variant_values(records, experiment, base, first)) if variant != base else None
    # The same change of the first method, or its first row where there is none.
    plain = [v for v in mine if v.method == experiment.methods[0]]
    rival = next((v for v in plain if v.label == variant.label), plain[0])
    lead = (
        paired_or_none(values, _variant_values(records, experiment, rival, first))
        if variant.method != rival.method
        else None
    )
    where = variant_identity(experiment.name, variant)
    fractions = select_records(records, metric="effective_fraction", **where)["value"].tolist()
    return [
        names.method_title(variant.method),
        variant.label,
        str(len(values)),
        *(mean_text(one, 3) for one in scores),
        *(interval_text(interval, 3) for interval in (change, lead)),
        f"{statistics.fmean(fractions):.3g}" if fractions else "—",
    ]


def _paper_lines(experiment: Experiment, dataset: str) -> list[list[str]]:
    lines = []
    for method in experiment.methods:
        printed = {
            r["metric"]: f"{r['mean']} ± {r['std']}"
            for r in paper_rows(experiment)
            if (r["dataset"], r["method"]) == (dataset, method)
        }
        scores = [printed[metric] for metric in experiment.metrics]
        lines.append([names.method_title(method), "the paper", "3", *scores, *"———"])
    return lines


def _selection_lines(experiment: Experiment, curves: Sequence[Curve]) -> list[str]:
    """Return a sentence a method and preset: the score of the selected, the last and the best epoch."""
    sentences = []
    for preset in sorted({c.preset for c in curves}):
        for method in experiment.methods:
            mine = [c for c in curves if (c.method, c.preset) == (method, preset)]
            tests = [c.columns[f"test_{experiment.metrics[0]}"] for c in mine]
            if mine:
                selected = statistics.fmean(test[c.best_epoch - 1] for c, test in zip(mine, tests, strict=True))
                last, least = statistics.fmean(test[-1] for test in tests), statistics.fmean(map(min, tests))
                sentences.append(
                    f"{names.method_title(method)}, preset {preset}: {selected:.3f} at the epoch chosen on "
                    f"validation, {last:.3f} at the last, {least:.3f} at the best on test (which nobody may choose); "
                    f"n = {len(mine)}."
                )
    return sentences


@writes
def variant_pages() -> dict[str, str]:
    """Return the page of every experiment with variants."""
    records, curves, texts = published_records(), published_curves(), {}
    for experiment in (one for one in all_experiments() if one.variants):
        mine = [c for c in curves if c.experiment == experiment.name]
        body = [f"# {experiment.title}", "", LEGEND, "", variant_tables(experiment, records, mine)]
        texts[f"tables/{experiment.name}_paper.md"] = "\n".join(body) + "\n" + made_by(experiment.name, "paper")
    return texts
