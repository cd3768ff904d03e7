"""Losses and intervals of `CMixupRegressor` beside scikit-learn's trees of the same loss, on 30 datasets, split 0.

Errors are in standard deviations of the test labels, means over outputs: of the median, and the pinball loss over the
quantiles. Coverage is also taken in each fifth of the rows by their prediction.

Example: python -m scripts.bench losses models=quantile,hist_quantile
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.metrics import mean_pinball_loss

from cmixup.sampling.inputs import Floats
from cmixup.sklearn import CMixupRegressor
from cmixup.sklearn.losses import LOSSES
from scripts.bench.clock import PAGE, SHORT, measured_seconds, store_rows, stored_rows, with_machine
from scripts.bench.estimators import COVERAGE, INTERVAL_SPLIT, PART_OF, TABLES, interval_coverage, table_halves
from scripts.config.arguments import Args
from scripts.report.register import fills
from scripts.report.result_table import markdown_table

QUANTILES = (0.05, 0.5, 0.95)
MODELS = (*LOSSES, "hist_absolute", "hist_quantile")
FIFTHS = tuple(f"fifth{k}" for k in range(1, 6))
COLUMNS = ("part", "table", "model", "mae", "pinball", "coverage", "width", *FIFTHS, "seconds")
KEYS = SHORT | {"models": f"among {', '.join(MODELS)}; default all"}


def pinball(quantiles: Floats, y: Floats) -> float:
    """Return the mean pinball loss of quantiles (n, d_y, q) of labels (n, d_y), in deviations of these."""
    y, quantiles = y / y.std(axis=0), quantiles / y.std(axis=0)[:, None]
    return float(np.mean([mean_pinball_loss(y, quantiles[..., k], alpha=QUANTILES[k]) for k in range(len(QUANTILES))]))


def coverage_by_fifth(ends: Floats, y: Floats, predicted: Floats) -> Floats:
    """Return the share (5,) of labels (n, d_y) in intervals (n, 2, d_y), by fifths of their predictions (n, d_y)."""
    shares = []
    for k in range(y.shape[1]):
        fifth = pd.qcut(pd.Series(predicted[:, k]).rank(method="first"), 5, labels=False)
        inside = (ends[:, 0, k] <= y[:, k]) & (y[:, k] <= ends[:, 1, k])
        shares.append(pd.Series(inside).groupby(fifth).mean())
    return np.mean(shares, axis=0)


def score_loss(name: str, model: str) -> dict[str, Any]:
    """Return the row of a model on a table."""
    x, y, test, target = table_halves(name, INTERVAL_SPLIT)
    row: dict[str, Any] = dict.fromkeys(COLUMNS, "") | {"part": PART_OF[name], "table": name, "model": model}
    if model in LOSSES:
        regressor = CMixupRegressor(loss=model, quantiles=QUANTILES, random_state=INTERVAL_SPLIT)
        row["seconds"] = measured_seconds(lambda: regressor.fit(x, y if y.shape[1] > 1 else y[:, 0]))
        predicted = regressor.predict(test).reshape(len(target), -1)
        ends = regressor.predict_interval(test, COVERAGE).reshape(len(target), 2, -1)
        row["coverage"], row["width"] = interval_coverage(ends, target)
        row |= zip(FIFTHS, coverage_by_fifth(ends, target, predicted), strict=True)
        quantiles = regressor.predict_quantiles(test) if model == "quantile" else predicted
    else:
        losses: list[dict[str, Any]] = [{"loss": "absolute_error"}]
        if model == "hist_quantile":
            losses = [{"loss": "quantile", "quantile": level} for level in QUANTILES]
        options: dict[str, Any] = {"categorical_features": "from_dtype", "random_state": INTERVAL_SPLIT}
        trees = [[HistGradientBoostingRegressor(**loss, **options) for loss in losses] for _ in y.T]
        pairs = [(tree, column) for of_label, column in zip(trees, y.T, strict=True) for tree in of_label]
        row["seconds"] = measured_seconds(lambda: [tree.fit(x, column) for tree, column in pairs])
        quantiles = np.stack([np.stack([tree.predict(test) for tree in of_label], 1) for of_label in trees], 1)
        predicted = quantiles[..., len(losses) // 2]
    if model.endswith("quantile"):
        row["pinball"] = pinball(quantiles.reshape(*target.shape, -1), target)
    row["mae"] = float((np.abs(target - predicted).mean(axis=0) / target.std(axis=0)).mean())
    return {key: f"{value:.5f}" if isinstance(value, float) else value for key, value in row.items()}


def run(given: Args) -> None:
    """Score the models on each table in turn, but for those that the record has, and store the rows as they come."""
    short = given.switch("short")
    rows = {} if short else {(r["table"], r["model"]): r for r in stored_rows("losses")}
    for name, model in itertools.product(TABLES.index[: 1 if short else None], given.listed("models", MODELS)):
        if (name, model) not in rows:
            rows[name, model] = score_loss(name, model)
            store_rows(given, "losses", rows.values(), COLUMNS)


def loss_table(rows: Sequence[Mapping[str, str]]) -> str:
    """Return the table of losses beside scikit-learn's trees, and of the intervals' coverage."""
    frame = pd.DataFrame(rows).set_index("table")
    body = []
    for loss, score, rival in (("absolute", "mae", "hist_absolute"), ("quantile", "pinball", "hist_quantile")):
        ours, theirs = (frame.loc[frame["model"] == model, score].astype(float) for model in (loss, rival))
        ratio = (ours / theirs).dropna()
        body.append(
            [loss, score, f"{(ratio < 1).sum()} of {len(ratio)}", f"{100 * (np.exp(np.log(ratio).mean()) - 1):+.1f} %"]
        )
    return markdown_table(["loss", "score", "datasets below the trees", "mean ratio minus 1"], body)


@fills
def loss_tables() -> dict[str, dict[str, str]]:
    """Return the table of losses."""
    return {PAGE: {"losses": with_machine(loss_table(stored_rows("losses")), "losses")}}
