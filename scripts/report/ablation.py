"""Ablations: a page has a row for each point that an experiment changes of its preset; those of one option: a sweep."""

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
from scripts.records.run_tables import by_seed, option_words
from scripts.report.rendering import writes
from scripts.report.result_table import bullets, markdown_page, markdown_table, missing_part
from scripts.report.sweep import Sweep, option_value, sweep_points
from scripts.stats.intervals import paired_or_none, summarise_values

LEGEND = """Means and standard deviations (std) over n seeds. Change: difference of the test score to the method's first
row, paired by seed, mean [95 % t interval]; minus ERM and its kind: to it with the same change, or without any. No
interval is corrected for how many there are. Partners: effective partners as a share of the training rows; 1 is mixup,
0 is ERM."""


def runs_by_point(
    experiment: Experiment, dataset: str, every: pd.DataFrame, preset: str
) -> dict[tuple[str, str], pd.DataFrame]:
    """Return the runs of every method and point of a dataset, by method and label, in the order of the experiment.

    A method without points has the label "", and of its runs those with the seeds of the others' points.
    """
    runs, shared = dict[tuple[str, str], pd.DataFrame](), shared_options(experiment)
    for method in selected_methods(experiment, dataset, experiment.methods):
        under = recorded_under(experiment, method, dataset)
        cell_runs = every[(every["experiment"] == under) & (every["dataset"] == dataset) & (every["method"] == method)]
        for point in points_of(experiment, dataset, method):
            values = {"preset": preset, **point.options}
            known = values.keys() | shared.keys()
            matches = [
                option_words(run["options"]).keys() <= known
                and all(option_value(run, key) == (tuple(v) if isinstance(v, list) else v) for key, v in values.items())
                for run in cell_runs.to_dict("records")
            ]
            runs[method, point.label] = cell_runs[np.array(matches, bool)]
    seeds = {seed for (_, label), cell_runs in runs.items() if label for seed in cell_runs["seed"]}
    return {key: cell_runs if key[1] else cell_runs[cell_runs["seed"].isin(seeds)] for key, cell_runs in runs.items()}


def ablation_page(experiment: Experiment, rows: pd.DataFrame, preset: str, missing: Sequence[str] = ()) -> str:
    """Return the page of an `ablation_frame`."""
    about = f" ({experiment.about_preset[preset]})" if preset in experiment.about_preset else ""
    title = experiment.title if changes_preset(experiment) else f"{experiment.title}, preset {preset}{about}"
    body = rows.map(lambda cell: "" if pd.isna(cell) else f"{cell:.4g}" if isinstance(cell, float) else str(cell))
    for name in [column.removesuffix("_low") for column in rows if column.endswith("_low")]:
        body[name] += " [" + body.pop(f"{name}_low") + ", " + body.pop(f"{name}_high") + "]"
    cells = body.replace(" [, ]", "—").to_numpy().tolist()
    table = [markdown_table(list(body), cells, left=3)] if cells else []
    notes = [bullets(experiment.notes)] if experiment.notes else []
    return markdown_page(f"# {title}", LEGEND, *table, *missing_part(missing), *notes)


def ablation_frame(experiment: Experiment, every: pd.DataFrame, preset: str) -> pd.DataFrame:
    """Return a row for each dataset, method and point that has runs.

    It has means and deviations, and differences with their 95 % t intervals: to the method's first row, then to each
    rival, with the same change or without any.
    """
    rows = []
    for dataset in experiment.datasets:
        runs = runs_by_point(experiment, dataset, every, preset)
        metrics = experiment.metrics_of.get(dataset, experiment.metrics)
        main = {key: by_seed(point_runs, f"test_{metrics[0]}") for key, point_runs in runs.items()}
        first = {method: (method, label) for method, label in reversed(runs)}
        rivals = [method for method, label in runs if not label] or experiment.methods[:1]
        for (method, label), point_runs in ((key, point_runs) for key, point_runs in runs.items() if len(point_runs)):
            values = main[method, label]
            about = {"dataset": dataset, "method": method, "changed": label or "the preset"}
            row: dict[str, Any] = {**about, "n": len(values)}
            for metric in metrics:
                summary = summarise_values(list(by_seed(point_runs, f"test_{metric}").values()))
                row |= {f"{metric}_mean": summary.mean, f"{metric}_std": summary.std}
            beside = {f"minus_{m}": (m, label) if (m, label) in runs else first[m] for m in rivals}
            for name, other in {"change": first[method], **beside}.items():
                pair = None if other == (method, label) else paired_or_none(values, main[other])
                ends = (pair.mean, pair.low, pair.high) if pair else (None,) * 3
                row |= dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))
            fractions = by_seed(point_runs, "train_effective_fraction").values()
            rows.append({**row, "partners": statistics.fmean(fractions) if fractions else None})
    return pd.DataFrame(rows)


def find_sweeps(experiment: Experiment, every: pd.DataFrame, preset: str) -> list[Sweep]:
    """Return the sweep of every dataset with two values or more, where one method's points change one option."""
    (method, option), metric, sweeps = swept_option(experiment), experiment.metrics[0], []
    for dataset in experiment.datasets if option else ():
        runs = runs_by_point(experiment, dataset, every, preset)
        swept = sweep_points(pd.concat([group for key, group in runs.items() if key[0] == method]), option, metric)
        lines = {key[0]: by_seed(group, f"test_{metric}") for key, group in runs.items()
                 if len(group) and key[0] != method}  # fmt: skip
        if len(swept) > 1:
            sweeps.append(Sweep(names.dataset_title(dataset), option, metric, swept, lines))
    return sweeps


def published_ablations(results: Path = RESULTS) -> list[tuple[Experiment, str]]:
    """Return every experiment with points and every preset that has published runs."""
    ablations, runs = [], table_runs(results)
    for experiment in (experiment for experiment in all_experiments() if experiment.points):
        presets = set(runs.loc[runs["experiment"] == experiment.name, "preset"])
        ablation_presets = presets & {"paper"} if changes_preset(experiment) else presets
        ablations += [(experiment, preset) for preset in sorted(ablation_presets)]
    return ablations


@writes
def ablation_files() -> dict[str, str]:
    """Return every ablation that has published runs, as CSV."""
    ablations = {(e.name, preset): ablation_frame(e, table_runs(), preset) for e, preset in published_ablations()}
    to_text = {"index": False, "lineterminator": "\n"}
    return {f"tables/{name}_{preset}.csv": rows.to_csv(**to_text) for (name, preset), rows in ablations.items()}
