"""Published scores are what the kept predictions give, computed by code of its own."""

from __future__ import annotations

import math
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from scripts.driver.compose import compose_train
from scripts.driver.execute import execute
from scripts.driver.job import plan
from scripts.driver.predictions import PREDICTIONS, Scored, read_cells, read_predictions
from scripts.driver.runs import load_reports
from scripts.records.published import (
    cell_name,
    keep_predictions,
    predictions_file,
    published_reports,
    write_reports,
)
from scripts.records.scores import score
from scripts.verify import main

CELLS = {"crime": 2, "dti_davis": 1}  # RMSE, MAPE with zeros left out and worst domains; R, and its worst domain


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Published results of twins: runs of two datasets with all kinds of scores."""
    folder = tmp_path_factory.mktemp("metrics")
    for dataset, seeds in CELLS.items():
        words = [f"dataset={dataset}", "debug=tiny", "experiment.name=table3", "device=cpu", "method=erm"]
        small = ["dataset.protein_length=100"] if dataset == "dti_davis" else []
        execute(plan(compose_train([*words, *small, f"seeds=0..{seeds - 1}", f"out={folder / 'out'}"])))
    reports = load_reports(folder / "out" / "runs")
    kept = ((r, read_predictions(folder / "out" / "runs" / r["run"] / PREDICTIONS)[r["seed"]]) for r in reports)
    keep_predictions(folder / "results", kept)
    write_reports(folder / "results", reports)
    return folder / "results"


@pytest.fixture
def published(trained: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "results"))


def verify(results: Path) -> int:
    """Run the command and return its status."""
    try:
        main(["scores", f"results={results}"])
    except SystemExit as stop:
        return int(str(stop.code))
    return 0


def test_all_scores_repeat_bit_for_bit(published: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert verify(published) == 0
    reports = published_reports(published)
    n = sum(len(scores) for r in reports for scores in r["scores"].values())
    names = {name for r in reports for name in r["scores"]["test"]}
    assert {"rmse", "mape", "mape_skipped", "worst_rmse", "mean_rmse", "r", "worst_r", "mean_r"} <= names
    assert f"{n} of {n} scores of 3 runs are what their predictions give" in capsys.readouterr().out


@pytest.mark.parametrize(
    "change",
    [lambda v: v + 1e-3, lambda v: math.nextafter(v, math.inf), lambda _: math.nan],
    ids=["1e-3", "ulp", "nan"],
)
def test_a_changed_record_is_named(
    change: Callable[[float], float], published: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (report,) = [r for r in published_reports(published) if (r["dataset"], r["seed"]) == ("crime", 1)]
    report["scores"]["test"]["worst_rmse"] = change(report["scores"]["test"]["worst_rmse"])
    write_reports(published, [report])
    assert verify(published) == 1
    told = capsys.readouterr()
    assert f"DIFFERS {report['run']}: test worst_rmse" in told.err
    assert told.err.count("DIFFERS") == 1


def test_a_changed_prediction_is_named(published: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = published_reports(published)[0]
    kept = read_cells(predictions_file(published, first))[cell_name(first)][0]
    kept["val"].prediction[""][0] += 1
    keep_predictions(published, [(first, kept)])
    assert verify(published) == 1
    assert "seed=0: val rmse" in capsys.readouterr().err


def test_runs_without_predictions_are_counted_and_none_at_all_is_no_success(
    published: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = sorted((published / "predictions").rglob("*.h5"))
    files[0].unlink()
    assert verify(published) == 0
    assert "no predictions are kept of 2 runs: table3 crime" in capsys.readouterr().out
    for path in files[1:]:
        path.unlink()
    assert verify(published) == 1


def given(prediction: Any, target: Any, domain: Any = None) -> Scored:
    f, y = (np.array(values, np.float32).reshape(len(values), -1) for values in (prediction, target))
    return Scored({"": f, "20_steps": f + 1}, y, np.zeros(len(y), int) if domain is None else np.array(domain))


def test_scores_by_hand() -> None:
    one = given([1, 2, 4, 9], [1, 0, 2, 5], [0, 0, 1, 1])
    assert score("mse", one) == (0 + 4 + 4 + 16) / 4
    assert score("rmse", one) == math.sqrt(6)
    assert score("mse_20_steps", one) == (1 + 9 + 9 + 25) / 4
    assert score("mape", one) == pytest.approx(100 * (0 + 1 + 4 / 5) / 3)
    assert score("mape_skipped", one) == 1
    assert score("worst_rmse", one) == math.sqrt(10)
    assert score("mean_rmse", one) == (math.sqrt(2) + math.sqrt(10)) / 2
    assert score("r", one) == pytest.approx(np.corrcoef([1, 2, 4, 9], [1, 0, 2, 5])[0, 1])
    assert score("worst_r", given([1, 2, 4, 9], [1, 0, 2, 5], [0, 0, 1, 1])) == pytest.approx(-1)
    assert score("mse_ci95", one) == pytest.approx(1.96 * np.std([0, 4, 4, 16], ddof=1) / 2)


def test_what_has_no_score_is_nan() -> None:
    assert math.isnan(score("r", given([1, 2], [3, 3])))
    assert score("r", given([2, 2], [1, 3])) == 0
    assert math.isnan(score("mape", given([1, 2], [0, 0])))
    assert math.isnan(score("mse_ci95", given([1], [2])))
    for bad in (math.nan, math.inf):
        assert all(math.isnan(score(name, given([1, bad], [1, 2]))) for name in ("rmse", "mape", "r", "mse_ci95"))
