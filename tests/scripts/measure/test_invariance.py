"""The measure on finished runs: the run's own model and rows, and what is written."""

import json
from functools import partial
from pathlib import Path

import pytest
import torch

from cmixup.errors import InputError
from cmixup.metrics import rmse
from scripts.config.arguments import Args
from scripts.config.compose import compose_train
from scripts.driver import execute as run_module
from scripts.driver.execute import execute_job
from scripts.driver.job import plan_job
from scripts.measure.divergence import learned_invariance
from scripts.measure.invariance import (
    INVARIANCE_COLUMNS,
    invariance_figure,
    invariance_figures,
    is_wanted,
    measure_run,
    merged_csv,
)
from scripts.measure.load_run import check_publishable, dataset_of, labels_of, model_of, runs_of
from scripts.records.experiment import load_experiment
from scripts.records.records import read_csv
from scripts.report.figures import to_png
from tests.scripts.test_render import leave_run, report


@pytest.fixture
def trained(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[dict]:
    """Two seeds of Crime's twin, of a table."""
    monkeypatch.setattr(run_module, "run_environment", lambda _: {"commit": "c0ffee", "dirty": False})
    words = ["dataset=crime", "method=erm", "debug=tiny", "experiment.name=table3", "train.batch_size=500", "seeds=2"]
    job = plan_job(compose_train([*words, f"out={tmp_path}"]))
    return [json.loads((folder / "report.json").read_text()) for folder in execute_job(job)]


def test_a_run_is_read_back_as_it_was(trained: list[dict], tmp_path: Path) -> None:
    for content in trained:
        data = dataset_of(content).load(content["seed"])
        model = model_of(content, data, tmp_path)
        assert not model.training
        with torch.no_grad():
            outputs = labels_of(content, data, torch.device("cpu")).to_labels(model(data.test.x))
            found = float(rmse(outputs, data.test.y))
        assert found == pytest.approx(content["scores"]["test"]["rmse"], rel=1e-5)
    assert trained[0]["scores"] != trained[1]["scores"]


def test_a_run_without_weights_is_named(trained: list[dict], tmp_path: Path) -> None:
    data = dataset_of(trained[0]).load(0)
    with pytest.raises(InputError, match=r"run \S+seed=0 has no weights: no such file"):
        model_of(trained[0], data, tmp_path / "elsewhere")


def test_the_rows_of_a_run_are_those_of_its_representation(trained: list[dict], tmp_path: Path) -> None:
    content = trained[1]
    data = dataset_of(content).load(1)
    with torch.no_grad():
        h = model_of(content, data, tmp_path).features(data.train.x)
    every, largest = measure_run(content, tmp_path)
    assert (every["domains"], largest["domains"]) == ("all", "largest 10")
    for row, k in ((every, None), (largest, 10)):
        found = learned_invariance(h, data.train.y, data.train.domain, max_domains=k)
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
    first = [measured(s) for s in (0, 1, 10, 2)] + [measured(dataset="crime")]
    path.write_text(merged_csv([], first))
    path.write_text(merged_csv(read_csv(path), [measured(3, value="0.1"), measured(3, preset="released")]))
    rows = read_csv(path)
    assert tuple(rows[0]) == INVARIANCE_COLUMNS
    assert [(r["dataset"], r["preset"], r["seed"], r["value"]) for r in rows] == [
        ("crime", "paper", "0", "0.5"),
        ("skillcraft", "paper", "3", "0.1"),
        ("skillcraft", "released", "3", "0.5"),
    ]


def test_the_figure_is_drawn_from_the_numbers_alone(tmp_path: Path) -> None:
    assert invariance_figures(tmp_path) == {}
    rows = [measured(s, method=m, value=str(0.1 * s - 0.05)) for m in ("erm", "cmixup", "irm") for s in range(3)]
    given = [*rows, measured(preset="released")]
    (tmp_path / "invariance.csv").write_text(merged_csv([], given))
    drawn = invariance_figures(tmp_path)
    assert list(drawn) == ["figures/invariance_paper.png", "figures/invariance_released.png"]
    written = to_png(drawn["figures/invariance_paper.png"])
    stored = [r for r in read_csv(tmp_path / "invariance.csv") if r["preset"] == "paper"]
    order = load_experiment("table3").methods
    assert written == to_png(invariance_figure(stored, order))
    assert written != to_png(invariance_figure([r | {"value": "1.5"} for r in stored], order))


def test_runs_are_those_of_table_3_that_follow_the_preset(tmp_path: Path) -> None:
    def leave(run: str, **changes: object) -> None:
        leave_run(tmp_path, report(experiment="table3", run=f"table3/{run}", dataset="crime", **changes))

    leave("a")
    leave("b", method="cmixup", options={"method.bandwidth": 3.0})
    leave("c", preset="released")
    given = Args(out=str(tmp_path), results="elsewhere")
    found = runs_of(given, ["table3"], partial(is_wanted, "crime", "paper"), "")
    assert [r["run"] for r in found] == ["table3/a"]
    with pytest.raises(InputError, match="holds no finished run of table3 on skillcraft"):
        runs_of(given, ["table3"], partial(is_wanted, "skillcraft", "paper"), "table3 on skillcraft")


@pytest.mark.parametrize(
    ("changes", "message"),
    [({"dirty": True}, "uncommitted"), ({"commit": ""}, "uncommitted"), ({"synthetic": True}, "synthetic data")],
)
def test_numbers_of_uncommitted_code_or_twins_are_refused(changes: dict, message: str) -> None:
    config = {"dataset": {"synthetic": changes.pop("synthetic", False)}}
    check_publishable(Args(), [report(config={"dataset": {"synthetic": False}})])
    check_publishable(Args(results="elsewhere"), [report(config=config, **changes)])
    with pytest.raises(InputError, match=message):
        check_publishable(Args(), [report(config=config, **changes)])
