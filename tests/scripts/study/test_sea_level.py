"""Sea level: the rows are those of protocol 2, models are fitted to training rows alone, absent packages are named."""

import importlib.util
from dataclasses import replace
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from cmixup.data import RegressionData
from cmixup.errors import InputError
from scripts.config.compose import compose_train
from scripts.driver.job import plan_job
from scripts.protocol import cell as cells
from scripts.protocol import published, work
from scripts.protocol.protocols import SEA_LEVEL, Protocol2, SeaLevel, load_protocol2, load_rules
from scripts.protocol.published import experiment_of
from scripts.records.rescored import verify_scores
from scripts.study import __main__ as command
from tests.scripts.study.test_protocol2 import as_trained, twin_words


@pytest.fixture(scope="module")
def rules() -> SeaLevel:
    found = load_rules(SEA_LEVEL)
    assert isinstance(found, SeaLevel)
    return found


def test_settings_tables_and_rows_are_those_of_protocol_2(rules: SeaLevel) -> None:
    networks = load_protocol2()
    assert [replace(c, methods=()) for c in rules.conditions] == [replace(c, methods=()) for c in networks.conditions]
    assert rules.checksum.split()[1:] == networks.checksum.split()
    for condition in rules.conditions:
        (ours,) = rules.cells(["dutch_school_tests"], [condition.name], ["ridge"])
        (theirs,) = networks.cells(["dutch_school_tests"], [condition.name], ["erm"])
        assert rules.words(ours) == networks.words(theirs)
        first = [tuning.finals[0] for tuning in networks.tunings(theirs)]
        assert [run for tuning in rules.tunings(ours) for run in tuning.finals] == first


def test_a_model_is_fitted_to_training_rows_and_its_scores_follow_from_what_is_kept(
    rules: SeaLevel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Protocol2, "words", twin_words)
    monkeypatch.setattr(cells, "run_environment", lambda _: {"commit": "c0ffee", "dirty": False, "versions": {}})
    short = replace(rules, splits=2)
    (cell,) = short.cells(["dutch_school_tests"], ["grouped"], ["ridge"])
    dataset = plan_job(compose_train(short.words(cell))).dataset
    rows = cache(dataset.load)

    def load(split: int) -> RegressionData:  # labels of validation and test that tell nothing
        data = rows(split)
        return replace(data, val=replace(data.val, y=0 * data.val.y), test=replace(data.test, y=0 * data.test.y))

    std = dataset.table.y.std(axis=0)
    record, parts = cells.fit_cell(cell, short, load, std)
    for split, one in enumerate(parts):
        train, test = rows(split).train, rows(split).test
        x, y = train.x.numpy().astype(float), train.y.numpy().astype(float)
        slope = np.linalg.solve((x - x.mean(0)).T @ (x - x.mean(0)) + np.eye(x.shape[1]), (x - x.mean(0)).T @ y)
        ours = y.mean(0) + (test.x.numpy() - x.mean(0)) @ slope
        assert one["test"].prediction[""] == pytest.approx(ours, rel=1e-3, abs=1e-3 * std[0])
    assert record["versions"].keys() == {"scikit-learn"}
    published.write_cells(tmp_path, published.to_runs(record, parts, short))
    assert [as_trained(one) for one in published.read_store(short, tmp_path)] == [record]
    assert (found := verify_scores(tmp_path))[:2] == (2, 2 * sum(k not in ("seed", "split", "options", "best_epoch")
                                                      for k in record["seeds"][0]))  # fmt: skip
    assert not found.wrong


def test_a_package_that_is_not_installed_is_named_before_any_work(
    rules: SeaLevel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    find = importlib.util.find_spec
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None if name == "catboost" else find("json"))
    with pytest.raises(InputError, match="methods has catboost, whose package is not installed: pip install catboost"):
        work.train_missing(tmp_path, rules.cells(["penguin_mass"]), rules)
    cells.check_packages(rules.cells(methods=["ridge", "lightgbm"]), rules)


def test_the_name_of_the_last_version_still_works(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    monkeypatch.setattr(command, "copy_cells", lambda *where, **_: asked.append(where[2].name) or 0)
    command.main(["publish", "rules=sea_level"])
    command.main(["publish", "rules=baselines"])
    assert asked == ["baselines", "baselines"]
    assert capsys.readouterr().err.count("rules=sea_level is now rules=baselines") == 1
    assert experiment_of(load_rules(SEA_LEVEL)) == "study_sea_level"  # as published records say
