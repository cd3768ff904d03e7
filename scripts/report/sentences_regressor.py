"""Sentences on `CMixupRegressor`, from results/benchmarks/estimators.csv."""

from __future__ import annotations

from scripts.report.evidence import Evidence, is_higher, is_lower, require, sentence
from scripts.stats.intervals import Interval, clustered_interval

FILE = "benchmarks/estimators.csv"
PAGE = "docs/scikit_learn.md"


def behind_catboost(e: Evidence, model: str) -> Interval:
    """Return a model's log error minus CatBoost's on the tables set aside, with its interval over tables."""
    sample = e.rows(FILE, "behind", cluster="table", part="reserved", model=model)
    interval = clustered_interval(list(sample.values.values()), list((sample.clusters or {}).values()))
    require(interval is not None, f"{model} was fitted on two tables or more")
    assert interval
    return interval


def percent(d: Interval) -> str:
    """Return an interval in percent."""
    return f"{d.mean:+.1%} [{d.low:+.1%}, {d.high:+.1%}]"


@sentence("README.md")
def readme_regressor(e: Evidence) -> str:
    """How the regressor compares with gradient boosting, and what a fit costs."""
    ours, light = behind_catboost(e, "cmixup"), behind_catboost(e, "lightgbm")
    seconds = {model: e.rows(FILE, "seconds", part="reserved", model=model).mean for model in ("cmixup", "catboost")}
    require(not is_lower(ours) and not is_higher(ours) and is_higher(light), "level with CatBoost, LightGBM behind it")
    return (
        f"On {ours.n} tables set aside before its default was chosen, its log error minus CatBoost's is "
        f"{percent(ours)}, and LightGBM's minus CatBoost's {percent(light)} (all by their defaults). A fit takes "
        f"{seconds['cmixup']:.1f} s in the mean, CatBoost's {seconds['catboost']:.1f} s"
    )


@sentence(PAGE)
def regressor_place(e: Evidence) -> str:
    """The same with its networks alone and scikit-learn's own trees, and how often it mixed."""
    ours, alone, light, hist = (
        behind_catboost(e, model) for model in ("cmixup", "cmixup_before", "lightgbm", "hist_gradient_boosting")
    )
    mixed = list(e.rows(FILE, "mixed", part="reserved", model="cmixup").values.values())
    require(ours.low <= 0 <= ours.high and is_higher(light) and is_higher(hist), "level with CatBoost, others behind")
    return (
        f"On {ours.n} tables that were set aside before it was chosen, its log error minus that of CatBoost's default "
        f"is {percent(ours)} in the mean. Its networks alone (`blend=None`) have {percent(alone)}, LightGBM "
        f"{percent(light)} and `HistGradientBoostingRegressor` {percent(hist)}. It mixed in "
        f"{sum(one > 0 for one in mixed)} of its {len(mixed)} fits there: elsewhere mixing did not lower the "
        "validation error"
    )


@sentence(PAGE)
def regressor_intervals(e: Evidence) -> str:
    """How often new labels lie in its intervals."""
    cover = e.rows(FILE, "coverage", model="cmixup", split="0")
    every = list(e.rows(FILE, "coverage", model="cmixup").values.values())
    require(0.88 < cover.mean < 0.92, "coverage is near nine tenths")
    return (
        f"Of new labels {cover.mean:.1%} lie in its intervals for nine tenths, the mean over {cover.summary.n} tables; "
        f"in {sum(one > 0.8 for one in every)} of {len(every)} fits more than four fifths do"
    )
