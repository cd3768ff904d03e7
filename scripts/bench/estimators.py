"""The default `TabularRegressor` beside the defaults of other regressors, on the 30 tables of the study.

Example: python -m scripts.bench estimators tables=reserved models=tabular,lightgbm
"""

import importlib
import importlib.metadata
import importlib.util
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
import torch
from scipy.stats import loguniform, randint, uniform
from sklearn.base import clone
from sklearn.ensemble import VotingRegressor
from sklearn.model_selection import RandomizedSearchCV, ShuffleSplit
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from scripts.bench.clock import ESTIMATORS, SHORT, measured_seconds, store_rows, stored_rows, with_machine
from scripts.bench.tables import PART_OF, PARTS, categories_as_text, split_table, without_gaps
from scripts.config.arguments import Args
from scripts.report.rendering import fills
from scripts.report.result_table import markdown_table
from scripts.stats.intervals import Interval, clustered_interval

SPLITS = 3
COVERAGE = 0.9
BASE = "catboost"
CATBOOST = {"thread_count": 1, "verbose": 0, "allow_writing_files": False}
#: The distributions that random trials of CatBoost draw from.
TRIED = {
    "learning_rate": loguniform(0.01, 0.3), "depth": randint(3, 11), "l2_leaf_reg": loguniform(0.3, 30),
    "rsm": uniform(0.4, 0.6), "iterations": randint(200, 2001),
}  # fmt: skip
MODELS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "tabular": ("cmixup.sklearn", "TabularRegressor", {}),
    BASE: ("catboost", "CatBoostRegressor", {}),
    "tabular_catboost": ("cmixup.sklearn", "TabularRegressor", {"blend": "catboost"}),
    "catboost_5": ("catboost", "CatBoostRegressor", {}),
    "catboost_tuned": ("catboost", "CatBoostRegressor", {}),
    "networks": ("cmixup.sklearn", "TabularRegressor", {"blend": None}),
    "cmixup": ("cmixup.sklearn", "CMixupRegressor", {}),
    "lightgbm": ("lightgbm", "LGBMRegressor", {"n_jobs": 1, "verbose": -1}),
    "xgboost": ("xgboost", "XGBRegressor", {"n_jobs": 1, "enable_categorical": True}),
    "hist_gradient_boosting": ("sklearn.ensemble", "HistGradientBoostingRegressor", {}),
    "realmlp": ("pytabkit", "RealMLP_TD_Regressor", {"n_threads": 1, "device": "cpu"}),
    "realmlp_cv5": ("pytabkit", "RealMLP_TD_Regressor", {"n_threads": 1, "device": "cpu", "n_cv": 5}),
    "tabm": ("pytabkit", "TabM_D_Regressor", {"n_threads": 1, "device": "cpu"}),
    "tabular_gpu": ("cmixup.sklearn", "TabularRegressor", {"device": "cuda"}),
    "realmlp_gpu": ("pytabkit", "RealMLP_TD_Regressor", {"n_threads": 1, "device": "cuda"}),
    "tabm_gpu": ("pytabkit", "TabM_D_Regressor", {"n_threads": 1, "device": "cuda"}),
}
COLUMNS = ("part", "table", "split", "model", "log_error", "behind", "seconds", "version", "mixed", "coverage", "width")
KEYS = SHORT | {
    "tables": f"among {', '.join(PARTS)}; default all but fresh, on which nothing is chosen",
    "models": f"among {', '.join(MODELS)}; default all that this machine can run",
    "splits": f"of 0 to {SPLITS - 1}; default all",
}


