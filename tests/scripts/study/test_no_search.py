"""The design without a search: ERM's chosen rate and decay for every method, and five sets of initial weights."""

import csv

import numpy as np
import pytest

from scripts.config.compose import compose_train
from scripts.driver.job import plan_job
from scripts.protocol import cell as cells
from scripts.protocol import published
from scripts.protocol.cell import train_cell
from scripts.protocol.protocols import FOLDER, NO_SEARCH, NoSearch, load_protocol2, load_rules
from scripts.protocol.rules import Run
from tests.scripts.study.test_protocol2 import twin_words


@pytest.fixture(scope="module")
def rules() -> NoSearch:
    found = load_rules(NO_SEARCH)
    assert isinstance(found, NoSearch)
    return found


def test_chosen_rates_and_decays_are_those_of_erms_published_runs(rules: NoSearch) -> None:
    protocol2, settings = load_protocol2(), {condition.name for condition in rules.conditions}
    expected = {}
    for record in published.read_store(protocol2):
        if record["method"] == "erm" and record["condition"] in settings:
            for row in record["seeds"]:
                words = dict(word.split("=", 1) for word in row["options"])
                assert words.pop("method") == "erm"
                key = record["table"], record["condition"], row["split"]
                expected[key] = tuple(float(words[f"train.{name}"]) for name in ("lr", "weight_decay"))
    assert rules.chosen == expected
    assert len(expected) == 3 * 30 * 5
    with (FOLDER / "chosen.csv").open(newline="") as file:
        assert len(list(csv.DictReader(file))) == len(expected)  # no line twice


@pytest.mark.parametrize("condition", ["rows100", "rows100_noise", "random"])
def test_every_method_has_erms_rate_and_five_weights_on_each_split(condition: str, rules: NoSearch) -> None:
    for cell in rules.cells(["penguin_mass"], [condition]):
        for split, tuning in enumerate(rules.tunings(cell)):
            ((*_, rate, decay),) = tuning.trials
            chosen = rules.chosen["penguin_mass", condition, split]
            assert (rate, decay) == (f"train.lr={chosen[0]}", f"train.weight_decay={chosen[1]}")
            assert tuning.finals == [Run(split, 10 * split + weights) for weights in range(1, 6)]
            plan_job(compose_train(rules.command(cell, tuning.trials[0])))


def test_a_cell_trains_no_trials_and_all_its_runs(rules: NoSearch, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Run] = []
    trained = cells.train_runs

    def noted(runs, load, **how):  # type: ignore[no-untyped-def]
        asked.extend(run for _, run in runs)
        return trained(runs, load, **how)

    monkeypatch.setattr(cells, "train_runs", noted)
    (cell,) = rules.cells(["penguin_mass"], ["rows100"], ["input_noise"])
    monkeypatch.setattr(NoSearch, "words", twin_words)
    record, parts = train_cell(cell, rules, plan_job(compose_train(rules.words(cell))).dataset.load, np.ones(1))
    assert asked == [run for tuning in rules.tunings(cell) for run in tuning.finals]
    assert record["trials"] == []
    assert [(row["split"], row["seed"]) for row in record["seeds"]] == [tuple(run) for run in asked]
    assert len(parts) == 25
    again = published.to_record(report for report, _ in published.to_runs(record, parts, rules))
    assert (again["seeds"], again["trials"]) == (record["seeds"], [])
