"""What is published of the study: whole settings alone count, ensembles are means of what is kept, controls hold."""

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from cmixup.training.losses import STD
from scripts.report import study_evidence
from scripts.report.study_evidence import (
    AGAIN,
    FIRST,
    Setting,
    control_runs,
    leading_setting,
    mean_summaries,
    read_settings,
)
from scripts.stats.scored import Scored, normalised_rmse
from scripts.study.cells import run_head, write_cells
from scripts.study.ensembles import ENSEMBLES, average, keep_ensembles, read_ensembles
from scripts.study.rules import PROTOCOL2, WEIGHTS, Rules, StudyCell, load_rules

TARGET = np.array([[0.0], [1.0], [2.0], [4.0]], dtype=np.float32)
FIVE = ("erm", "mixup", "cmixup", "regmixup", "resample")


@pytest.fixture(scope="module")
def rules() -> Rules:
    return load_rules()


def predicted(method: str, seed: int) -> np.ndarray:
    """Return what a made-up network predicts."""
    return TARGET + np.random.default_rng([seed, len(method)]).integers(-4, 5, TARGET.shape).astype(np.float32)


def put(store: Path, rules: Rules, cells: list[StudyCell], weights: int) -> None:
    """Write cells of made-up networks into a store."""
    runs: list[tuple[dict[str, Any], Any]] = []
    for cell in sorted(cells, key=lambda cell: cell.table.name):
        for split, number in itertools.product(range(rules.splits), range(1, weights + 1)):
            seed = WEIGHTS * (rules.first_split + split) + number
            one = Scored({"": predicted(cell.method, seed)}, TARGET, np.zeros(4, np.uint8))
            error = {"nrmse": normalised_rmse(one.prediction[""], TARGET, np.ones(1))}
            about = {"words": [f"method={cell.method}"], "scores": {"val": error, "test": error}, "facts": {},
                     "best_epoch": 3, "split": seed // WEIGHTS, "std": [1.0], "seconds": 30.0}  # fmt: skip
            runs.append(({**run_head(cell, rules, seed), **about}, {"val": one, "test": one}))
    write_cells(store, runs)
    keep_ensembles(store, store)


def made(rules: Rules, levels: dict[str, float], weights: int = 2, tables: str = "ab") -> Setting:
    """Return a setting of small tables whose methods have errors of some levels."""
    (condition,) = (condition for condition in rules.conditions if condition.name == "random")
    runs = pd.DataFrame([
        {"table": t, "condition": "random", "method": m, "trial": None, "seed": WEIGHTS * s + w, "split": s,
         "test_nrmse": v * (1 + 0.01 * s * w * (k + 1))}
        for k, t in enumerate(tables) for m, v in levels.items() for s in range(5) for w in range(1, weights + 1)
    ])  # fmt: skip
    return Setting(rules, condition, f"{len(tables)} datasets", runs)


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch) -> Callable[..., Rules]:
    """Rules of the first three tables, of which two are the smallest."""

    def load_few(name: str = PROTOCOL2) -> Rules:
        every = load_rules(name)
        return replace(every, tables=every.tables[:3], lite=2)

    monkeypatch.setattr(study_evidence, "load_rules", load_few)
    return load_few


def test_a_setting_counts_on_all_tables_or_on_the_smallest_with_ensembles_beside_it(
    few: Callable[..., Rules], tmp_path: Path
) -> None:
    rules = few()
    lite = rules.lite_tables()
    put(tmp_path, rules, rules.cells(lite[:-1], ["rows100"], FIVE), 2)
    put(tmp_path, rules, rules.cells(lite[-1:], ["rows100"], FIVE[:4]), 2)
    assert read_settings(PROTOCOL2, tmp_path) == []
    put(tmp_path, rules, rules.cells(lite[-1:], ["rows100"], FIVE[4:]), 2)
    read_settings.cache_clear()
    (setting,) = read_settings(PROTOCOL2, tmp_path)
    assert setting.where == "100 training rows, 2 smallest datasets, 5 splits"
    assert set(setting.runs["table"]) == set(lite)
    assert set(setting.runs["method"]) == {*FIVE, "ERM x 2", FIRST, AGAIN}  # two weights, no more
    assert setting.effect("nothing") is None
    effect = setting.effect("mixup")
    assert effect is not None
    assert effect.tables.keys() == set(lite)


