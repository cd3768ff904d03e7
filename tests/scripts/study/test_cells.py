"""Cells: nothing is trained twice, no method sees test labels, and scores follow from what is kept."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cmixup.data import RegressionData
from cmixup.errors import InputError
from scripts.config.compose import compose_train
from scripts.driver.job import plan_job
from scripts.plan.rerun import published_cells
from scripts.records.rescored import verify_scores
from scripts.stats.scored import Scored, balanced_rmse, error_scores
from scripts.study import cells
from scripts.study.cells import (
    Report,
    Runs,
    cells_done,
    known_runs,
    read_store,
    study_rerun,
    train_cell,
    train_missing,
    write_cells,
)
from scripts.study.rules import Rules, StudyCell, load_rules

SHORT: dict[str, Any] = {"splits": 2, "n_trials": 3}


@pytest.fixture(autouse=True)
def _synthetic(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Rules, "words", synthetic_words)
    monkeypatch.setattr(cells, "run_environment", lambda _: {"commit": "c0ffee", "dirty": False, "versions": {}})


def synthetic_words(self: Rules, cell: StudyCell) -> list[str]:
    """Return the words of a small synthetic table."""
    group = ["dataset.group=area"] if cell.condition.grouped else []
    loss = [f"train.loss={self.loss}"] if self.loss != "squared" else []
    return [
        "dataset=csv", "dataset.synthetic=true", "dataset.target=price", *group, *loss, "logger=none",
        "train.epochs=3", "train.patience=1", "train.batch_size=128",
    ]  # fmt: skip


def dataset_of(rules: Rules, cell: StudyCell) -> Any:
    return plan_job(compose_train(rules.words(cell))).dataset


def parted(runs: Runs) -> tuple[list[Report], list[Report]]:
    """Return the reports of a cell's runs, and those of its trials."""
    finals, trials = ([r for r, _ in runs if ("trial" in r["options"]) == tried] for tried in (False, True))
    return finals, trials


def chosen(finals: list[Report], split: int) -> set[tuple[str, ...]]:
    return {tuple(run["words"]) for run in finals if run["split"] == split}


def best_trial(trials: list[Report], seed: int, metric: str = "nrmse") -> tuple[str, ...]:
    tried = [trial for trial in trials if trial["seed"] == seed]
    return tuple(min(tried, key=lambda trial: trial["scores"]["val"][metric])["words"])


