"""What each part of the default `CMixupRegressor` is worth, on the 20 tables that it was chosen on.

Every candidate sees the same split, held-out rows and seeds. Means and blends are computed from the predictions of
the same networks and trees, so they cost no further fit.

Example: python -m scripts.bench ablation tables=penguin_mass
"""

# ruff: noqa: SLF001 - the parts of the estimator, one by one

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import torch
from sklearn.ensemble import HistGradientBoostingRegressor

from cmixup.errors import InputError
from cmixup.sampling.inputs import Floats
from cmixup.sklearn import CMixupRegressor, fitting
from cmixup.sklearn.columns import coded, widened
from cmixup.sklearn.held_out import Part, parts_by_chance
from cmixup.sklearn.network import Pieces
from cmixup.sklearn.options import settings_of
from cmixup.sklearn.rows import standardised
from scripts.bench.clock import SHORT, put_page, store_file
from scripts.bench.estimators import BASE, CHOSEN_ON, as_taken, fitted_regressor, mean_log_error, table_halves
from scripts.bench.recipes import RECIPES, Recipe, prepared_columns, stack_with
from scripts.config.arguments import Args
from scripts.machine.provenance import run_environment
from scripts.records.experiment import RESULTS
from scripts.records.records import read_csv, to_csv
from scripts.records.stats import clustered_interval
from scripts.records.tables import markdown_rows

MEMBERS, MORE, SPLIT = 5, 10, 0
PLAIN = Recipe("five networks without mixing")
KEYS = SHORT | {"tables": "default the twenty", "recipes": f"among {', '.join(RECIPES)}; default all"}
COLUMNS = ("table", "candidate", "log_error", "seconds", "processor")
#: Candidates that are whole regressors, with how many networks and boosted trees each fits; the default is chosen among
#: them.
WHOLE = {
    "networks_5": ("five networks, no mixing", 5),
    "networks_10": ("ten networks: each row is held out once", 10),
    "trees_1": ("`HistGradientBoostingRegressor` of all rows", 1),
    "trees_5": ("five of these, each without another tenth", 5),
    "mean_5": ("mean of five networks and five of these trees", 10),
    "stacked_5": ("five networks and five of these trees, weighed by least squares on held-out rows", 10),
    "mean_10": ("mean of ten networks and ten of these trees", 20),
    "stacked_10": ("ten networks and ten of these trees, weighed by least squares on held-out rows", 20),
}
CLAMPED = "predictions clamped to the labels' range (RealMLP)"
ABOUT = (
    "What each candidate for the default `CMixupRegressor` is worth alone, on the 20 tables of `chosen_on` "
    f"([the regressors](estimators.md)), split {SPLIT}, all with the same held-out rows and seeds. The first lines are "
    "whole regressors, the others one change of five networks. Error: log of the test error (RMSE) less that of five "
    f"networks or of {BASE}'s default, in 1/100; the mean over outputs and tables with its 95 % interval over tables. "
    f"Fit: process seconds on one thread as multiples of {BASE}'s, the median over tables, where they were measured in "
    "turn. `ablation.csv` has every fit and its processor, and repeats to the last digit on one kind. All fits of a "
    "table are of one kind. The choice was made on what a pilot trained on another kind, where the trees of one table "
    "differ in the third digit."
)