def _catboost(model: str, x: pd.DataFrame, seed: int) -> Any:
    """Return CatBoost for features: of its defaults, the mean of five seeds, or the best of 20 random trials.

    These are compared on a fifth of the rows; the winner is fitted again to all.
    """
    catboost = importlib.import_module(BASE).CatBoostRegressor
    trees = catboost(random_state=seed, cat_features=tuple(x.select_dtypes("category")) or None, **CATBOOST)
    if model == "catboost_5":
        trees = VotingRegressor([(f"seed{k}", clone(trees).set_params(random_state=5 * seed + k)) for k in range(5)])
    elif model == "catboost_tuned":
        split = ShuffleSplit(1, test_size=0.2, random_state=seed)
        score = "neg_root_mean_squared_error"
        trees = RandomizedSearchCV(trees, TRIED, n_iter=20, cv=split, scoring=score, random_state=seed)
    return make_pipeline(FunctionTransformer(categories_as_text), trees)


def score_model(name: str, split: int, model: str) -> dict[str, Any]:
    """Return a row: log error, process seconds of the fit and version of a model.

    The error is the test RMSE in standard deviations, its log the mean over outputs. Of TabularRegressor the row also
    says whether it mixes, how many test labels its intervals hold, and how wide they are.
    """
    x, y, test, target = split_table(name, split)
    module, class_name, options = MODELS[model]
    if module == BASE:
        estimator = _catboost(model, x, split)
    else:
        blend = {"blend": _catboost(BASE, x, split)} if options.get("blend") == BASE else {}
        estimator = getattr(importlib.import_module(module), class_name)(random_state=split, **options | blend)
    if module == "pytabkit":
        x, test = without_gaps(x, test)
    if module != "cmixup.sklearn" and y.shape[1] > 1:
        estimator = MultiOutputRegressor(estimator)
    labels = y if y.shape[1] > 1 else y[:, 0]
    seconds = measured_seconds(lambda: estimator.fit(x, labels))
    errors = np.sqrt(np.mean((estimator.predict(test).reshape(len(target), -1) - target) ** 2, axis=0))
    log_error = float(np.log(errors / target.std(axis=0)).mean())
    package = module.partition(".")[0]
    version = getattr(importlib.import_module(package), "__version__", "") or importlib.metadata.version(package)
    extra: tuple[Any, ...] = ("", "", "")
    if model == "tabular":
        intervals = estimator.predict_interval(test, COVERAGE)
        extra = (int(estimator.bandwidth_ > 0), *interval_coverage(intervals, target))
    values = (PART_OF[name], name, split, model, round(log_error, 5), "", round(seconds, 2), version, *extra)
    return {column: str(value) for column, value in zip(COLUMNS, values, strict=True)}


