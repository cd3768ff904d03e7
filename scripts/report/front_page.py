"""README's tables, sentences on the regressor and first picture; how a model changes once networks stand beside it."""

import math

import numpy as np
import pandas as pd
import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from cmixup import CMixup
from scripts.records.names import method_title
from scripts.report.evidence import Evidence, published_evidence
from scripts.report.figures import COLOURS, GREY, LOOKS, new_subplots
from scripts.report.paper.claims import claim_rows
from scripts.report.paper.statements import answer
from scripts.report.rendering import draws, fills
from scripts.report.result_table import markdown_table
from scripts.report.study_evidence import leading_setting, read_settings
from scripts.stats.effects import Effect
from scripts.stats.intervals import HIGHER, LOWER, Interval, clustered_interval, interval_text
from scripts.study.ensembles import ENSEMBLE, METHOD
from scripts.study.rules import PROTOCOL2

RIVALS = {
    "tabular_catboost": "`TabularRegressor(blend=CatBoostRegressor())`", "tabular": "`TabularRegressor`",
    "catboost": "CatBoost", "catboost_5": "mean of five CatBoosts", "lightgbm": "LightGBM", "realmlp": "RealMLP",
}  # fmt: skip
HEAD = ("question", "answer", "measured on")


@fills
def first_screen() -> dict[str, dict[str, str]]:
    """Return the two tables of README, and its sentences on the regressor."""
    e = published_evidence()
    tables = {"found": questions_table(e), "rivals": rivals_table(e)}
    sentences = {"blend_beside_five": blend_beside_five(e), "regressor_mixed": regressor_mixed(e), "answer": answer()}
    return {"README.md": tables | sentences}


def questions_table(e: Evidence) -> str:
    """Return a row a question, each with its interval and where it was measured."""
    lead, at_random = leading_setting(), read_settings(PROTOCOL2)[-1]
    mix, five, both = lead.effect(METHOD), lead.effect(ENSEMBLE), at_random.effect("C-Mixup x 5", ENSEMBLE)
    assert mix
    alone, blend = (rival_numbers(e, model)[1:] for model in ("tabular", "tabular_catboost"))
    tables = f"[{len(mix.tables)} tables](results/study.md), at most 3,000 training rows"
    body = [
        ["Does C-Mixup lower a tuned network's error?", _effect(mix), tables],
        ["Do five averaged networks, without mixing, have a lower error than one?", _effect(five), "the same tables"],
        ["Does C-Mixup lower the error of five averaged networks?", _effect(both), "the same tables"],
        ["Is `TabularRegressor()` better than CatBoost?", _answer(*alone),
         f"[{alone[0].n} fresh tables](results/estimators.md#estimators), chosen before any run"],
        ["Is `TabularRegressor(blend=CatBoostRegressor())` better than CatBoost?", _answer(*blend), "the same tables"],
        ["Is C-Mixup better than mixup, which draws partners at random?", _similar_partner(),
         "[the paper's datasets](results/findings.md#claims)"],
    ]  # fmt: skip
    return markdown_table(HEAD, body, left=3)


def _similar_partner() -> str:
    rows = [row for row in claim_rows() if row["claim"] == "similar_partner"]
    yes, no, unknown = (sum(row[side] for row in rows) for side in ("for", "against", "undecided"))
    return f"in {yes + no + unknown} comparisons: {yes} better, {no} worse, {unknown} undecided"


def _effect(effect: Effect | None) -> str:
    assert effect
    return _answer(effect.mean, effect.lower)


def _answer(d: Interval | None, lower: int) -> str:
    assert d
    word = {LOWER: "yes", HIGHER: "no, worse"}.get(d.side, "undecided")
    mean, space, ends = interval_text(d, 1 if round(abs(d.low), 1) else 2).partition(" ")
    count = f"lower on {lower} of {d.n}" if word == "yes" else f"lower on {lower}, higher on {d.n - lower}"
    return f"{word}: {mean} %{space}{ends}, {count}"


