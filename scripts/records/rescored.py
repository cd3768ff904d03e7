"""Scores computed from stored predictions: they verify published scores, and fill in metrics that a run lacks.

A metric of `cmixup.metrics` with `everywhere` reaches published runs here (`table_runs`), until they are published with
it.
"""

import functools
import math
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd
import torch

from cmixup.metrics import METRICS, NAIVE, OVER_DOMAINS, RESCALED, parse_score, with_everywhere
from cmixup.metrics import score as metric_score
from cmixup.training.losses import mean_names
from scripts.records.experiment import RESULTS
from scripts.records.published import PREDICTED, STUDY, published_runs, with_predictions
from scripts.records.run_tables import PARTS, choose_variants, scores_of
from scripts.stats.scored import Parts, Scored, error_scores, finite_or_inf, normal_scores

#: How far a score that was published before predictions were rounded may lie from what these give: a correlation by
#: `NEAR_R`, any other by this share of itself. Scores that were published since are equal.
NEAR, NEAR_R = 2.5e-4, 1e-4
SKIPPED = "mape_skipped"  # how many targets of 0 MAPE leaves out


def compute_score(name: str, kept: Scored, std: Sequence[float] = (), val: Scored | None = None) -> float:
    """Return the score that a report calls `name`, such as "worst_rmse", "mse_20_steps" or the study's "nrmse".

    `std` of the targets is the unit of the study's scores, whose worst value is infinity. `val` has the validation
    rows, on which the factor of `_rescaled` scores is chosen.
    """
    unit = np.array(std or (1.0,))
    if name.startswith("nrmse"):
        return finite_or_inf(error_scores(kept, unit, grouped=name == "nrmse_worst")[name])
    if name == SKIPPED:
        return float((kept.target == 0).sum())
    over, metric, predictor = parse_score(name)
    if METRICS[metric].normal:
        assert val is not None, name
        value = normal_scores(kept, val, unit, predictor.removesuffix(RESCALED).removesuffix("_"))[name]
        return finite_or_inf(value) if std else value
    arrays = kept.prediction[predictor], kept.target, kept.domain.astype(np.int64)
    return float(metric_score(over + metric, *map(torch.from_numpy, arrays)))


Scores = Mapping[str, Mapping[str, float]]  # by split and name


def scores_again(scores: Scores, kept: Parts, std: Sequence[float] = ()) -> dict[str, dict[str, float]]:
    """Return the scores of the splits whose predictions are kept, computed from these; no baseline's are."""
    val = kept.get("val")
    return {
        part: {name: compute_score(name, kept[part], std, val) for name in values if NAIVE not in name}
        for part, values in scores.items() if part in kept
    }  # fmt: skip


class Verified(NamedTuple):
    """Published runs and scores that were computed again: how many, and what is wrong with them."""

    runs: int
    scores: int
    exact: int  # scores that are equal to the last bit
    wrong: list[str]  # a line for each score that is neither exact nor near
    without: Counter[str]  # by experiment and dataset, how many runs lack predictions that their seeds should have


def verify_scores(results: Path) -> Verified:
    """Compute every published score again."""
    runs, scores, exact, wrong, without = 0, 0, 0, list[str](), Counter[str]()
    for run, kept in with_predictions(results, published_runs(results, ["*"])):
        run_scores = scores_of(run)
        computed = scores_again(run_scores, kept, run["shared"].get("std", ()))
        if len(computed) < len(run_scores) and run["seed"] in PREDICTED and not run["experiment"].startswith(STUDY):
            without[f"{run['experiment']} {run['dataset']}"] += 1
        runs += bool(kept)
        for part, name, again in ((part, *score) for part, values in computed.items() for score in values.items()):
            published = run_scores[part][name]
            same = published == finite_or_inf(again)
            scores, exact = scores + 1, exact + same
            # Steps of the stored predictions make no larger differences.
            is_r = name.removeprefix("worst_").removeprefix("mean_").partition("_")[0] == "r"
            near = math.isclose(published, again, abs_tol=NEAR_R if is_r else 0.0, rel_tol=0.0 if is_r else NEAR)
            if not (same or near):
                wrong.append(f"{run['run']}: {part} {name} {published!r}, its predictions give {again!r}")
    return Verified(runs, scores, exact, wrong, without)


def fill_metrics(runs: pd.DataFrame, results: Path) -> pd.DataFrame:
    """Return runs with the metrics that every run has, lacking ones from predictions.

    Runs whose predictions are not kept stay as they are.
    """
    columns = [f"{part}_{name}" for part in PARTS for name in with_everywhere(())]
    lacking = runs[runs.reindex(columns=columns).isna().any(axis="columns")].reset_index(names="place")
    filled = {
        run["place"]: {f"{part}_{name}": value for part, scores in lacking_scores(scores_of(run), kept).items()
                       for name, value in scores.items()}
        for run, kept in with_predictions(results, lacking)
    }  # fmt: skip
    return runs.combine_first(pd.DataFrame.from_dict(filled, orient="index"))


def lacking_scores(scores: Scores, kept: Parts) -> dict[str, dict[str, float]]:
    """Return the metrics that every run has and this one lacks, computed from its predictions."""
    metrics, lacking = with_everywhere(()), dict[str, dict[str, float]]()
    for part, predictions in kept.items():
        names = [f"{name}_{of}" if of else name for name in metrics for of in mean_names(predictions.prediction)]
        if any(name.startswith(OVER_DOMAINS) for name in scores.get(part, {})):
            names += [over + name for name in metrics for over in OVER_DOMAINS]
        lacking[part] = {name: compute_score(name, predictions) for name in names if name not in scores.get(part, {})}
    return lacking


@functools.cache
def table_runs(results: Path = RESULTS) -> pd.DataFrame:
    """Return all published runs of tables and figures with the metrics that every run has, read once a process."""
    return choose_variants(fill_metrics(published_runs(results), results))
