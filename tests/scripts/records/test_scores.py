"""Published scores are what the kept predictions give."""

import math
import re
import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm

from scripts.config.compose import compose_train
from scripts.driver.job import plan_job
from scripts.driver.runs import load_reports
from scripts.publish import published_run
from scripts.records.published import (
    cell_name,
    keep_predictions,
    predictions_file,
    published_runs,
    runs_file,
    with_predictions,
    write_reports,
)
from scripts.records.rescored import compute_score, fill_metrics, scores_again
from scripts.records.run_tables import scores_of
from scripts.stats.scored import Scored
from scripts.verify import main
from tests.scripts.jobs import execute_job

CELLS = {"crime": 2, "dti_davis": 1}  # RMSE, MAPE with zeros left out and worst domains; R, and its worst domain


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Published results of stand-ins: runs of two datasets with all kinds of scores."""
    folder = tmp_path_factory.mktemp("metrics")
    for dataset, seeds in CELLS.items():
        words = [f"dataset={dataset}", "debug=tiny", "experiment.name=table3", "device=cpu", "method=erm"]
        small = ["dataset.protein_length=100"] if dataset == "dti_davis" else []
        execute_job(plan_job(compose_train([*words, *small, f"seeds=0..{seeds - 1}", f"out={folder / 'out'}"])))
    for report in load_reports(folder / "out" / "runs"):
        kept, parts = published_run(report, folder / "out" / "runs" / report["run"])
        write_reports(folder / "results", [kept])
        keep_predictions(folder / "results", [(kept, parts)])
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


def test_all_scores_are_what_predictions_give_to_the_last_bit(
    published: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert verify(published) == 0
    every = [scores_of(run) for run in published_runs(published).to_dict("records")]
    n = sum(len(scores) for of_run in every for scores in of_run.values())
    names = {name for of_run in every for name in of_run["test"]}
    assert {"rmse", "mape", "mape_skipped", "worst_rmse", "mean_rmse", "r", "worst_r", "mean_r"} <= names
    assert (
        f"{n} of {n} scores of 3 runs are what their predictions give: {n} to the last bit, 0 within"
        in capsys.readouterr().out
    )


def test_baselines_have_no_predictions_and_a_slash_begins_no_group() -> None:
    parts = {"test": (np.ones((2, 1)), {"": np.ones((2, 1))}, np.zeros(2))}
    assert scores_again({"test": {"naive_training_mean": 1.0}}, parts) == {"test": {}}
    row = {"method": "erm", "model": "fcn3", "preset": "paper", "options": "model.weights=/home/w.pth"}
    assert cell_name(row) == "erm fcn3 paper model.weights=|home|w.pth"


def test_scores_are_computed_by_their_names() -> None:
    rng = np.random.default_rng(0)
    y, mean, ahead = (rng.normal(size=(90, 2)).astype(np.float32) for _ in range(3))
    std, domain = rng.uniform(0.5, 2, size=(90, 2)).astype(np.float32), np.arange(90) % 3
    kept, unit = Scored({"": mean, "std": std, "20_steps": ahead}, y, domain), np.array([0.7, 1.3])
    error = (mean - y).astype(float)
    of_domain = [np.sqrt(np.square(error[domain == d]).mean()) for d in range(3)]
    density = norm.logpdf(y / unit, mean / unit, std / unit)
    for name, given, value in (
        ("worst_rmse", (), max(of_domain)), ("mean_rmse", (), np.mean(of_domain)), ("mape_skipped", (), 0),
        ("mae_20_steps", (), np.abs(ahead.astype(float) - y).mean()),
        ("nrmse", unit, np.sqrt(np.square(error / unit).mean())), ("nll", unit, -density.mean()),
        ("nll_rescaled", (), norm.logpdf(y, mean, std * np.sqrt(np.square(error / std).mean())).mean() * -1),
    ):  # fmt: skip
        assert compute_score(name, kept, tuple(given), kept) == pytest.approx(value, rel=1e-6), name
    failed = Scored({"": np.full_like(y, np.nan)}, y, domain)
    assert compute_score("nrmse_balanced", failed, (1.0, 1.0)) == math.inf
    assert math.isnan(compute_score("rmse", failed))


def test_a_metric_reaches_runs_that_were_published_without_it(published: Path) -> None:
    """Runs without predictions stay as they are."""
    old = published_runs(published)
    old = old[[name for name in old if "mae" not in name]]
    filled = fill_metrics(old, published)
    for run, kept in with_predictions(published, filled):
        for name in ("mae", "worst_mae", "mean_mae"):
            assert run[f"test_{name}"] == compute_score(name, kept["test"])
    pd.testing.assert_frame_equal(fill_metrics(filled, published), filled)
    predictions_file(published, *old.iloc[-1][["experiment", "dataset"]]).unlink()
    assert math.isnan(fill_metrics(old, published)["test_mae"].iloc[-1])


def edit_score(results: Path, column: str, change: Callable[[float], float]) -> None:
    """Change a published score of Crime's seed 1."""
    path = runs_file(results, "table3", "crime")
    runs = pd.read_csv(path).set_index("seed")
    runs.loc[1, column] = change(runs.loc[1, column])
    runs.to_csv(path)


@pytest.mark.parametrize("change", [lambda v: 1.0004 * v, lambda _: math.inf], ids=["4e-4", "inf"])
def test_a_changed_record_is_named(
    change: Callable[[float], float], published: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    edit_score(published, "test_worst_rmse", change)
    assert verify(published) == 1
    output = capsys.readouterr()
    assert re.search("DIFFERS table3/crime/.*/seed=1: test worst_rmse", output.err)
    assert output.err.count("DIFFERS") == 1


def test_runs_from_before_steps_may_differ_by_these_alone(published: Path, capsys: pytest.CaptureFixture[str]) -> None:
    edit_score(published, "test_rmse", lambda value: 1.0001 * value)
    assert verify(published) == 0
    assert "1 within 0.025% (R within 0.0001)" in capsys.readouterr().out


def test_runs_without_predictions_are_counted_and_none_at_all_is_no_success(
    published: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    files = sorted((published / "predictions").glob("table3/*.h5"))
    files[0].unlink()
    assert verify(published) == 0
    assert "no predictions are kept of 2 runs: table3 crime" in capsys.readouterr().err
    for path in files[1:]:
        path.unlink()
    assert verify(published) == 1
