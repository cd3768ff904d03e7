"""Curves of runs over their epochs, in results/curves a table for each method, and the figure of them."""

from collections.abc import Iterable
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from cmixup.errors import InputError
from cmixup.files import checked, write_atomically
from scripts.driver.runs import HISTORY
from scripts.plan.selection import recorded_under, selected_methods
from scripts.records import names
from scripts.records.experiment import RESULTS, Experiment, load_experiment
from scripts.records.run_tables import Report, options_text
from scripts.report.figures import method_looks, new_subplots
from scripts.report.rendering import draws

RUN = ["preset", "options", "seed"]  # columns that tell the runs of a table apart
PLACE = ("experiment", "dataset", "method")  # of a table


def read_curves(reports: Iterable[Report], root: Path) -> pd.DataFrame:
    """Return the histories of these reports' runs, from `root/<run>/history.csv`, a row an epoch."""
    files = [(report, checked(root / report["run"] / HISTORY)) for report in reports]
    return pd.concat([pd.read_csv(path).assign(**{key: report[key] for key in (*PLACE, "preset", "seed")}, options="")
                      for report, path in files])  # fmt: skip


def published_curves(results: Path = RESULTS) -> pd.DataFrame:
    """Return the curves of all published runs that tracked a split, a row an epoch."""
    frames = []
    for path in sorted((results / "curves").glob("*/*/*.csv")):
        experiment, dataset = path.parts[-3:-1]
        rows = pd.read_csv(path, dtype={"options": str}).fillna({"options": ""})
        frames.append(rows.assign(experiment=experiment, dataset=dataset, method=path.stem))
    return pd.concat(frames)


def keep_curves(results: Path, histories: Iterable[tuple[Report, Path]]) -> None:
    """Write the histories of runs into the tables of their methods, beside other runs that are there."""
    tables: dict[Path, dict[tuple[str, ...], pd.DataFrame]] = {}
    for report, history in histories:
        path = results.joinpath("curves", *(report[key] for key in PLACE)).with_suffix(".csv")
        if path not in tables:
            old = pd.read_csv(path, dtype=str, keep_default_na=False) if path.is_file() else pd.DataFrame(columns=RUN)
            tables[path] = dict(list(old.groupby(RUN, sort=False)))
        key = report["preset"], options_text(report["options"]), str(report["seed"])
        rows = pd.read_csv(history, dtype=str, keep_default_na=False)
        tables[path][key] = pd.DataFrame([key] * len(rows), columns=RUN).join(rows)
    for path, runs in tables.items():
        rows = pd.concat([runs[key] for key in sorted(runs)])
        write_atomically(path, rows.to_csv(index=False, lineterminator="\n"))


@draws
def overfitting_figures() -> dict[str, Figure]:
    """Return the figure of every preset whose curves are published."""
    experiment, curves = load_experiment("figure_overfitting"), published_curves()
    presets = sorted(set(curves.loc[curves["experiment"] == experiment.name, "preset"]))
    return {f"figures/{experiment.name}_{p}.png": overfitting_figure(experiment, curves, p) for p in presets}


def overfitting_figure(experiment: Experiment, curves: pd.DataFrame, preset: str) -> Figure:
    """Draw test error, and its gap to the training error, over epochs; a line and band (± std) a method.

    Curves have columns `train_*` and `test_*` of the selection metric, scored on whole splits; those of other
    experiments and presets are left out.
    """
    curves = curves[curves["preset"] == preset]
    cells = dict(list(curves.groupby(["experiment", "dataset", "method"])))
    present = [d for d in experiment.datasets if any(dataset == d for _, dataset, _ in cells)]
    if not present:
        raise InputError(f"experiment {experiment.name} has no finished run of preset {preset!r} to draw")
    figure, axes = new_subplots(len(present), 2, figsize=(10, 3.2 * len(present)))
    for (left, right), dataset in zip(axes, present, strict=True):
        gaps: list[str] = []
        for method, look in method_looks(selected_methods(experiment, dataset, experiment.methods)).items():
            curve = cells.get((recorded_under(experiment, method, dataset), dataset, method))
            if curve is None:
                continue
            curve = curve.dropna(axis="columns")
            metric = next(name for name in curve if name.startswith("test_")).removeprefix("test_")
            wide = curve.pivot_table([f"test_{metric}", f"train_{metric}"], ["options", "seed"], "epoch")
            test, train = (wide[f"{split}_{metric}"].to_numpy() for split in ("test", "train"))
            epochs, n = sorted(set(curve["epoch"])), len(wide)
            title, colour = names.method_title(method), look["color"]
            gaps.append(f"{title} {(test - train).mean(axis=0)[-1]:.4f}")
            for axis, values in ((left, test), (right, test - train)):
                mean, spread = values.mean(axis=0), values.std(axis=0, ddof=1) if n > 1 else 0.0
                axis.plot(epochs, mean, color=colour, label=f"{title} (n = {n})")
                axis.fill_between(epochs, mean - spread, mean + spread, color=colour, alpha=0.15, linewidth=0)
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