def test_ensembles_are_means_of_predictions_and_average_no_run_with_itself(rules: Rules, tmp_path: Path) -> None:
    put(tmp_path, rules, rules.cells(["penguin_mass"], ["random"], ["erm", "cmixup"]), 5)
    ensembles = read_ensembles(tmp_path, rules.experiment)
    assert set(ensembles["method"]) == ENSEMBLES.keys()
    for name, members in ENSEMBLES.items():
        numbers = [number for seeds in members.values() for number in seeds]
        assert len(set(numbers)) == len(numbers)  # C-Mixup's run is ERM's of this number where tuning chose ERM
        for split, error in enumerate(ensembles.loc[ensembles["method"] == name, "test_nrmse"]):
            predictions = [predicted(m, WEIGHTS * split + k) for m, ks in members.items() for k in ks]
            assert error == pytest.approx(normalised_rmse(np.mean(predictions, axis=0), TARGET, np.ones(1)))


def test_the_average_of_distributions_has_the_moments_of_their_mixture() -> None:
    members = [Scored({"": TARGET + k, STD: np.full_like(TARGET, 1.0 + k)}, TARGET, np.zeros(4)) for k in range(2)]
    mixture = average(members)
    draws = np.random.default_rng(0).normal([0, 1], [1, 2], size=(200_000, 2)).ravel()
    assert mixture.prediction[""] == pytest.approx(TARGET + 0.5)
    assert mixture.prediction[STD] == pytest.approx(np.full_like(TARGET, draws.std()), rel=0.01)


def test_later_splits_join_once_both_methods_have_all_tables(few: Callable[..., Rules], tmp_path: Path) -> None:
    rules, more = few(), few("more_splits")
    put(tmp_path, rules, rules.cells(conditions=["random"]), 2)
    put(tmp_path, more, more.cells(methods=["erm"]), 2)
    assert leading_setting(tmp_path).splits == 5
    put(tmp_path, more, more.cells(methods=["cmixup"]), 2)
    leading_setting.cache_clear()
    lead = leading_setting(tmp_path)
    assert lead.splits == 25
    splits = lead.runs.groupby(["table", "method"])["split"].nunique()
    assert set(splits.index.get_level_values("method")) == {"erm", "cmixup", "ERM x 2"}
    assert set(splits) == {25}


def test_summaries_agree_where_all_changes_do_and_the_median_ignores_a_table(rules: Rules) -> None:
    setting = made(rules, {"erm": 1.0, "mixup": 1.1}, tables="abcdefghijkl")
    ours = mean_summaries(setting, "mixup")
    assert ours.pop("mean of log ratios").mean == pytest.approx(100 * math.log(1.1))
    far = setting.runs["table"].eq("a") & setting.runs["method"].eq("mixup")
    setting.runs.loc[far, "test_nrmse"] *= 9
    shifted = mean_summaries(setting, "mixup")
    assert shifted["mean"].mean > ours["mean"].mean + 50
    for name in ("median", "mean without 10% on each side"):
        assert (shifted[name].low, shifted[name].high) == pytest.approx((ours[name].low, ours[name].high), abs=0.5)


def test_erm_stands_against_other_weights_of_itself(rules: Rules) -> None:
    for weights, first, second in ((5, {1, 2}, {3, 4}), (2, {1}, {2})):
        runs = control_runs(made(rules, {"erm": 1.0}, weights).runs)
        numbers = (runs["seed"] % WEIGHTS).groupby(runs["method"]).agg(set)
        assert numbers.to_dict() == {FIRST: first, AGAIN: second}
