"""`TabularRegressor` beside other regressors: numbers for pages and pictures, and sentences with them."""

from __future__ import annotations

import math

import pandas as pd

from scripts.report.evidence import Evidence, published_evidence
from scripts.report.rendering import fills
from scripts.report.result_table import markdown_table
from scripts.stats.intervals import Interval, clustered_interval, interval_text

ESTIMATORS, SCIKIT_LEARN, BASE = "benchmarks/estimators.csv", "docs/scikit_learn.md", "catboost"
#: The tables that were opened when the defaults were decided; and below how many percent no difference is one.
RESERVE, MARGIN = "fresh", 1.0


def rival_numbers(e: Evidence, model: str, part: str = RESERVE, base: str = BASE) -> tuple[float, Interval, int]:
    """Return a model's median seconds of a fit, and its error minus the base's in percent, on tables: the fresh ones.

    And on how many of these it is below 0.
    """
    frame = e.frame(e.results / ESTIMATORS)
    fits = frame[frame["part"] == part].pivot_table(["log_error", "seconds"], ["table", "split"], "model")
    differences = (fits["log_error"][model] - fits["log_error"][base]).dropna()
    below = (differences.groupby("table").mean() < 0).sum()
    return fits["seconds"][model].median(), percent_change(differences), below


def percent_change(differences: pd.Series) -> Interval:
    """Return the mean over tables, in percent, and its interval, of log ratios on several splits of each."""
    means = differences.groupby("table").mean().to_list()
    d = clustered_interval(means, range(len(means)))
    assert d
    mean, low, high = (100 * math.expm1(end) for end in (d.mean, d.low, d.high))
    return Interval(mean, low, high, d.n)


@fills
def blended_with() -> dict[str, dict[str, str]]:
    """Return how the error of a model of the user changes once networks stand beside it."""
    e, body = published_evidence(), []
    for part, what in {RESERVE: "fresh", "reserved": "held out"}.items():
        change = rival_numbers(e, "tabular_catboost", part)[1]
        body.append(["CatBoost", f"{change.n} {what}", interval_text(change, 1)])
    frame = e.frame(e.results / "benchmarks/blend.csv").dropna(subset=["model"]).astype({"fits": str})
    fits = frame.pivot_table("log_error", ["part", "model", "table"], "fits")
    changes = (fits["3"] - fits["alone"]).dropna().loc["chosen_on"]
    for model, name in {"catboost": "CatBoost", "lightgbm": "LightGBM", "ridge": "ridge regression"}.items():
        change = percent_change(changes[model])
        body.append([name, f"{change.n} seen", interval_text(change, 1)])
    return {SCIKIT_LEARN: {"blend": markdown_table(("model", "tables", "change, %"), body, left=2)}}


def regressor_reserve(e: Evidence) -> str:
    """How the regressor, and CatBoost with networks beside it, compare with CatBoost on the fresh tables."""
    words = []
    for model in ("tabular", "tabular_catboost"):
        _, d, below = rival_numbers(e, model)
        word = "higher" if d.low > 0 else "lower" if d.high < 0 else "not shown to differ"
        word = f"the same within {MARGIN:g} %" if -MARGIN < d.low <= 0 <= d.high < MARGIN else word
        words.append(f"on {below} of {d.n} tables, and is {word} on average")
    _, five, _ = rival_numbers(e, "tabular_catboost", base="catboost_5")
    return (
        f"`TabularRegressor`'s RMSE is below CatBoost's {words[0]}. With CatBoost in `blend=` it is below {words[1]}. "
        f"The blend's RMSE differs from five CatBoosts' mean by {interval_text(five, 1)} % on one split"
    )


def regressor_mixed(e: Evidence) -> str:
    """How often the regressor mixed."""
    mixed = list(e.rows(ESTIMATORS, "mixed", part=RESERVE, model="tabular").values.values())
    splits = len(mixed) // rival_numbers(e, "tabular")[1].n
    return (f"`TabularRegressor` mixes where its validation says so: in {sum(one > 0 for one in mixed)} of the "
            f"{len(mixed)} fits, on {splits} splits a table")  # fmt: skip