def rivals_table(e: Evidence) -> str:
    """Return each model's error beside CatBoost's on the fresh and on the older tables, and the seconds of a fit."""
    body, n = [], []
    for model, title in RIVALS.items():
        fresh, older = (rival_numbers(e, model, part) for part in (RESERVE, "reserved"))
        n = [fresh[1].n, older[1].n]
        errors = ["0", "0"] if model == BASE else [interval_text(d, 1) for _, d, _ in (fresh, older)]
        body.append([title, *errors, f"{fresh[0]:.2g}"])
    head = ("regressor", f"{n[0]} fresh tables", f"{n[1]} older tables", "median seconds of a fit")
    return markdown_table(head, body)


ESTIMATORS, SCIKIT_LEARN, BASE = "benchmarks/estimators.csv", "docs/scikit_learn.md", "catboost"
RESERVE = "fresh"  # tables that were opened when the defaults were decided


def rival_numbers(e: Evidence, model: str, part: str = RESERVE, base: str = BASE) -> tuple[float, Interval, int]:
    """Return the median seconds of a fit, the error minus the base's in percent, and on how many tables it is lower."""
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
def blend_parts() -> dict[str, dict[str, str]]:
    """Return how the error of a model of the user changes once networks stand beside it, and sentences on these."""
    e, body = published_evidence(), []
    for part, title in {RESERVE: "fresh", "reserved": "held out"}.items():
        change = rival_numbers(e, "tabular_catboost", part)[1]
        body.append(["CatBoost", f"{change.n} {title}", interval_text(change, 1)])
    frame = e.frame(e.results / "benchmarks/blend.csv").dropna(subset=["model"]).astype({"fits": str})
    fits = frame.pivot_table("log_error", ["part", "model", "table"], "fits")
    changes = (fits["3"] - fits["alone"]).dropna().loc["chosen_on"]
    for model, name in {"catboost": "CatBoost", "lightgbm": "LightGBM", "ridge": "ridge regression"}.items():
        change = percent_change(changes[model])
        body.append([name, f"{change.n} seen", interval_text(change, 1)])
    table = markdown_table(("model", "tables", "change, %"), body, left=2)
    sentences = {"regressor_intervals": regressor_intervals(e), "regressor_many_rows": regressor_many_rows(e)}
    return {SCIKIT_LEARN: {"blend": table, **sentences}}


def regressor_intervals(e: Evidence) -> str:
    """How often new labels lie in its intervals."""
    columns = ("coverage", *(f"fifth{k}" for k in range(1, 6)))
    cover, *fifths = (e.rows("benchmarks/losses.csv", column, model="squared") for column in columns)
    low, high = min(fifth.mean for fifth in fifths), max(fifth.mean for fifth in fifths)
    return (f"Its 90 % prediction intervals cover {cover.mean:.1%} of new labels, the mean over {cover.summary.n} "
            f"datasets. In each fifth of rows, by prediction, they cover {low:.1%} to {high:.1%}")  # fmt: skip


def regressor_many_rows(e: Evidence) -> str:
    """How the regressor compares with CatBoost on the study's largest tables at all their rows."""
    fits = e.frame(e.results / "benchmarks/scale.csv").set_index(["model", "name"])
    ours, base = fits.loc["tabular"], fits.loc[BASE]
    below, ratio = (ours["log_error"] < base["log_error"]).sum(), (ours["seconds"] / base["seconds"]).median()
    return (
        f"On the {len(ours)} largest tables of the study, {ours['rows'].min():,} to {ours['rows'].max():,} training "
        f"rows, `TabularRegressor()` without CatBoost has a lower RMSE than CatBoost on {below}. A fit takes "
        f"{ours['seconds'].min():.0f} to {ours['seconds'].max():.0f} s, {ratio:.1f} times CatBoost's in the median"
    )


