"""Learned invariance of finished runs: the run's model and rows, and what is written; and which runs are analysed."""

import json
from functools import partial
from pathlib import Path

import pytest
import torch

from cmixup import load_run
from cmixup.errors import InputError
from scripts.analysis import runs
from scripts.analysis.invariance import (
    INVARIANCE_COLUMNS,
    invariance_figures,
    is_of_cell,
    learned_invariance,
    measure_run,
    merged_csv,
)
from scripts.analysis.runs import check_publishable, dataset_of, run_folder, runs_of
from scripts.config.arguments import Args
from scripts.config.compose import compose_train
from scripts.driver import execute as run_module
from scripts.driver.execute import execute_job
from scripts.driver.job import plan_job
from scripts.records.records import read_csv
from tests.scripts.test_render import report


def test_the_rows_of_a_run_are_those_of_its_representation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "run_environment", lambda _: {"commit": "c0ffee", "dirty": False})
    words = ["dataset=crime", "method=erm", "debug=tiny", "experiment.name=table3", "train.batch_size=500", "seeds=[1]"]
    (folder,) = execute_job(plan_job(compose_train([*words, f"out={tmp_path}"])))
    content = json.loads((folder / "report.json").read_text())
    assert run_folder(content, tmp_path) == folder
    train = dataset_of(content["config"]["dataset"]).load(1).train
    with torch.no_grad():
        h = load_run(folder).model.features(train.x)
    every, largest = measure_run(content, tmp_path)
    assert (every["domains"], largest["domains"]) == ("all", "largest 10")
    for row, k in ((every, None), (largest, 10)):
        found = learned_invariance(h, train.y, train.domain, max_domains=k)
        assert float(row["value"]) == pytest.approx(found.value, rel=1e-3)
        assert float(row["valid_fraction"]) == pytest.approx(found.valid_fraction, rel=1e-3)
        assert (row["dataset"], row["method"], row["seed"], row["split"]) == ("crime", "erm", 1, "train")


def measured(seed: int = 0, **changes: str) -> dict[str, str]:
    base = {
        "dataset": "skillcraft", "method": "erm", "preset": "paper", "seed": str(seed), "split": "train",
        "domains": "all", "components": "2", "value": "0.5", "valid_fraction": "0.9", "pairs": "144", "run": "r",
    }  # fmt: skip
    return base | changes


def test_new_rows_replace_those_of_the_same_cell_alone(tmp_path: Path) -> None:
    path = tmp_path / "invariance.csv"
    assert invariance_figures(tmp_path) == {}
    path.write_text(merged_csv([], [measured(s) for s in (0, 1, 10, 2)] + [measured(dataset="crime")]))
    path.write_text(merged_csv(read_csv(path), [measured(3, value="0.1"), measured(3, preset="released")]))
    rows = read_csv(path)
    assert tuple(rows[0]) == INVARIANCE_COLUMNS
    assert [(r["dataset"], r["preset"], r["seed"], r["value"]) for r in rows] == [
        ("crime", "paper", "0", "0.5"),
        ("skillcraft", "paper", "3", "0.1"),
        ("skillcraft", "released", "3", "0.5"),
    ]
    assert list(invariance_figures(tmp_path)) == ["figures/invariance_paper.png", "figures/invariance_released.png"]


def test_runs_are_those_of_the_experiment_that_follow_the_preset(monkeypatch: pytest.MonkeyPatch) -> None:
    cell = {"experiment": "table3", "dataset": "crime"}
    others = ({"method": "cmixup", "options": {"method.bandwidth": 3.0}}, {"preset": "released"})
    reports = [report(run=str(k), **cell, **more) for k, more in enumerate(({}, *others))]
    monkeypatch.setattr(runs, "load_reports", lambda _: reports)
    given = Args(out="outputs", results="elsewhere")
    found = runs_of(given, ["table3"], partial(is_of_cell, ("crime", "paper", {})), "")
    assert [r["run"] for r in found] == ["0"]
    with pytest.raises(InputError, match="holds no finished run of table3 on skillcraft"):
        runs_of(given, ["table3"], lambda _: False, "table3 on skillcraft")


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"dirty": True}, "uncommitted"), ({"commit": ""}, "uncommitted"), ({"synthetic": True}, "synthetic data")],
)
def test_numbers_of_uncommitted_code_or_synthetic_data_are_refused(changes: dict, message: str) -> None:
    config = {"dataset": {"synthetic": changes.pop("synthetic", False)}}
    check_publishable([report(config={"dataset": {"synthetic": False}})])
    with pytest.raises(InputError, match=message):
        check_publishable([report(config=config, **changes)])
