"""Averages of the study's networks, scored where the predictions are: in the folder that trained them.

`results/study/ensembles.csv` has a row for each ensemble, table, setting and split; pages are rendered from it.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from cmixup.files import write_atomically
from cmixup.training.losses import STD
from scripts.records.published import EVERY_STUDY, published_runs, with_predictions
from scripts.stats.effects import BASE
from scripts.stats.scored import Parts, Scored, error_scores, normal_scores
from scripts.study.rules import WEIGHTS

METHOD, ENSEMBLE = "cmixup", "ERM x 5"
FILE = "study/ensembles.csv"  # in a store
#: Whose predictions are averaged: methods, and the numbers of their initial weights. No number is there twice: where
#: validation selected ERM for C-Mixup, runs of the same number are the same run.
ENSEMBLES: Mapping[str, Mapping[str, tuple[int, ...]]] = {
    "ERM x 2": {BASE: (1, 2)},
    ENSEMBLE: {BASE: (1, 2, 3, 4, 5)},
    "C-Mixup x 5": {METHOD: (1, 2, 3, 4, 5)},
    "ERM x 3 + C-Mixup x 2": {BASE: (1, 2, 3), METHOD: (4, 5)},
}
KEY = ["experiment", "table", "condition", "method", "split"]  # columns that name a row


def read_ensembles(store: Path, experiment: str) -> pd.DataFrame:
    """Return the rows of an experiment of the study; none where it has no ensembles."""
    path = store / FILE
    rows = pd.read_csv(path) if path.is_file() else pd.DataFrame(columns=KEY)
    experiment_rows = rows[rows["experiment"] == experiment].drop(columns="experiment")
    return experiment_rows.assign(seed=experiment_rows["split"]).dropna(axis="columns", how="all")


def keep_ensembles(store: Path, results: Path) -> None:
    """Score the ensembles whose networks' predictions a store has, and write them beside those that `results` has."""
    if (new := pd.DataFrame(ensemble_rows(store))).empty:
        return
    path = results / FILE
    old = [pd.read_csv(path)] if path.is_file() else []
    rows = pd.concat([*old, new]).drop_duplicates(KEY, keep="last")
    rows["method"] = pd.Categorical(rows["method"], list(ENSEMBLES))
    write_atomically(path, rows.sort_values(KEY).to_csv(index=False, lineterminator="\n"))


def ensemble_rows(store: Path) -> Iterator[dict[str, Any]]:
    """Yield the scores of each of `ENSEMBLES` on each split whose predictions of all members a store has."""
    places = dict[tuple[str, str, str], dict[tuple[str, int], Parts]]()  # by method and seed
    stds = dict[tuple[str, str, str], np.ndarray]()
    for run, parts in with_predictions(store, published_runs(store, EVERY_STUDY)):
        if parts and run["method"] in (BASE, METHOD):
            place = run["experiment"], run["dataset"], run["shared"]["options"]["condition"]
            places.setdefault(place, {})[run["method"], run["seed"]] = parts
            stds[place] = np.array(run["shared"]["std"])
    for place, runs in places.items():
        for split in sorted({seed // WEIGHTS for _, seed in runs}):
            for name, members in ENSEMBLES.items():
                keys = [(method, WEIGHTS * split + k) for method, numbers in members.items() for k in numbers]
                if runs.keys() >= set(keys):
                    val, test = (average([runs[key][part] for key in keys]) for part in ("val", "test"))
                    scores = error_scores(test, stds[place]) | normal_scores(test, val, stds[place])
                    row = dict(zip(KEY, (*place, name, split), strict=True))
                    yield row | {f"test_{score}": value for score, value in scores.items()}


def average(members: Sequence[Scored]) -> Scored:
    """Return the mean prediction of networks; of distributions the normal one with the moments of their mixture."""
    means = np.stack([member.prediction[""] for member in members]).astype(np.float64)
    prediction = {"": means.mean(axis=0)}
    if STD in members[0].prediction:
        stds = np.stack([member.prediction[STD] for member in members]).astype(np.float64)
        prediction[STD] = np.sqrt((stds**2 + means**2).mean(axis=0) - prediction[""] ** 2)
    return Scored(prediction, members[0].target, members[0].domain)