def blend_beside_five(e: Evidence) -> str:
    """How CatBoost with networks beside it compares with the mean of as many CatBoosts as networks."""
    _, five, below = rival_numbers(e, "tabular_catboost", base="catboost_5")
    assert five.high < 0
    return (f"The blend with CatBoost is better than the mean of five CatBoosts, too: {interval_text(five, 1)} %, "
            f"lower on {below} of {five.n} fresh tables")  # fmt: skip


def regressor_mixed(e: Evidence) -> str:
    """How often the regressor mixed."""
    mixed, tables = e.rows(ESTIMATORS, "mixed", part=RESERVE, model="tabular").values, rival_numbers(e, "tabular")[1].n
    return (f"`TabularRegressor` uses C-Mixup only where that lowers its validation error: in "
            f"{sum(share > 0 for share in mixed.values())} of {len(mixed)} fits "
            f"({tables} tables, {len(mixed) // tables} splits each)")  # fmt: skip


#: Regressors of the first picture, and where the name of each stands beside its mark, in points.
MARKED = {
    "tabular": ("TabularRegressor", (-8, -14), "right"), "catboost": ("CatBoost (reference)", (-8, 6), "right"),
    "tabular_catboost": ("blend=CatBoost", (8, -14), "left"), "realmlp": ("RealMLP", (8, 4), "left"),
    "catboost_5": ("mean of 5 CatBoosts", (8, 8), "left"), "lightgbm": ("LightGBM", (8, 4), "left"),
}  # fmt: skip


@draws
def pictures() -> dict[str, Figure]:
    """Return the picture that README begins with, by its path below results/."""
    figure, ((left, right),) = new_subplots(1, 2, (10.4, 3.9))
    draw_mixing(left)
    draw_rivals(right, published_evidence())
    figure.tight_layout()
    return {"study/first.png": figure}


def draw_rivals(axis: Axes, e: Evidence) -> None:
    """Draw the test error of regressors with default hyperparameters over the time of a fit, on fresh tables."""
    axis.axhline(0, color=COLOURS["erm"], linewidth=1)
    for model, (title, place, side) in MARKED.items():
        seconds, behind, _ = rival_numbers(e, model)
        mean, ours = behind.mean, model.startswith("tabular")
        axis.errorbar(seconds, mean, yerr=behind.bar, fmt="s" if ours else "o", markersize=8,
                      color="black" if ours else GREY, capsize=3)  # fmt: skip
        axis.annotate(title, (seconds, mean), place, textcoords="offset points", ha=side, fontsize=9)
    axis.set(xscale="log", xlabel="median seconds of a fit, one thread; bars: 95 % intervals")
    axis.set_xticks([0.03, 0.1, 0.3, 1, 3, 10, 30, 100], ["0.03", "0.1", "0.3", "1", "3", "10", "30", "100"])
    axis.set_ylabel("difference from CatBoost's test RMSE, %\n← better          worse →")
    axis.yaxis.tick_right()  # a narrow screen shows each half by itself
    axis.yaxis.set_label_position("right")
    axis.set_title(f"{behind.n} fresh tables", fontsize=11)


def draw_mixing(axis: Axes) -> None:
    """Draw rows of a curve, mixed by mixup and by C-Mixup."""
    x = np.sort(3 * np.random.default_rng(0).random((60, 1), dtype=np.float32), axis=0)
    data = torch.from_numpy(x), torch.from_numpy(np.exp(x))
    axis.plot(x, np.exp(x), ".", color="0.45", markersize=5, label="training data", zorder=3)
    for name, bandwidth in (("mixup", math.inf), ("cmixup", 1.0)):
        mixed = CMixup(bandwidth, alpha=1.0, seed=0)(*data)
        colour, marker = LOOKS[name]
        axis.plot(mixed[0][:, 0], mixed[1][:, 0], marker, color=colour, label=f"mixed by {method_title(name)}",
                  markersize=5, alpha=0.8)  # fmt: skip
    axis.set(xlabel="input", ylabel="label")
    axis.set_title("The idea, on made-up data", fontsize=11)
    axis.legend(frameon=False, fontsize=9)
