"""Sentences with numbers in README and docs/: on the paper, bandwidths, and `TabularRegressor`."""

from __future__ import annotations

import math

import pandas as pd

from scripts.report.evidence import Evidence, published_evidence, require, sentence
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
    return fits["seconds"][model].median(), in_percent(over_tables(differences)), below


def over_tables(differences: pd.Series) -> Interval:
    """Return the mean and the interval over tables of differences on several splits of each."""
    means = differences.groupby("table").mean().to_list()
    interval = clustered_interval(means, range(len(means)))
    assert interval
    return interval


def in_percent(d: Interval) -> Interval:
    """Return an interval of log ratios in percent."""
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
        change = in_percent(over_tables(changes[model]))
        body.append([name, f"{change.n} seen", interval_text(change, 1)])
    return {SCIKIT_LEARN: {"blend": markdown_table(("model", "tables", "change, %"), body, left=2)}}


@sentence("README.md")
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


@sentence("README.md")
def regressor_mixed(e: Evidence) -> str:
    """How often the regressor mixed."""
    mixed = list(e.rows(ESTIMATORS, "mixed", part=RESERVE, model="tabular").values.values())
    splits = len(mixed) // rival_numbers(e, "tabular")[1].n
    return (f"`TabularRegressor` mixes where its validation says so: in {sum(one > 0 for one in mixed)} of the "
            f"{len(mixed)} fits, on {splits} splits a table")  # fmt: skip


@sentence(SCIKIT_LEARN)
def regressor_intervals(e: Evidence) -> str:
    """How often new labels lie in its intervals."""
    columns = ("coverage", *(f"fifth{k}" for k in range(1, 6)))
    cover, *fifths = (e.rows("benchmarks/losses.csv", column, model="squared") for column in columns)
    low, high = min(fifth.mean for fifth in fifths), max(fifth.mean for fifth in fifths)
    require(0.88 < cover.mean < 0.92 and low > 0.84 and high < 0.96, "coverage is near nine tenths in every fifth")
    return (f"Its 90 % prediction intervals cover {cover.mean:.1%} of new labels, the mean over {cover.summary.n} "
            f"datasets. In each fifth of rows, by prediction, they cover {low:.1%} to {high:.1%}")  # fmt: skip


@sentence(SCIKIT_LEARN)
def regressor_many_rows(e: Evidence) -> str:
    """How the regressor compares with CatBoost on the study's largest tables at all their rows."""
    fits = e.frame(e.results / "benchmarks/scale.csv").set_index(["model", "name"])
    ours, base = fits.loc["tabular"], fits.loc[BASE]
    below = (ours["log_error"] < base["log_error"]).sum()
    require(len(ours) == len(base), "both on all")
    ratio = (ours["seconds"] / base["seconds"]).median()
    require(below > len(ours) / 2, "lower on most tables")
    return (
        f"On the {len(ours)} largest tables of the study, {ours['rows'].min():,} to {ours['rows'].max():,} training "
        f"rows, `TabularRegressor()` without CatBoost has a lower RMSE than CatBoost on {below}. A fit takes "
        f"{ours['seconds'].min():.0f} to {ours['seconds'].max():.0f} s, {ratio:.1f} times CatBoost's in the median"
    )


@sentence("results/speed.md")
def images_on_a_gpu(e: Evidence) -> str:
    """How fast own images are trained on beside a plain loop."""
    of = {"way": "dataset=images method=cmixup", "machine": "cuda: NVIDIA H100 80GB HBM3"}
    count, share = (e.rows("benchmarks/images.csv", column, **of).mean for column in ("images_a_second", "ratio"))
    return f"{count:,.0f} images of 224 x 224 a second on an H100, {share:.0%} of a plain loop without mixing"