def network_predictions(recipe: Recipe, data: tuple[Any, Floats, Any], members: range) -> dict[str, Any]:
    """Return what networks of a recipe predict for test rows and for those that each held out, and their seconds.

    Args:
        recipe: how to train.
        data: features (N,) and labels (N, d_y) to train on, features of the test rows (n,).
        members: of the networks, which hold other rows out.

    Returns:
        "test": (M, n, d_y) and "held": (M, k, d_y) predictions in label units, "parts", "y" (N, d_y), "seconds".
    """
    x, y, test = data
    x, test = prepared_columns(recipe.prepare, x, y, test)
    start = time.process_time()
    estimator = CMixupRegressor(**({"bandwidth": 0, "random_state": SPLIT} | recipe.options))
    raw = estimator._read(x, y, None)
    rows = estimator._encoded(raw)
    parts = parts_by_chance(len(rows), MORE, 0.1, SPLIT)
    if not estimator.early_stopping:
        parts = [Part(np.arange(len(rows)), np.arange(0))] * MORE
    settings, bandwidth = settings_of(estimator), estimator._in_deviations(rows.y)
    steps = settings.epochs * -(-len(rows) // settings.batch_size) if recipe.cosine else 0
    changes: dict[str, Any] = {"MLP": recipe.network}
    if recipe.decay or steps:
        changes["ModelStack"] = stack_with(recipe.decay, steps)
    with mock.patch.multiple(fitting, **changes):
        nets = [(bandwidth, member) for member in members]
        found = fitting.train_networks(rows, parts, nets, settings, pieces=estimator._pieces, seed=SPLIT)
    taken = time.process_time() - start
    wide = widened(np.asarray(coded(test, estimator._levels), np.float64), estimator._levels, estimator._indicators)
    ahead = np.nan_to_num(standardised(wide, estimator.x_mean_, estimator.x_scale_))
    pieces = Pieces(estimator._pieces, torch.device("cpu"), torch.float32)
    told: dict[str, Any] = {"test": [], "held": [], "parts": parts, "y": raw.y, "x": raw.x, "seconds": taken}
    for network, member in zip(found, members, strict=True):
        model = recipe.network((rows.x.shape[1], *settings.hidden, rows.y.shape[1]), pieces)
        model.load_state_dict(network.weights)
        for name, values in (("test", ahead), ("held", rows.x[parts[member].held])):
            with torch.no_grad():
                z = model.eval()(torch.from_numpy(values.astype(np.float32))).double().numpy()
            told[name].append(z * estimator.y_scale_ + estimator.y_mean_)
    told["masks"] = [own is not None and len(own) <= 255 for own in estimator._levels]
    told["ahead"] = np.asarray(coded(test, estimator._levels), dtype=np.float64)
    return told


def tree_predictions(told: Mapping[str, Any]) -> tuple[list[Floats], list[Floats], list[float], Floats]:
    """Return what trees without each tenth predict for test and held-out rows, seconds, and what those of all rows do.

    Args:
        told: of `network_predictions`: rows, parts, labels and the test rows.
    """
    test, held, times = [], [], []
    every = Part(np.arange(len(told["y"])), np.arange(1))
    for part in (*told["parts"], every):
        start = time.process_time()
        models = [
            HistGradientBoostingRegressor(categorical_features=told["masks"], random_state=SPLIT).fit(
                told["x"][part.train], column[part.train]
            )
            for column in told["y"].T
        ]
        times.append(time.process_time() - start)
        test.append(np.column_stack([model.predict(told["ahead"]) for model in models]))
        held.append(np.column_stack([model.predict(told["x"][part.held]) for model in models]))
    return test[:-1], held[:-1], times, test[-1]


def stacked_mean(nets: Floats, trees: Floats, held: Floats, held_trees: Floats, labels: Floats) -> Floats:
    """Return the weighed mean of networks and trees, by least squares on held-out rows, clipped to [0, 1]."""
    gap, rest = held_trees - held, labels - held
    weight = ((gap * rest).sum(axis=0) / np.maximum((gap**2).sum(axis=0), np.finfo(np.float64).tiny)).clip(0, 1)
    return nets + (trees - nets) * weight


def measure_table(name: str, recipes: Sequence[str]) -> list[dict[str, str]]:
    """Return the lines of a table: every candidate's log error and seconds."""
    x, y, test, target = table_halves(name, SPLIT)
    told, more = (network_predictions(PLAIN, (x, y, test), range(m, m + MEMBERS)) for m in (0, MEMBERS))
    nets, held = np.array(told["test"] + more["test"]), told["held"] + more["held"]
    trees, held_trees, times, alone = tree_predictions(told)
    labels = [told["y"][part.held] for part in told["parts"]]
    found: dict[str, tuple[Floats, float]] = {"trees_1": (alone, times[-1])}
    for count, seconds in ((MEMBERS, told["seconds"]), (MORE, told["seconds"] + more["seconds"])):
        mean, bag = nets[:count].mean(axis=0), np.mean(trees[:count], axis=0)
        both = seconds + sum(times[:count])
        seen = [np.concatenate(values[:count]) for values in (held, held_trees, labels)]
        found[f"networks_{count}"] = (mean, seconds)
        found[f"mean_{count}"] = ((mean + bag) / 2, both)
        found[f"stacked_{count}"] = (stacked_mean(mean, bag, *seen), both)
    found["trees_5"] = (np.mean(trees[:MEMBERS], axis=0), sum(times[:MEMBERS]))
    found["clamped"] = (nets[:MEMBERS].mean(axis=0).clip(told["y"].min(axis=0), told["y"].max(axis=0)), told["seconds"])
    for recipe in recipes:
        own = network_predictions(RECIPES[recipe], (x, y, test), range(MEMBERS))
        found[recipe] = (np.mean(own["test"], axis=0), own["seconds"])
    estimator, seconds = fitted_regressor(BASE, x, y, SPLIT)
    found[BASE] = (estimator.predict(as_taken(BASE, test)), seconds)
    processor = run_environment(torch.device("cpu"))["device"].removeprefix("cpu: ")
    lines = [
        (name, which, f"{mean_log_error(p, target):.5f}", f"{seconds:.2f}", processor)
        for which, (p, seconds) in found.items()
    ]
    return [dict(zip(COLUMNS, line, strict=True)) for line in lines]


def chosen_default(errors: pd.DataFrame) -> tuple[str, list[str], float]:
    """Return the default: the cheapest candidate within a standard error of the best (Breiman et al. 1984).

    Args:
        errors: candidates by tables, log error beside the base.

    Returns:
        The candidate, the choice without each table, and the mean error that these choices have on the table left out.
    """

    def choice(own: pd.DataFrame) -> str:
        means = own.mean(axis=1)
        gaps = own - own.loc[means.idxmin()]
        near = means.index[gaps.mean(axis=1) <= gaps.std(axis=1) / np.sqrt(own.shape[1])]
        return min(near, key=lambda name: (WHOLE[name][1], means[name]))

    without = [choice(errors.drop(columns=table)) for table in errors]
    left_out = [errors.loc[name, table] for name, table in zip(without, errors, strict=True)]
    return choice(errors), without, float(np.mean(left_out))


def report_blocks(rows: Sequence[Mapping[str, str]]) -> list[str | list[str]]:
    """Return the blocks of the page."""
    frame = pd.DataFrame(rows)
    frame = frame.assign(**{name: pd.to_numeric(frame[name]) for name in COLUMNS[2:4]})
    errors, times = (frame.pivot(index="candidate", columns="table", values=name) for name in COLUMNS[2:4])
    beside, ratio = errors - errors.loc[BASE], (times / times.loc[BASE]).median(axis=1)
    words = {name: what for name, (what, _) in WHOLE.items()} | {"clamped": CLAMPED}
    words |= {name: recipe.what for name, recipe in RECIPES.items() if name in errors.index}
    body = []
    for name, what in words.items():
        gaps = beside.loc[name].dropna()
        spans = [_span(errors.loc[name] - errors.loc["networks_5"]), _span(gaps)]
        fit = "" if np.isnan(ratio[name]) else f"{ratio[name]:.1f}"
        body.append([what, *spans, f"{100 * gaps.median():+.1f}", f"{(gaps < 0).sum()} of {len(gaps)}", fit])
    head = ["", "error beside five networks", f"beside {BASE}", "its median", "tables below", f"fit, times {BASE}'s"]
    best, without, mean = chosen_default(beside.loc[list(WHOLE)])
    choice = (
        f"**The choice**: among the first {len(WHOLE)} lines the one that fits the fewest models, of those within a "
        f"standard error of the best: {WHOLE[best][0]} (`{best}`). With each table left out in turn the same one is "
        f"chosen {without.count(best)} of {len(without)} times, and these choices have {100 * mean:+.1f} on the tables "
        "left out."
    )
    counts = frame.groupby("processor")["table"].nunique()
    where = ", ".join(f"{kind} {count}" for kind, count in counts.items())
    return [ABOUT, markdown_rows(head, body), choice, f"Tables by processor: {where}."]


def _span(gaps: pd.Series) -> str:
    """Return a mean over tables with its interval, in 1/100."""
    gaps = 100 * gaps.dropna()
    found = clustered_interval(gaps.to_list(), range(len(gaps)))
    return f"{found.mean:+.1f} [{found.low:+.1f}, {found.high:+.1f}]" if found and gaps.any() else "0"


def run(given: Args) -> None:
    """Fit every candidate to the tables, and put their lines in place of those of the record."""
    short = given.switch("short")
    path = RESULTS / "benchmarks" / "ablation.csv"
    rows = {(r["table"], r["candidate"]): r for r in (read_csv(path) if path.exists() and not short else [])}
    recipes = given.listed("recipes", tuple(RECIPES))
    if find_spec(BASE) is None:
        raise InputError(f"the ablation compares with {BASE}, which is not installed: pip install {BASE}")
    for name in given.listed("tables", ("penguin_mass",) if short else CHOSEN_ON):
        for row in measure_table(name, recipes):
            rows[name, row["candidate"]] = row
            print(", ".join(row.values()), flush=True)
        store_file(given, "ablation.csv", to_csv(rows.values(), COLUMNS))
    if not short:
        put_page(
            given, "ablation", "What each part of the default regressor is worth", report_blocks(list(rows.values()))
        )
