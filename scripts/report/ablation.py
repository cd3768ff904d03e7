"""Ablations: a page has a row for each point that an experiment changes of its preset; those of one option: a sweep."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from scripts.plan.selection import (
    changes_preset,
    points_of,
    recorded_under,
    selected_methods,
    shared_options,
    swept_option,
)
from scripts.records import names
from scripts.records.experiment import RESULTS, Experiment, all_experiments
from scripts.records.rescored import table_runs
from scripts.records.run_tables import by_seed, option_words, options_text
from scripts.report.rendering import writes
from scripts.report.result_table import bullets, markdown_page, markdown_table, mean_text, missing_part
from scripts.report.sweep import Sweep, decimals_for, option_value, sweep_points
from scripts.stats.intervals import interval_text, paired_or_none, summarise_values

LEGEND = """Mean ± standard deviation over n seeds. Change: difference of the test score to the method's first row,
paired by seed, mean [95 % t interval]; minus ERM and its kind: to it with the same change, or without any. No interval
is corrected for how many there are. Partners: effective partners as a share of the training rows; 1 is mixup, 0 is
ERM. Bold: the preset alone."""


def runs_by_point(
    experiment: Experiment, dataset: str, every: pd.DataFrame, preset: str
) -> dict[tuple[str, str], pd.DataFrame]:
    """Return the runs of every method and point of a dataset, by method and label, in the order of the experiment.

    A method without points has the label "", and of its runs those with the seeds of the others' points.
    """
    runs, shared = dict[tuple[str, str], pd.DataFrame](), shared_options(experiment)
    for method in selected_methods(experiment, dataset, experiment.methods):
        under = recorded_under(experiment, method, dataset)
        mine = every[(every["experiment"] == under) & (every["dataset"] == dataset) & (every["method"] == method)]
        for point in points_of(experiment, dataset, method):
            wanted = {"preset": preset, **point.options}
            known = wanted.keys() | shared.keys()
            there = [
                option_words(run["options"]).keys() <= known
                and all(option_value(run, key) == (tuple(v) if isinstance(v, list) else v) for key, v in wanted.items())
                for run in mine.to_dict("records")
            ]
            runs[method, point.label] = mine[np.array(there, bool)]
    seeds = {seed for (_, label), mine in runs.items() if label for seed in mine["seed"]}
    return {key: mine if key[1] else mine[mine["seed"].isin(seeds)] for key, mine in runs.items()}


def ablation_page(experiment: Experiment, every: pd.DataFrame, preset: str, missing: Sequence[str] = ()) -> str:
    """Return a page with a table a dataset, and a row in it for each method and point that has runs."""
    about = f" ({experiment.about_preset[preset]})" if preset in experiment.about_preset else ""
    title = experiment.title if changes_preset(experiment) else f"{experiment.title}, preset {preset}{about}"
    tables = [ablation_table(experiment, dataset, every, preset) for dataset in experiment.datasets]
    notes = [bullets(experiment.notes)] if experiment.notes else []
    return markdown_page(f"# {title}", LEGEND, *filter(None, tables), *missing_part(missing), *notes)


def ablation_rows(
    experiment: Experiment, dataset: str, every: pd.DataFrame, preset: str
) -> tuple[list[dict[str, Any]], list[str]]:
    """Return a row for each method and point of a dataset that has runs, and the methods with which all are compared.

    A row has scores by seed of each metric, and differences: to the method's first row, then to each rival.
    """
    runs, shared, rows = runs_by_point(experiment, dataset, every, preset), shared_options(experiment), []
    metrics = experiment.metrics_of.get(dataset, experiment.metrics)
    scores = {key: {metric: by_seed(mine, f"test_{metric}") for metric in metrics} for key, mine in runs.items()}
    main = {key: of_metric[metrics[0]] for key, of_metric in scores.items()}
    first = {method: (method, label) for method, label in reversed(runs)}
    rivals = [method for method, label in runs if not label] or experiment.methods[:1]
    for (method, label), mine in runs.items():
        if mine.empty:
            continue
        beside = [(rival, label) if (rival, label) in runs else first[rival] for rival in rivals]
        others = (first[method], *beside)
        values = main[method, label]
        pairs = [None if other == (method, label) else paired_or_none(values, main[other]) for other in others]
        fractions = by_seed(mine, "train_effective_fraction").values()
        alone = bool(label) and set(mine["options"] + mine["preset"]) == {options_text(shared) + preset}
        partners = statistics.fmean(fractions) if fractions else None
        rows.append({"method": method, "changed": label or "the preset", "alone": alone, "pairs": pairs,
                     "scores": scores[method, label], "n": len(values), "partners": partners})  # fmt: skip
    return rows, rivals


def ablation_table(experiment: Experiment, dataset: str, every: pd.DataFrame, preset: str) -> str:
    """Return the table of a dataset, or "" where it has no runs."""
    rows, rivals = ablation_rows(experiment, dataset, every, preset)
    if not rows:
        return ""
    metrics = list(rows[0]["scores"])
    decimals = decimals_for(v for row in rows for v in row["scores"][metrics[0]].values())
    body = [
        [
            names.method_title(row["method"]), f"**{row['changed']}**" if row["alone"] else row["changed"],
            str(row["n"]), *(mean_text(of_metric, decimals) for of_metric in row["scores"].values()),
            *(interval_text(pair, decimals) for pair in row["pairs"]),
            "—" if row["partners"] is None else f"{row['partners']:.3g}",
        ]
        for row in rows
    ]  # fmt: skip
    head = [names.dataset_title(dataset), "changed", "n", *map(names.metric_title, metrics), "change"]
    return markdown_table([*head, *(f"minus {names.method_title(m)}" for m in rivals), "partners"], body)


def ablation_csv(experiment: Experiment, every: pd.DataFrame, preset: str) -> str:
    """Return the rows of all datasets as CSV: means and deviations, and differences with their 95 % t intervals."""
    lines = []
    for dataset in experiment.datasets:
        rows, rivals = ablation_rows(experiment, dataset, every, preset)
        for row in rows:
            line = {"dataset": dataset, **{key: row[key] for key in ("method", "changed", "n")}}
            for metric, values in row["scores"].items():
                summary = summarise_values(list(values.values()))
                line |= {f"{metric}_mean": summary.mean, f"{metric}_std": summary.std}
            for name, pair in zip(("change", *(f"minus_{rival}" for rival in rivals)), row["pairs"], strict=True):
                ends = (pair.mean, pair.low, pair.high) if pair else (None,) * 3
                line |= dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))
            lines.append({**line, "partners": row["partners"]})
    return pd.DataFrame(lines).to_csv(index=False, lineterminator="\n")


def find_sweeps(experiment: Experiment, every: pd.DataFrame, preset: str) -> list[Sweep]:
    """Return the sweep of every dataset with two values or more, where one method's points change one option."""
    (method, option), metric, sweeps = swept_option(experiment), experiment.metrics[0], []
    for dataset in experiment.datasets if option else ():
        runs = runs_by_point(experiment, dataset, every, preset)
        swept = sweep_points(pd.concat([mine for key, mine in runs.items() if key[0] == method]), option, metric)
        lines = {key[0]: by_seed(mine, f"test_{metric}") for key, mine in runs.items()
                 if len(mine) and key[0] != method}  # fmt: skip
        if len(swept) > 1:
            sweeps.append(Sweep(names.dataset_title(dataset), option, metric, swept, lines))
    return sweeps


def published_ablations(results: Path = RESULTS) -> list[tuple[Experiment, str]]:
    """Return every experiment with points and every preset that has published runs."""
    ablations, every = [], table_runs(results)
    for experiment in (one for one in all_experiments() if one.points):
        presets = set(every.loc[every["experiment"] == experiment.name, "preset"])
        shown = presets & {"paper"} if changes_preset(experiment) else presets
        ablations += [(experiment, preset) for preset in sorted(shown)]
    return ablations


@writes
def ablation_files() -> dict[str, str]:
    """Return every ablation that has published runs, as CSV."""
    return {f"tables/{e.name}_{p}.csv": ablation_csv(e, table_runs(), p) for e, p in published_ablations()}
