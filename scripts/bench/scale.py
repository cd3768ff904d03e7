"""Regressors on many rows, all with one thread: the largest tables of the study at all their rows, and a grid of sizes.

Three quarters of the rows of a table are trained on; the grid is made data (Friedman 1991). Each fit has a process of
its own, whose memory is measured; the record is written after each, so that a run that was stopped goes on.

Example: python -m scripts.bench scale models=tabular,catboost data=grid
"""

import importlib.util
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from sklearn.datasets import make_friedman1

from scripts.bench.clock import ESTIMATORS, SHORT, store_rows, stored_rows, with_machine
from scripts.bench.estimators import BASE, MODELS, fit_model
from scripts.bench.tables import Halves, table_halves
from scripts.config.arguments import Args
from scripts.report.figures import legend_below, new_subplots
from scripts.report.rendering import draws, fills
from scripts.report.result_table import markdown_table

#: The ten of the study's tables that have the most rows, the smallest first.
TABLES = ("motorway_nox", "loan_interest", "life_expectancy", "teenager_weight", "atlantic_storm_wind",
          "us_wages_1988", "party_thermometers", "diamond_prices", "film_ratings", "flight_delay")  # fmt: skip
WIDTHS = (10, 50, 200)
GRID = [f"{rows} x {columns}" for rows in (1_000, 10_000, 100_000) for columns in WIDTHS]
COMPARED = ("tabular", BASE, "lightgbm", "xgboost", "hist_gradient_boosting", "realmlp")
COLUMNS = ("data", "name", "model", "rows", "columns", "log_error", "seconds", "megabytes")
KEYS = SHORT | {"data": "tables or grid; default both", "models": f"among {', '.join(COMPARED)}; default all"}


def measure(data: str, name: str, model: str) -> dict[str, Any]:
    """Return the row of one fit, the peak memory of whose process is in 1e6 bytes."""
    import resource  # there is none on Windows

    halves = grid_halves(name) if data == "grid" else table_halves(name, 0, sys.maxsize)
    _, _, log_error, seconds = fit_model(model, halves, 0)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    values = (data, name, model, *halves[0].shape, f"{log_error:.5f}", f"{seconds:.2f}", f"{memory:.0f}")
    return dict(zip(COLUMNS, map(str, values), strict=True))


def grid_halves(name: str) -> Halves:
    """Return "ROWS x COLUMNS" of made data to train on, and as many rows as 4,000 to test on."""
    rows, columns = map(int, name.split(" x "))
    x, y = make_friedman1(rows + 4_000, columns, noise=1.0, random_state=0)
    frame, labels = pd.DataFrame(x).rename(columns=str), y[:, None]
    return frame[:rows], labels[:rows], frame[rows:], labels[rows:]


def run(given: Args) -> None:
    """Fit the models that are installed on tables and grid, and store the rows as they come."""
    short = given.switch("short")
    names = {"tables": TABLES[: 1 if short else None], "grid": GRID[: 1 if short else None]}
    record = {} if short else {(r["data"], r["name"], r["model"]): r for r in stored_rows("scale")}
    for data in given.listed("data", tuple(names)):
        for name in names[data]:
            for model in given.listed("models", COMPARED):
                if (data, name, model) in record or not importlib.util.find_spec(MODELS[model][0]):
                    continue
                with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
                    record[data, name, model] = process.submit(measure, data, name, model).result()
                print(", ".join(record[data, name, model].values()), flush=True)
                store_rows(given, "scale", record.values(), COLUMNS)


def numbers() -> pd.DataFrame:
    """Return the record with numbers where they are."""
    frame = pd.DataFrame(stored_rows("scale"))
    return frame.astype({"rows": int, "columns": int, "log_error": float, "seconds": float, "megabytes": float})


@fills
def scale_table() -> dict[str, dict[str, str]]:
    """Return the table of the largest tables: errors beside CatBoost's, seconds and memory of fits."""
    frame = numbers()
    fits = frame[frame["data"] == "tables"].set_index(["name", "model"])
    body = []
    for name in (name for name in TABLES if (name, BASE) in fits.index):
        of_models = fits.loc[name].reindex(COMPARED)
        behind = 100 * (of_models["log_error"] - of_models["log_error"][BASE])
        errors = ["" if np.isnan(behind[m]) else f"{behind[m]:+.1f}" for m in ("tabular", "realmlp", "xgboost")]
        seconds = " / ".join(f"{of_models['seconds'][m]:.0f}" for m in ("tabular", BASE, "realmlp")).replace("nan", "-")
        memory = " / ".join(f"{of_models['megabytes'][m] / 1000:.1f}" for m in ("tabular", BASE))
        size = f"{of_models['rows'][BASE]:,.0f} x {of_models['columns'][BASE]:.0f}"
        body.append([f"{name}, {size}", *errors, seconds, memory])
    against = f"log error minus {BASE}'s, x 100"
    head = ["rows x columns", f"{against}: tabular", "realmlp", "xgboost", f"fit, s: tabular / {BASE} / realmlp",
            f"memory, GB: tabular / {BASE}"]  # fmt: skip
    return {ESTIMATORS: {"scale": with_machine(markdown_table(head, body), "scale")}}


@draws
def scale_picture() -> dict[str, Figure]:
    """Return the plot of fit seconds over rows, a panel for each number of columns."""
    frame = numbers()
    grid = frame[frame["data"] == "grid"]
    figure, axes = new_subplots(1, len(WIDTHS), (3.2 * len(WIDTHS), 3.2), sharey=True)
    for axis, columns in zip(axes.flat, WIDTHS, strict=True):
        for model in (model for model in COMPARED if model in set(grid["model"])):
            line = grid[(grid["columns"] == columns) & (grid["model"] == model)].sort_values("rows")
            axis.plot(line["rows"], line["seconds"], marker="o", label=model)
        axis.set(xscale="log", yscale="log", xlim=(700, 150_000), xlabel="rows", title=f"{columns} columns")
    axes.flat[0].set_ylabel("process seconds of a fit")
    legend_below(figure, {line.get_label(): line for line in axes.flat[0].lines})
    return {"benchmarks/scale.png": figure}
