"""Regressors on many rows, all with one thread: the largest tables of the study at all their rows.

Three quarters of the rows of a table are trained on. Each fit has a process of its own, whose memory is measured. The
record is written after each, so that a run that was stopped goes on.

Example: python -m scripts.bench scale models=tabular,catboost
"""

import importlib.util
import multiprocessing
import sys
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pandas as pd

from scripts.bench.clock import ESTIMATORS, SHORT, store_rows, stored_rows, with_machine
from scripts.bench.estimators import BASE, MODELS, fit_model
from scripts.bench.tables import table_halves
from scripts.config.arguments import Args
from scripts.report.rendering import fills
from scripts.report.result_table import markdown_table

#: The ten of the study's tables that have the most rows, the smallest first.
TABLES = ("motorway_nox", "loan_interest", "life_expectancy", "teenager_weight", "atlantic_storm_wind",
          "us_wages_1988", "party_thermometers", "diamond_prices", "film_ratings", "flight_delay")  # fmt: skip
COMPARED = ("tabular", BASE, "lightgbm", "xgboost", "hist_gradient_boosting", "realmlp")
COLUMNS = ("name", "model", "rows", "columns", "log_error", "seconds", "megabytes")
KEYS = SHORT | {"models": f"among {', '.join(COMPARED)}; default all"}


def measure(name: str, model: str) -> dict[str, str]:
    """Return the row of one fit, the peak memory of whose process is in 1e6 bytes."""
    import resource  # there is none on Windows

    halves = table_halves(name, 0, sys.maxsize)
    _, _, log_error, seconds = fit_model(model, halves, 0)
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    values = (name, model, *halves[0].shape, f"{log_error:.5f}", f"{seconds:.2f}", f"{memory:.0f}")
    return dict(zip(COLUMNS, map(str, values), strict=True))


def run(given: Args) -> None:
    """Fit the models that are installed on each table, and store the rows as they come."""
    short = given.switch("short")
    record = {} if short else {(r["name"], r["model"]): r for r in stored_rows("scale")}
    for name in TABLES[: 1 if short else None]:
        for model in given.listed("models", COMPARED):
            if (name, model) in record or not importlib.util.find_spec(MODELS[model][0]):
                continue
            with ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as process:
                record[name, model] = process.submit(measure, name, model).result()
            print(", ".join(record[name, model].values()), flush=True)
            store_rows(given, "scale", record.values(), COLUMNS)


@fills
def scale_table() -> dict[str, dict[str, str]]:
    """Return the table of errors beside CatBoost's, and of the seconds and memory of fits."""
    frame = pd.DataFrame(stored_rows("scale")).set_index(["name", "model"]).astype(float)
    body = []
    for name in (name for name in TABLES if (name, BASE) in frame.index):
        of_models = frame.loc[name].reindex(COMPARED)
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
