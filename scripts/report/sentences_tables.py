"""Sentences on Tables 1, 2 and 5, bandwidths, alpha, overfitting, and on `CMixupRegressor`."""

from __future__ import annotations

import itertools

from scripts.plan.selection import swept_values
from scripts.report.agreement import means_agree
from scripts.report.evidence import (
    Evidence,
    Query,
    experiment_of,
    is_higher,
    is_lower,
    minus,
    require,
    sentence,
)
from scripts.report.rendering import joined_words
from scripts.stats.intervals import Interval, clustered_interval, interval_text, of_interval

FINDINGS, REPRODUCING = "results/findings.md", "docs/reproducing.md"
ESTIMATORS, SCIKIT_LEARN = "benchmarks/estimators.csv", "docs/scikit_learn.md"
PRESETS = ("paper", "released", "tuned")
MIXINGS = ("mixup", "manifold_mixup", "k_mixup", "local_mixup", "mixrl", "cmixup")
DISTANCES = ("cmixup_x", "cmixup_xy", "cmixup_h", "cmixup_h_cosine", "cmixup_hy")
TASK_ERRORS = "task_errors/pascal1d_rendered_cpu.csv"
TASK_METHODS = ("maml", "mr_maml", "meta_aug", "metamix", "k_metamix", "local_metamix")
BANDWIDTH_TABLES = {"airfoil": "table1", "no2": "table1", "crime": "table3", "skillcraft": "table3"}


def n_lower(differences: list[Interval]) -> int:
    """Return how many intervals lie below 0."""
    return sum(map(is_lower, differences))


@sentence("README.md")
def readme_paper(e: Evidence) -> str:
    """In which parts the paper's comparison with ERM holds."""
    lead = [e.gain("table1", one, "released", "cmixup") for one in ("airfoil", "no2", "exchange_rate")]
    shift = [e.gain("table3", one, "released", "cmixup") for one in ("crime", "skillcraft")]
    require(n_lower(lead) == 0 and n_lower(shift) == 2, "better than ERM on new domains alone, preset released")
    require(is_lower(bandwidth_gains(e)["skillcraft", 6.0]), "better on SkillCraft at a bandwidth of 6")
    self_drawn = e.runs("table3", "skillcraft", "paper", "cmixup", metric="self_probability", split="train")
    require(self_drawn.mean > 0.99, "every row of SkillCraft is its own partner, preset paper")
    return (
        f"In part. In distribution, C-Mixup beats training without mixing on none of {len(lead)} datasets (preset "
        "released). Out of distribution, in pooled error, it wins on Crime where rows keep one order (preset "
        "released). On SkillCraft it wins there, and at a bandwidth of 6 (preset paper otherwise, whose own bandwidth "
        "mixes nothing)"
    )


@sentence(FINDINGS)
def airfoil_cmixup(e: Evidence) -> str:
    """C-Mixup against the others on Airfoil, presets paper and released."""
    clear, level = (
        [e.gain("table1", "airfoil", *pair) for pair in itertools.product(("paper", "released"), ("cmixup",), rivals)]
        for rivals in (("mixup", "local_mixup"), ("erm", "manifold_mixup", "k_mixup"))
    )
    require(n_lower(clear) == len(clear) and n_lower(level) == 0, "better than mixup and Local Mixup alone")
    return (
        f"On Airfoil C-Mixup is better than mixup and Local Mixup, as published ({n_lower(clear)} of {len(clear)} "
        "intervals lie below 0, presets paper and released), and not better than ERM, Manifold Mixup or k-Mixup "
        f"({n_lower(level)} of {len(level)})."
    )


@sentence(FINDINGS)
def no2_methods(e: Evidence) -> str:
    """No mixing method is better than ERM on NO2."""
    gains = [e.gain("table1", "no2", *pair) for pair in itertools.product(PRESETS, MIXINGS)]
    require(n_lower(gains) == 0, "no method is better than ERM on NO2")
    return (
        f"On NO2 no mixing method is better than ERM (none of {len(gains)} intervals under three presets), and "
        f"{sum(map(is_higher, gains))} are worse."
    )


