"""How many new labels intervals hold, and how wide they are: `CMixupRegressor` beside conformalised trees, 30 tables.

Its own come from the fits of `estimators`; here the others are fitted.

Example: python -m scripts.bench intervals tables=reserved
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from sklearn.ensemble import HistGradientBoostingRegressor

from cmixup.sampling.inputs import Floats
from scripts.bench.clock import SHORT, put_page, store_figures, store_file
from scripts.bench.estimators import BASE, COVERAGE, MODELS, PARTS, as_taken, interval_coverage, table_halves
from scripts.config.arguments import Args
from scripts.records.experiment import RESULTS
from scripts.records.records import read_csv, to_csv
from scripts.records.register import draws
from scripts.records.stats import clustered_interval
from scripts.records.tables import markdown_rows
from scripts.report.palette import COLOURS, SERIES

SPLIT = 0
KEYS = SHORT | {"tables": "chosen_on or reserved; default both", "page": "1 only makes the page anew; default 0"}
COLUMNS = ("part", "table", "model", "coverage", "width")
WORDS = {
    "cmixup": "`CMixupRegressor().predict_interval`, CV+ of its members",
    "hist_quantiles": "`HistGradientBoostingRegressor`, two quantile losses",
    "hist_conformal": "the same, conformalised (CQR)",
    "catboost_deviation": "CatBoost `RMSEWithUncertainty`, normal quantiles",
    "catboost_conformal": "the same, conformalised (residuals in its deviations)",
}
TITLES = {
    "cmixup": "CMixupRegressor", "hist_quantiles": "HistGradientBoosting,\nquantiles",
    "hist_conformal": "HistGradientBoosting,\nconformalised", "catboost_deviation": "CatBoost, normal",
    "catboost_conformal": "CatBoost,\nconformalised",
}  # fmt: skip
ABOUT = (
    f"Intervals that shall hold {COVERAGE:.0%} of new labels, on the 30 tables of [the regressors](estimators.md), "
    f"split {SPLIT}. Trees are trained on three quarters of the training rows and conformalised on the others (Romano, "
    "Patterson and Candes 2019; Papadopoulos et al. 2008), `CMixupRegressor` takes its own held-out rows. Coverage: "
    "share of test labels inside. Width: in standard deviations of the test labels. Both are means over outputs, then "
    "over tables, with a 95 % interval over tables. Times: the geometric mean over tables of a width as a multiple of "
    "`CMixupRegressor`'s on the same table; who covers less has narrower ones. `intervals.csv` has every table."
)


def score_quantile(scores: Floats) -> float:
    """Return the score that a share of `COVERAGE` of new ones stays below: of k the ceil((k + 1) share)-th smallest."""
    rank = math.ceil((len(scores) + 1) * COVERAGE - 1e-9)
    return float(np.sort(scores)[min(rank, len(scores)) - 1])


def of_output(x: pd.DataFrame, y: Floats, test: pd.DataFrame) -> dict[str, Floats]:
    """Return intervals (n, 2) of the test rows by each way, for labels (N,)."""
    order = np.random.default_rng(SPLIT).permutation(len(x))
    train, rest = np.sort(order[len(x) // 4 :]), np.sort(order[: len(x) // 4])
    tail, found = (1 - COVERAGE) / 2, {}
    both = []
    for level in (tail, 1 - tail):
        options: dict[str, Any] = {"categorical_features": "from_dtype", "random_state": SPLIT}
        model = HistGradientBoostingRegressor(loss="quantile", quantile=level, **options).fit(x.iloc[train], y[train])
        both.append([model.predict(part) for part in (x.iloc[rest], test)])
    low, high = ([side[k] for side in both] for k in (0, 1))
    wider = score_quantile(np.maximum(low[0] - y[rest], y[rest] - low[1]))
    found["hist_quantiles"] = np.stack(high, axis=1)
    found["hist_conformal"] = np.stack([high[0] - wider, high[1] + wider], axis=1)

    module, kind, options = MODELS[BASE]
    boosting = getattr(importlib.import_module(module), kind)
    model = boosting(loss_function="RMSEWithUncertainty", random_state=SPLIT, **options)
    words = as_taken(BASE, x)
    model.fit(words.iloc[train], y[train], cat_features=list(x.select_dtypes("category")))
    means = [model.predict(part) for part in (words.iloc[rest], as_taken(BASE, test))]  # of mean and variance
    (mean, deviation), (ahead, spread) = ((part[:, 0], np.sqrt(part[:, 1])) for part in means)
    normal, own = 1.6448536269514722, score_quantile(np.abs(y[rest] - mean) / deviation)
    for name, times in (("catboost_deviation", normal), ("catboost_conformal", own)):
        found[name] = np.stack([ahead - times * spread, ahead + times * spread], axis=1)
    return found


def measure_table(name: str) -> list[dict[str, str]]:
    """Return the lines of a table."""
    x, y, test, target = table_halves(name, SPLIT)
    each = [of_output(x, column, test) for column in y.T]
    part = next(part for part, names in PARTS.items() if name in names)
    lines = [
        (part, name, model, *interval_coverage(np.stack([own[model] for own in each], axis=2), target))
        for model in each[0]
    ]
    return [dict(zip(COLUMNS, map(str, line), strict=True)) for line in lines]


def with_own(rows: Sequence[Mapping[str, str]], fits: Sequence[Mapping[str, str]]) -> list[dict[str, str]]:
    """Return the lines of trees, and those that the fits of `CMixupRegressor` have in the record of `estimators`."""
    own = [row for row in fits if row["model"] == "cmixup" and row["split"] == str(SPLIT) and row.get("coverage")]
    return [{column: row[column] for column in COLUMNS} for row in (*own, *rows)]


def report_table(rows: Sequence[Mapping[str, str]]) -> list[str]:
    """Return the table of the page."""
    frame = pd.DataFrame(rows).astype({"coverage": float, "width": float})
    wide, body = frame[frame["model"] == "cmixup"].set_index("table")["width"], []
    for model, what in WORDS.items():
        own = frame[frame["model"] == model]
        if own.empty:
            continue
        spans = [_mean_span(100 * own["coverage"], 1), _mean_span(own["width"], 2)]
        ratio = np.log(own.set_index("table")["width"] / wide).dropna()
        found = clustered_interval(ratio.to_list(), range(len(ratio)))
        mean, *ends = (f"{math.exp(v):.2f}" for v in ((found.mean, found.low, found.high) if found else [0.0]))
        spans.append(f"{mean} [{', '.join(ends)}]" if model != "cmixup" and ends else "1")
        low = own.loc[own["coverage"].idxmin()]
        worst = f"{100 * low['coverage']:.1f} ({low['table']})"
        body.append([what, str(len(own)), *spans, worst, str((own["coverage"] < 0.8).sum())])
    head = ["", "tables", "coverage, %", "width", "times", "least coverage, %", "tables below 80 %"]
    return markdown_rows(head, body)


def _mean_span(values: pd.Series, digits: int) -> str:
    """Return a mean over tables with its interval."""
    found = clustered_interval(values.to_list(), range(len(values)))
    spread = f" [{found.low:.{digits}f}, {found.high:.{digits}f}]" if found else ""
    return f"{values.mean():.{digits}f}{spread}"


@draws("results/benchmarks/intervals.csv", "results/benchmarks/estimators.csv")
def published_figures() -> dict[str, Figure]:
    """Return the figure of the published measurements, by its path below results/."""
    folder = RESULTS / "benchmarks"
    if not (folder / "intervals.csv").exists():
        return {}
    rows = with_own(read_csv(folder / "intervals.csv"), read_csv(folder / "estimators.csv"))
    return {"benchmarks/intervals.png": coverage_picture(rows)}


def coverage_picture(rows: Sequence[Mapping[str, str]]) -> Figure:
    """Draw coverage and width of each way, a point a table, with their means."""
    frame = pd.DataFrame(rows).astype({"coverage": float, "width": float})
    names = [name for name in WORDS if (frame["model"] == name).any()][::-1]
    figure = Figure(figsize=(9, 0.55 * len(names) + 1.4), layout="constrained")
    sides = figure.subplots(1, 2, sharey=True)
    for axes, column, unit in zip(sides, ("coverage", "width"), ("%", "standard deviations of labels"), strict=True):
        for place, name in enumerate(names):
            word, colour = TITLES[name], COLOURS.get(name, SERIES[place % len(SERIES)])
            values = frame.loc[frame["model"] == name, column].to_numpy() * (100 if column == "coverage" else 1)
            shift = np.linspace(-0.25, 0.25, len(values))
            axes.plot(values, place + shift, "o", ms=3.5, alpha=0.7, color=colour, label=word, gid=word)
            axes.plot([values.mean()] * 2, [place - 0.35, place + 0.35], "-", color=colour, lw=2, gid=word)
        axes.set(xlabel=f"{column}, {unit}", title=f"{column} on each table; bar: mean")
        axes.grid(visible=True, axis="x", alpha=0.3)
    sides[0].axvline(100 * COVERAGE, color="0.4", ls="--", lw=1)
    sides[1].set_xlim(left=0)
    sides[0].set_yticks(range(len(names)), [TITLES[name] for name in names])
    return figure


def run(given: Args) -> None:
    """Fit the trees, and put page and picture of all ways into the record."""
    short, path = given.switch("short"), RESULTS / "benchmarks" / "intervals.csv"
    rows = {(r["table"], r["model"]): r for r in (read_csv(path) if path.exists() and not short else [])}
    tables = [table for part in given.listed("tables", tuple(PARTS)) for table in PARTS[part]]
    tables = [] if given.switch("page") else tables
    for name in tables[:1] if short else tables:
        for row in measure_table(name):
            rows[name, row["model"]] = row
            print(", ".join(row.values()), flush=True)
    store_file(given, "intervals.csv", to_csv(rows.values(), COLUMNS))
    if not short:
        whole = with_own(list(rows.values()), read_csv(RESULTS / "benchmarks" / "estimators.csv"))
        store_figures(published_figures())
        look = "![Coverage and width of the intervals of each way, a point a table](intervals.png)"
        put_page(given, "intervals", "How many labels intervals hold", [ABOUT, report_table(whole), look])
