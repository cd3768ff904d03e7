"""Curves of runs over their epochs, in results/curves a table for each method, and the figure of them."""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.figure import Figure

from cmixup.errors import InputError
from cmixup.files import checked, write_atomically
from scripts.driver.runs import HISTORY
from scripts.plan.selection import recorded_under, selected_methods
from scripts.records import names
from scripts.records.experiment import RESULTS, Experiment, all_experiments
from scripts.records.published import curves_file, published_reports
from scripts.records.records import options_text, read_csv, to_csv
from scripts.report.figures import method_looks, new_subplots
from scripts.report.rendering import draws

RUN = ("preset", "options", "seed")  # columns that tell the runs of a table apart
Rows = list[dict[str, str]]


@dataclass(frozen=True)
class Curve:
    """One run's history: `columns` have a value an epoch, by name (`epoch`, `train_loss`, `test_rmse`, ...)."""

    experiment: str
    dataset: str
    method: str
    preset: str
    seed: int
    columns: Mapping[str, list[float]]


def read_curves(reports: Sequence[Mapping[str, Any]], root: Path) -> list[Curve]:
    """Return the curves of these reports' runs, from `root/<run>/history.csv`."""
    return [_make_curve(report, read_csv(checked(root / report["run"] / HISTORY))) for report in reports]


@functools.cache
def published_curves(results: Path = RESULTS) -> list[Curve]:
    """Return the curves of all published runs that tracked a split."""
    read = functools.cache(_read_table)
    tracked = [r for r in published_reports(results) if r["config"]["train"].get("track")]
    return [_make_curve(report, read(curves_file(results, report))[_curve_key(report)]) for report in tracked]


def keep_curves(results: Path, histories: Iterable[tuple[Mapping[str, Any], Rows]]) -> None:
    """Write the histories of runs into the tables of their methods, beside other runs that are there."""
    tables: dict[Path, dict[tuple[str, ...], Rows]] = {}
    for report, rows in histories:
        path = curves_file(results, report)
        tables.setdefault(path, _read_table(path))[_curve_key(report)] = rows
    for path, runs in tables.items():
        lines = [{**dict(zip(RUN, key, strict=True)), **row} for key in sorted(runs) for row in runs[key]]
        write_atomically(path, to_csv(lines, list(dict.fromkeys(name for row in lines for name in row))))


def _curve_key(report: Mapping[str, Any]) -> tuple[str, ...]:
    return report["preset"], options_text(report["options"]), str(report["seed"])


def _read_table(path: Path) -> dict[tuple[str, ...], Rows]:
    runs: dict[tuple[str, ...], Rows] = {}
    for row in read_csv(path) if path.is_file() else ():
        values = {name: value for name, value in row.items() if name not in RUN}
        runs.setdefault(tuple(row[name] for name in RUN), []).append(values)
    return runs


def _make_curve(report: Mapping[str, Any], rows: Rows) -> Curve:
    about = {name: report[name] for name in ("experiment", "dataset", "method", "preset", "seed")}
    return Curve(**about, columns={name: [float(row[name]) for row in rows] for name in rows[0]})


@draws
def overfitting_figures() -> dict[str, Figure]:
    """Return the figure of every experiment and preset whose curves are published."""
    curves, figures = published_curves(), {}
    for experiment in all_experiments():
        for preset in sorted({c.preset for c in curves if c.experiment == experiment.name and experiment.figure}):
            figures[f"figures/{experiment.name}_{preset}.png"] = overfitting_figure(experiment, curves, preset)
    return figures


def overfitting_figure(experiment: Experiment, curves: Sequence[Curve], preset: str) -> Figure:
    """Draw test error, and its gap to the training error, over epochs; a line and band (± std) a method.

    Curves have columns `train_*` and `test_*` of the selection metric, scored on whole splits; those of other
    experiments and presets are left out.
    """
    curves = [
        c for c in curves if c.experiment == recorded_under(experiment, c.method, c.dataset) and c.preset == preset
    ]
    if not curves:
        raise InputError(f"experiment {experiment.name} has no finished run of preset {preset!r} to draw")
    present = [d for d in experiment.datasets if any(c.dataset == d for c in curves)]
    figure, axes = new_subplots(len(present), 2, figsize=(10, 3.2 * len(present)))
    for (left, right), dataset in zip(axes, present, strict=True):
        gaps: list[str] = []
        for method, look in method_looks(selected_methods(experiment, dataset, experiment.methods)).items():
            mine = [c.columns for c in curves if (c.dataset, c.method) == (dataset, method)]
            if not mine:
                continue
            metric = next(name for name in mine[0] if name.startswith("test_")).removeprefix("test_")
            test, train = (np.array([c[f"{split}_{metric}"] for c in mine]) for split in ("test", "train"))
            title, colour = names.method_title(method), look["color"]
            gaps.append(f"{title} {(test - train).mean(axis=0)[-1]:.4f}")
            for axis, values in ((left, test), (right, test - train)):
                mean, spread = values.mean(axis=0), values.std(axis=0, ddof=1) if len(mine) > 1 else 0.0
                axis.plot(mine[0]["epoch"], mean, color=colour, label=f"{title} (n = {len(mine)})")
                axis.fill_between(mine[0]["epoch"], mean - spread, mean + spread, color=colour, alpha=0.15, linewidth=0)
            left.set_ylabel(f"test {names.metric_title(metric)}")
            right.set_ylabel(f"test minus training {names.metric_title(metric)}")
        left.set_title(f"{names.dataset_title(dataset)}: test error", fontsize=10)
        right.set_title(f"test minus training error at the end:\n{', '.join(gaps)}", fontsize=10)
        for axis in (left, right):
            axis.set_xlabel("epoch")
            axis.grid(alpha=0.3)
        # The first epochs are far off and would flatten what matters.
        later = np.concatenate([line.get_ydata()[len(line.get_ydata()) // 10 :] for line in left.lines])
        left.set_ylim(0, 1.5 * np.quantile(later, 0.99))
        left.legend(frameon=False, fontsize=9)
    figure.suptitle("Errors of whole splits, without mixing; band: ± standard deviation over seeds", fontsize=10)
    figure.tight_layout()
    return figure