@sentence(FINDINGS)
def authors_lead(e: Evidence) -> str:
    """The authors' code on Airfoil."""
    ours, paper = e.authors("airfoil", "cmixup"), e.paper("table1", "airfoil", "cmixup")
    lead = minus(ours, e.authors("airfoil", "erm"))
    require(not is_lower(lead) and not means_agree(ours.summary, paper.summary), "no lead in the authors' code")
    return (
        f"The authors' own code, run by us, does not show the lead on Airfoil either: {interval_text(lead)} over "
        f"{lead.n} seeds. Its C-Mixup has {ours.mean:.3f}, where the paper has {paper.mean:.3f}."
    )


@sentence(REPRODUCING)
def default_airfoil(e: Evidence) -> str:
    """Airfoil with standardised labels and features."""
    ours, lead = e.runs("table1", "airfoil", "default", "erm"), e.gain("table1", "airfoil", "default", "cmixup")
    paper = [e.paper("table1", "airfoil", method).mean for method in ("erm", "cmixup")]
    require(ours.mean < 0.6 * min(paper) and is_higher(lead), "ERM is far better with standardised labels")
    return (
        f"With labels and features standardised (preset default, {lead.n} seeds) ERM has {ours.mean:.3f} on Airfoil, "
        f"where the paper gives {paper[0]:.3f} for ERM and {paper[1]:.3f} for C-Mixup, its best. The networks of that "
        f"table are far from what the same data allows. C-Mixup minus ERM is {interval_text(lead)} in ours"
    )


@sentence(REPRODUCING, FINDINGS)
def ablation_grid(e: Evidence) -> str:
    """What label scale, epochs and learning rate change on Airfoil, beside what the methods change."""
    cells = grid_options()
    scale, epochs = (
        minus(e.runs("ladder", "airfoil", "paper", "erm", changed), e.runs("ladder", "airfoil", "paper", "erm"))
        for changed in ({"train.label_scaling": "standard"}, {"train.epochs": 500})
    )
    ours = [e.gain("ladder", "airfoil", "paper", "cmixup", options=one) for one in cells]
    others = [e.gain("ladder", "airfoil", "paper", method, options=one)
              for method in ("mixup", "manifold_mixup", "ada", "foma") for one in cells]  # fmt: skip
    require(is_lower(scale) and is_lower(epochs), "label scale and epochs lower ERM's error")
    return (
        f"On Airfoil, standardising the labels alone changes ERM's test RMSE by {interval_text(scale)} (n = "
        f"{scale.n}), 500 epochs instead of 100 by {interval_text(epochs)}. In {len(ours)} combinations of label "
        f"scale, epochs and learning rate C-Mixup is better than ERM in {n_lower(ours)} and worse in "
        f"{sum(map(is_higher, ours))}; mixup, Manifold Mixup, ADA and FOMA are better in {n_lower(others)} of "
        f"{len(others)}"
    )


def grid_options() -> list[Query]:
    """Return the options of every cell of the ablation grid of Airfoil that differ from preset paper."""
    options, values = (
        experiment_of("ladder").grid,
        {"train.label_scaling": "none", "train.epochs": 100, "train.lr": 0.01},
    )
    points = (dict(zip(options, point, strict=True)) for point in itertools.product(*options.values()))
    return [{key: value for key, value in point.items() if value != values[key]} for point in points]


@sentence(FINDINGS)
def tasks_cmixup(e: Evidence) -> str:
    """C-Mixup against the other meta-learners, over the objects of the test tasks."""
    ours = e.rows(TASK_ERRORS, "cmixup_meta", cluster="object")
    gains = {m: minus(ours, e.rows(TASK_ERRORS, m, cluster="object")) for m in TASK_METHODS}
    require(all(d.low <= 0 <= d.high for d in gains.values()), "every interval over objects contains 0")
    paper = [e.paper("table2", "pascal1d", method, metric="mse").mean for method in ("cmixup_meta", "maml")]
    return (
        f"Over objects all {len(gains)} intervals of C-Mixup minus another method contain 0. Minus MAML it is "
        f"{interval_text(gains['maml'])}, {paper[0] - paper[1]:+.3f} in the paper on its own data."
    )