def interval_coverage(ends: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Return means over outputs: the share of labels (n, d_y) in intervals (n, 2, ...), and their width in stds."""
    low, high = ends.reshape(len(y), 2, -1).transpose(1, 0, 2)
    width = (high - low).mean(axis=0) / y.std(axis=0)
    return round(float(((low <= y) & (y <= high)).mean()), 4), round(float(width.mean()), 4)


def run(args: Args) -> None:
    """Fit the models that are installed on each table and split in turn, and store each table's rows as they come.

    A table and split whose models are all recorded is not fitted again, so that a run that was stopped goes on;
    of others all models are, so that their seconds are of one time and machine.
    """
    short = args.switch("short")
    parts = args.names("tables", tuple(PARTS)) if "tables" in args else tuple(PARTS)[:2]
    tables = [table for part in parts for table in PARTS[part]][: 1 if short else None]
    splits = args.names("splits", tuple(map(str, range(SPLITS))))[: 1 if short else None]
    rows = {} if short else {(r["table"], r["split"], r["model"]): r for r in stored_rows("estimators")}
    models = []
    for model in args.names("models", tuple(MODELS)):
        package, _, options = MODELS[model]
        if not importlib.util.find_spec(package):
            print(f"{model} is skipped: {package} is not installed")
        elif options.get("device") != "cuda" or torch.cuda.is_available():
            models.append(model)
    for split, name in itertools.product(splits, tables):
        missing = any((name, split, model) not in rows for model in models)
        for model in models if missing else ():
            rows[name, split, model] = score_model(name, int(split), model)
            print(", ".join(rows[name, split, model].values()), flush=True)
        if base := rows.get((name, split, BASE)):
            for row in (row for key, row in rows.items() if key[:2] == (name, split)):
                row["behind"] = f"{float(row['log_error']) - float(base['log_error']):.5f}"
        if missing:
            store_rows(args, "estimators", rows.values(), COLUMNS)


#: The tables of estimators.csv by their column `part`; seconds are of the first that a model has.
PART_TITLES = {"fresh": "fresh", "reserved": "held out", "chosen_on": "used to choose the default"}


#: Models that have too few tables, or no others to compare their seconds with.
CSV_ALONE = ("tabm", "tabular_gpu", "realmlp_gpu")


def error_table(rows: Sequence[Mapping[str, str]]) -> str:
    """Return the table of test errors beside the base's, a row a model, and of the seconds of fits."""
    frame, body = pd.DataFrame(rows).astype({"behind": float, "seconds": float}), []
    parts = [part for part in PART_TITLES if part in set(frame["part"])]
    of_base = frame[frame["model"] == BASE].set_index(["table", "split"])["seconds"]
    for model, group in frame[~frame["model"].isin(CSV_ALONE)].groupby("model", sort=False):
        line = [str(model)]
        for part in parts:
            gaps = group[group["part"] == part].groupby("table")["behind"].mean()
            d = clustered_interval([100 * gap for gap in gaps], range(len(gaps))) if len(gaps) else None
            d = d or Interval(100 * gaps.mean(), math.nan, math.nan, 1)
            cell = f"{d.mean:+.1f} [{d.low:+.1f}, {d.high:+.1f}], {(gaps < 0).sum()} of {len(gaps)}"
            line.append(cell if len(gaps) else "—")
        first = min(group["part"], key=parts.index)
        seconds = group[group["part"] == first].set_index(["table", "split"])["seconds"]
        body.append([*line, *(f"{v:.1f}" for v in (seconds.median(), seconds.max(), (seconds / of_base).median()))])
    titles = [f"{PART_TITLES[part]}: log error, tables below" for part in parts]
    return markdown_table(["", *titles, "median fit, s", "longest, s", f"multiple of {BASE}'s"], body)


def scale_table(rows: Sequence[Mapping[str, str]]) -> str:
    """Return the table of large tables: errors beside the base's, seconds and memory of fits."""
    frame, body = pd.DataFrame(rows).set_index(["name", "model"]).astype(float), []
    for name in dict.fromkeys(frame.index.get_level_values("name")):
        fits, behind = frame.loc[name], 100 * (frame.loc[name, "log_error"] - frame.loc[(name, BASE), "log_error"])
        errors = [f"{behind[m]:+.1f}" if m in behind else "" for m in ("tabular", "realmlp", "xgboost")]
        seconds = " / ".join(f"{fits['seconds'].get(m, math.nan):.0f}" for m in ("tabular", BASE, "realmlp"))
        memory = " / ".join(f"{fits['megabytes'][m] / 1000:.1f}" for m in ("tabular", BASE))
        size = f"{fits['rows'][BASE]:,.0f} x {fits['columns'][BASE]:.0f}"
        body.append([f"{name}, {size}", *errors, seconds.replace("nan", "-"), memory])
    head = ["rows x columns", f"log error minus {BASE}'s, x 100: tabular", "realmlp", "xgboost",
            f"fit, s: tabular / {BASE} / realmlp", f"memory, GB: tabular / {BASE}"]  # fmt: skip
    return markdown_table(head, body)


@fills
def estimator_tables() -> dict[str, dict[str, str]]:
    """Return the tables of regressors; those of intervals and losses were measured once."""
    table = with_machine(error_table(stored_rows("estimators")), "estimators")
    return {ESTIMATORS: {"estimators": table, "scale": scale_table(stored_rows("scale"))}}
