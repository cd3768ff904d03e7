"""What is published of protocol 2: whole tables alone count, and ensembles are means of what is kept."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scripts.driver.predictions import Scored
from scripts.protocol import published
from scripts.protocol.protocols import SEA_LEVEL, WEIGHTS, Protocol2, load_protocol2, load_rules
from scripts.protocol.rules import StudyCell
from scripts.records.study_errors import normalised_rmse
from scripts.study import evidence
from scripts.study.evidence import ENSEMBLES, Setting, model_seconds, study_settings

TARGET = np.array([[0.0], [1.0], [2.0], [4.0]], dtype=np.float32)


@pytest.fixture(scope="module")
def rules() -> Protocol2:
    return load_protocol2()


def predicted(method: str, seed: int) -> np.ndarray:
    """What a made-up network predicts."""
    return TARGET + np.random.default_rng([seed, len(method)]).integers(-4, 5, TARGET.shape).astype(np.float32)


def put(store: Path, rules: Protocol2, cells: list[StudyCell], weights: int) -> None:
    """Write cells of made-up networks, or of models, into a store."""
    for cell in cells:
        rows, kept = [], []
        for seed in (WEIGHTS * split + number for split in range(5) for number in range(1, weights + 1)):
            own = predicted(cell.method, seed)
            error = normalised_rmse(own, TARGET, np.ones(1))
            rows.append({"seed": seed, "split": seed // WEIGHTS, "options": [f"method={cell.method}"], "val": error,
                         "test": error, "best_epoch": 3})  # fmt: skip
            one = Scored({"": own}, TARGET, np.zeros(4, np.uint8))
            kept.append({"val": one, "test": one})
        trials = [{"seed": WEIGHTS * s, "options": [], "val": 1.0} for s in range(5) for _ in range(rules.trials_each)]
        record = {**dict(zip(published.OF_CELL, cell.key, strict=True)), "seeds": rows, "std": [1.0], "seconds": 30.0,
                  "rules": rules.checksum, "trials": trials if rules.name == "protocol2" else []}  # fmt: skip
        published.write_cells(store, published.to_runs(record, kept, rules))


def by_name(store: Path) -> dict[str, Setting]:
    return {setting.condition.name: setting for setting in study_settings(store)}


def test_a_table_counts_once_it_has_every_method_and_sea_level_stands_beside_it(
    rules: Protocol2, tmp_path: Path
) -> None:
    five = ("erm", "mixup", "cmixup", "regmixup", "resample")
    put(tmp_path, rules, rules.cells(["penguin_mass"], ["rows100"], five), 2)
    put(tmp_path, rules, rules.cells(["csf_tau"], ["rows100"], five[:4]), 2)
    sea = load_rules(SEA_LEVEL)
    put(tmp_path, sea, sea.cells(["penguin_mass", "csf_tau"], ["rows100"], ["ridge"]), 1)
    found = by_name(tmp_path)
    setting = found["rows100"]
    assert (setting.tables, setting.of, setting.whole) == (["penguin_mass"], 30, False)
    assert setting.progress == "1 of 30 tables so far"
    assert [each.of for each in found.values()] == [30, 30, 15, 30]
    assert {r["method"] for r in setting.others} == {"ridge", "ERM x 2", "ERM + C-Mixup"}  # two weights, no more
    assert {r["table"] for r in setting.others} == {"penguin_mass"}
    assert not found["random"].tables
    spent = model_seconds(setting, rules)
    assert spent["erm"] == pytest.approx(9 * 30 / 50)  # 40 trials and 10 runs
    assert spent["mixup"] == pytest.approx(9 * 30 / 40)  # of which 10 trials are ERM's
    assert spent["ERM + C-Mixup"] == pytest.approx(9 * (30 / 50 + 30 / 40))
    assert spent["ridge"] == pytest.approx(30 / 5)


def test_ensembles_are_means_of_predictions_and_average_no_run_with_itself(rules: Protocol2, tmp_path: Path) -> None:
    put(tmp_path, rules, rules.cells(["penguin_mass"], ["random"], ["erm", "cmixup"]), 5)
    records: list[dict[str, Any]] = published.read_store(rules, tmp_path)
    found = {record["method"]: record for record in evidence.ensemble_records(records, rules, tmp_path)}
    assert found.keys() == ENSEMBLES.keys()
    for name, members in ENSEMBLES.items():
        numbers = [number for each in members.values() for number in each]
        assert len(set(numbers)) == len(numbers)  # C-Mixup's run is ERM's of this number where tuning chose ERM
        for split, row in enumerate(found[name]["seeds"]):
            own = [predicted(m, WEIGHTS * split + k) for m, each in members.items() for k in each]
            assert row["test"] == pytest.approx(normalised_rmse(np.mean(own, axis=0), TARGET, np.ones(1)))


@pytest.mark.parametrize("weights", [2, 5])
def test_erm_stands_against_other_weights_of_itself(rules: Protocol2, weights: int) -> None:
    condition = next(each for each in rules.conditions if each.name == "random")
    rows = [
        {"seed": WEIGHTS * s + k, "split": s, "test": 1.0 + 0.01 * s * k * k} for s in range(5) for k in range(weights)
    ]
    records = [
        {"table": t, "condition": "random", "method": m, "seeds": rows[::-1]} for t in "ab" for m in ("erm", "x")
    ]
    own = Setting(condition, 2, records).against_itself(rules)
    assert own is not None
    first, second = (0.5, 6.5) if weights == 5 else (0.0, 1.0)  # of 0, 1, 4, 9: means of two, or one and one
    base = np.mean([1.0 + 0.01 * s * first for s in range(5)])
    expected = np.mean([0.01 * s * (second - first) for s in range(5)]) / base * 100
    assert own.means == {table: pytest.approx(expected) for table in "ab"}


def test_an_effect_is_against_whatever_is_named(rules: Protocol2) -> None:
    condition = next(each for each in rules.conditions if each.name == "random")
    levels = {"erm": 1.0, "x": 1.1, "five": 0.8}
    made = [
        {"table": t, "condition": "random", "method": m,
         "seeds": [{"seed": s, "split": s, "test": v + 0.01 * s * k} for s in range(5)]}
        for k, t in enumerate("ab") for m, v in levels.items()
    ]  # fmt: skip
    networks, others = ([r for r in made if (r["method"] == "five") == own] for own in (False, True))
    setting = Setting(condition, 2, networks, others)
    for method, base in (("x", "erm"), ("five", "erm"), ("five", "x")):
        own = setting.effect(method, rules, base=base)
        assert own is not None
        assert own.means["a"] == pytest.approx(100 * (levels[method] / levels[base] - 1))
        assert own.sure == 1 - rules.level
    assert setting.effect("nothing", rules) is None
    assert setting.effect("x", rules, "test_worst") is None