@sentence(FINDINGS)
def tasks_intervals(e: Evidence) -> str:
    """How much wider intervals are once tasks of an object count as dependent."""
    wider = []
    for method in TASK_METHODS:
        over = [minus(e.rows(TASK_ERRORS, "cmixup_meta", cluster=c), e.rows(TASK_ERRORS, method, cluster=c))
                for c in ("object", "")]  # fmt: skip
        wider.append((over[0].high - over[0].low) / (over[1].high - over[1].low))
    require(min(wider) > 2, "intervals over objects are more than twice as wide")
    return (
        "The paper's ± takes test tasks as independent, though they are draws from a dozen objects. With tasks of an "
        f"object taken as dependent, intervals of the differences are {min(wider):.1f} to {max(wider):.1f} times as "
        "wide."
    )


@sentence(FINDINGS)
def distances(e: Evidence) -> str:
    """Label distance against every other one."""
    gains = [minus(e.runs("table1", d, "paper", "cmixup"), e.runs("table5", d, "paper", other))
             for d in ("airfoil", "no2") for other in DISTANCES]  # fmt: skip
    level = sum(d.low <= 0 <= d.high for d in gains)
    require(level == len(gains), "no distance differs significantly from the labels'")
    return (
        "Label distance and every other distance (of inputs, of representations, of both with labels) are not "
        f"significantly different on Airfoil and NO2: {level} of {len(gains)} intervals contain 0 (preset paper)"
    )


@sentence(FINDINGS)
def batch_forms(e: Evidence) -> str:
    """Partners from a second batch against partners from all rows."""
    places = {"airfoil": "id", "no2": "id", "crime": "ood", "skillcraft": "ood"}
    gains = [minus(e.runs(f"table_batch_{kind}", d, preset, "cmixup_batch"),
                   e.runs("table1" if kind == "id" else "table3", d, preset, "cmixup"))
             for (d, kind), preset in itertools.product(places.items(), PRESETS)]  # fmt: skip
    level = sum(d.low <= 0 <= d.high for d in gains)
    require(level == len(gains), "the batch form never differs significantly from C-Mixup")
    return (
        "Drawing partners from a second batch instead of the whole training set makes no difference that ten seeds "
        f"show: {level} of {len(gains)} intervals contain 0 (Airfoil, NO2, Crime and SkillCraft, three presets)"
    )


def swept_gains(e: Evidence, experiment: str, option: str, tables: dict[str, str]) -> dict[tuple[str, float], Interval]:
    """Return C-Mixup minus ERM, preset paper, by dataset and value of a swept option."""
    gains = {}
    for dataset, table in tables.items():
        for value in swept_values(experiment_of(experiment), dataset, "cmixup"):
            cell = {"experiment": experiment, "dataset": dataset, "preset": "paper", "method": "cmixup"}
            ours = e.find({**cell, "options": {option: value}}) or e.sample(cell)  # the preset's own value
            gains[dataset, float(value)] = minus(ours, e.runs(table, dataset, "paper", "erm"))
    return gains


def bandwidth_gains(e: Evidence) -> dict[tuple[str, float], Interval]:
    """Return C-Mixup minus ERM, preset paper, by dataset and bandwidth."""
    return swept_gains(e, "figure_bandwidth", "method.bandwidth", BANDWIDTH_TABLES)


@sentence(FINDINGS)
def bandwidth_gain(e: Evidence) -> str:
    """At which bandwidths C-Mixup is better than ERM."""
    gains = bandwidth_gains(e)
    better = [key for key, d in gains.items() if is_lower(d)]
    sure = [key for key in better if of_interval(gains[key]).chance * len(gains) < 0.05]
    require({dataset for dataset, _ in better} == {"skillcraft"}, "better on SkillCraft alone")
    values = joined_words([f"{value:g}" for _, value in better])
    return (
        f"Of {len(gains)} bandwidths (twelve on each of four datasets, preset paper) {len(better)} are better than "
        f"ERM, both on SkillCraft: {values}. After Bonferroni's correction for all of them {len(sure)} is. "
        f"{sum(map(is_higher, gains.values()))} are worse than ERM, not corrected"
    )