@pytest.mark.parametrize("condition", ["random", "grouped"])
def test_a_cell_trains_nothing_that_erm_has_trained_and_its_scores_follow_from_what_is_kept(
    condition: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = load_rules()
    short = replace(rules, **SHORT, ensemble={**rules.ensemble, "weights": 3})
    erm, ours = short.cells(["dutch_school_tests"], [condition], ["erm", "mixup"])
    dataset, trained = dataset_of(short, erm), list[int]()

    @cache
    def load(split: int) -> RegressionData:
        data = dataset.load(split)
        return replace(data, test=replace(data.test, y=data.test.y + 1e6))  # which nothing that is trained predicts

    make_run = cells.make_run

    def watched(job: Any, seed: int, data: RegressionData) -> Any:
        trained.append(seed)
        assert not data.test.y.any()
        return make_run(job, seed, data)

    monkeypatch.setattr(cells, "make_run", watched)
    std = dataset.table.y.std(axis=0)
    runs = train_cell(erm, short, load, std)
    finals, trials = parted(runs)
    weights = 3 if condition == "random" else 2
    assert max(trial["scores"]["val"]["nrmse"] for trial in trials) < 10
    assert min(run["scores"]["test"]["nrmse"] for run in finals) > 1000
    for split in range(2):
        assert chosen(finals, split) == {best_trial(trials, 10 * split)}
    assert sorted(trained) == sorted([0] * 3 + [10] * 3 + [s + w for s in (0, 10) for w in range(1, weights + 1)])
    write_cells(tmp_path, runs)
    known = known_runs(tmp_path, short, "dutch_school_tests", condition, load)
    assert len(known) == 6 + 2 * weights
    trained.clear()
    more = train_cell(ours, short, load, std, known)
    second, _ = parted(more)
    pairs = [(run["seed"], run["words"]) for run in finals]
    again = [run for run in second if (run["seed"], run["words"]) in pairs]
    assert trained.count(0) == trained.count(10) == 1  # the one trial of a split that is not ERM's
    assert len(trained) == 2 + len(second) - len(again)
    assert len(second) == 4
    write_cells(tmp_path, more)
    stored = read_store(short, tmp_path)
    order = sorted((r for r, _ in (*runs, *more)), key=lambda r: (r["method"] != "erm", r["seed"], r["run"]))
    assert stored["val_nrmse"].tolist() == [r["scores"]["val"]["nrmse"] for r in order]
    assert stored["hyperparameters"].tolist() == [" ".join(r["words"]) for r in order]
    assert cells_done(tmp_path, short) == {erm.key, ours.key}
    verified = verify_scores(tmp_path)
    assert (verified.runs, verified.wrong) == (2 * weights + 4, [])
    assert train_missing(tmp_path, [erm, ours], short) == []  # all are done

    def other(split: int) -> RegressionData:
        return replace(load(split), checksums={"table.csv": "another"})

    with pytest.raises(InputError, match="dutch_school_tests has other raw data here than the runs of ERM"):
        known_runs(tmp_path, short, "dutch_school_tests", condition, other)


def test_likelihood_chooses_among_trials_and_its_scores_follow_from_what_is_kept(tmp_path: Path) -> None:
    short = replace(load_rules("likelihood"), **SHORT)
    erm, ours = short.cells(["penguin_mass"], ["rows100"], ["erm", "cmixup"])
    dataset = dataset_of(short, erm)
    std = dataset.table.y.std(axis=0)
    runs = train_cell(erm, short, dataset.load, std)
    assert all(set(parts["val"].prediction) == {"", "std"} for _, parts in runs if parts)
    write_cells(tmp_path, runs)
    more = train_cell(ours, short, dataset.load, std, known_runs(tmp_path, short, *ours.key[:2], dataset.load))
    write_cells(tmp_path, more)
    (first, _), (second, trials) = parted(runs), parted(more)
    for split in range(2):
        tried = [[r["scores"] for r in parted(part)[1] if r["seed"] == 10 * split] for part in (runs, more)]
        assert tried[0][:2] == tried[1][:2]  # ERM's, by likelihood
        assert chosen(second, split) == {best_trial(trials, 10 * split, "nll")}
    assert {"nrmse", "nll", "nll_rescaled", "crps", "coverage90"} <= second[0]["scores"]["test"].keys()
    n, scores, _, wrong, _ = verify_scores(tmp_path)
    assert (n, wrong) == (len(first) + len(second), [])
    assert scores == n * 2 * 8  # nrmse, balanced, and three of likelihood as they are and rescaled


def test_a_published_cell_is_trained_again_to_the_same_digits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    short = replace(load_rules(), **SHORT)
    monkeypatch.setattr(cells, "load_rules", lambda _: short)
    (mixup,) = short.cells(["penguin_mass"], ["random"], ["mixup"])
    dataset = dataset_of(short, mixup)
    write_cells(tmp_path / "results", train_cell(mixup, short, dataset.load, dataset.table.y.std(axis=0)))
    (published,) = published_cells(tmp_path / "results", experiments=[short.experiment])
    item, read = study_rerun(published, tmp_path / "again")
    assert item.call
    item.call(lambda _: None)
    assert published.scores == read()
    assert len(published.scores) == 4


def test_errors_weigh_tenths_of_the_label_alike_and_the_worst_group_has_thirty_rows() -> None:
    rare = np.array([[0.0]] * 99 + [[10.0]], dtype=np.float32)
    off = rare + np.array([[0.0]] * 99 + [[4.0]], dtype=np.float32)
    assert balanced_rmse(off, rare, np.array([2.0])) == pytest.approx(np.sqrt((0 + 4.0) / 2))
    domain = np.array([0] * 29 + [1] * 30 + [2] * 40)
    error = np.where(domain == 0, 9.0, np.where(domain == 1, 2.0, 1.0))[:, None].astype(np.float32)
    one = Scored({"": error}, np.zeros_like(error), domain)
    assert error_scores(one, np.ones(1), grouped=True)["nrmse_worst"] == pytest.approx(2.0)
    assert "nrmse_worst" not in error_scores(one, np.ones(1))