@sentence(FINDINGS)
def alpha_none(e: Evidence) -> str:
    """At no alpha is C-Mixup better than ERM."""
    gains = swept_gains(e, "figure_alpha", "method.alpha", {"airfoil": "table1", "no2": "table1"})
    require(n_lower(list(gains.values())) == 0, "no alpha is better than ERM")
    return f"No alpha of {len(gains)} (six on Airfoil and NO2, preset paper) makes C-Mixup better than ERM"


@sentence("docs/bandwidth.md")
def bandwidths_idle(e: Evidence) -> str:
    """Which published bandwidths mix as mixup does, or not at all."""
    every = list(e.rows("bandwidth.csv", "effective_fraction").values.values())
    wide = [one for one in every if one > 0.9]
    self_drawn = e.rows("bandwidth.csv", "self_probability", dataset="skillcraft", bandwidth=0.0005)
    require(e.rows("bandwidth.csv", "effective_fraction", dataset="crime").mean > 0.99, "Crime's mix as mixup does")
    require(self_drawn.mean > 0.99, "SkillCraft's pairs rows with themselves")
    return (
        f"Not every published bandwidth does something: of {len(every)} (of the datasets at hand), {len(wide)} leave "
        "more than nine tenths of the rows as partners. On Crime the pairs are those of plain mixup, on SkillCraft "
        "the paper's pairs every row with itself"
    )


def behind_catboost(e: Evidence, model: str) -> Interval:
    """Return a model's log error minus CatBoost's on the tables set aside, with its interval over tables."""
    sample = e.rows(ESTIMATORS, "behind", cluster="table", part="reserved", model=model)
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
    seconds = {
        model: e.rows(ESTIMATORS, "seconds", part="reserved", model=model).mean for model in ("cmixup", "catboost")
    }
    require(not is_lower(ours) and not is_higher(ours) and is_higher(light), "level with CatBoost, LightGBM behind it")
    return (
        f"On {ours.n} tables set aside before its default was chosen, its log error minus CatBoost's is "
        f"{percent(ours)}, and LightGBM's minus CatBoost's {percent(light)} (all by their defaults). A fit takes "
        f"{seconds['cmixup']:.1f} s in the mean, CatBoost's {seconds['catboost']:.1f} s"
    )


@sentence(SCIKIT_LEARN)
def regressor_place(e: Evidence) -> str:
    """The same with its networks alone and scikit-learn's own trees, and how often it mixed."""
    ours, alone, light, hist = (
        behind_catboost(e, model) for model in ("cmixup", "cmixup_before", "lightgbm", "hist_gradient_boosting")
    )
    mixed = list(e.rows(ESTIMATORS, "mixed", part="reserved", model="cmixup").values.values())
    require(ours.low <= 0 <= ours.high and is_higher(light) and is_higher(hist), "level with CatBoost, others behind")
    return (
        f"On {ours.n} tables that were set aside before it was chosen, its log error minus that of CatBoost's default "
        f"is {percent(ours)} in the mean. Its networks alone (`blend=None`) have {percent(alone)}, LightGBM "
        f"{percent(light)} and `HistGradientBoostingRegressor` {percent(hist)}. It mixed in "
        f"{sum(one > 0 for one in mixed)} of its {len(mixed)} fits there: elsewhere mixing did not lower the "
        "validation error"
    )


@sentence(SCIKIT_LEARN)
def regressor_intervals(e: Evidence) -> str:
    """How often new labels lie in its intervals."""
    cover = e.rows(ESTIMATORS, "coverage", model="cmixup", split="0")
    every = list(e.rows(ESTIMATORS, "coverage", model="cmixup").values.values())
    require(0.88 < cover.mean < 0.92, "coverage is near nine tenths")
    return (
        f"Of new labels {cover.mean:.1%} lie in its intervals for nine tenths, the mean over {cover.summary.n} tables; "
        f"in {sum(one > 0.8 for one in every)} of {len(every)} fits more than four fifths do"
    )
