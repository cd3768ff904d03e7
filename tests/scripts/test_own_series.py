"""Own series by the commands: trained, taken up again, compared with naive forecasts, and forecast with."""

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from omegaconf import DictConfig

from cmixup import load_run
from scripts import predict
from scripts.config.compose import compose_train
from scripts.driver.job import Job, plan_job
from scripts.driver.runs import RunFolder
from scripts.train import run_training
from tests.scripts.jobs import execute_job

pytestmark = pytest.mark.usefixtures("no_git_session")
ROWS, HORIZON = 160, 3


@pytest.fixture(scope="module")
def rates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write the first days of two exchange rates as a CSV with dates; without the mirror, made-up ones."""
    real = Path(os.environ.get("CMIXUP_MIRROR", ""), "exchange_rate", "exchange_rate.txt.gz")
    made_up = 1 + 0.01 * np.random.default_rng(0).normal(size=(ROWS, 2)).cumsum(axis=0)
    values = np.loadtxt(real, delimiter=",", max_rows=ROWS, usecols=(0, 1)) if real.is_file() else made_up
    frame = pd.DataFrame(values.round(6), columns=["australia", "britain"])
    frame.insert(0, "day", pd.date_range("1990-01-01", periods=ROWS).strftime("%d.%m.%Y"))
    path = tmp_path_factory.mktemp("series") / "rates.csv"
    frame.to_csv(path, index=False)
    return path


def composed_series(out: Path, path: Path, *words: str) -> DictConfig:
    given = [f"series={path}", "window=24", f"horizon={HORIZON}", f"out={out}", "logger=none", "train.epochs=2"]
    return compose_train([*given, "model=fcn3", "seeds=0..1", *words])


def planned_series(out: Path, path: Path, *words: str) -> Job:
    return plan_job(composed_series(out, path, *words))


@pytest.fixture(scope="module", params=["last", "all"])
def trained(rates: Path, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Job:
    job = planned_series(tmp_path_factory.mktemp(request.param), rates, f"dataset.steps={request.param}")
    execute_job(job)
    return job


def test_naive_errors_stand_beside_every_score(trained: Job, rates: Path, capsys: pytest.CaptureFixture[str]) -> None:
    values, steps = pd.read_csv(rates)[["australia", "britain"]].to_numpy(), trained.config["dataset"]["steps"]
    begin = 128 - (1 if steps == "all" else HORIZON)  # last row of the first test window
    ahead = (1, 2, 3) if steps == "all" else (3,)
    errors = np.array([values[row + step] - values[row] for row in range(begin, ROWS - HORIZON) for step in ahead])
    scores = RunFolder(trained.run_folder(0)).report()["scores"]["test"]
    assert scores["rmse_naive_last_value"] == pytest.approx(np.sqrt(np.mean(errors**2)), rel=1e-4)
    assert scores["mae_naive_last_value"] == pytest.approx(np.abs(errors).mean(), rel=1e-4)
    assert {"rmse", "mae", "mape", "rmse_naive_week_before", "mape_naive_week_before"} <= scores.keys()
    run_training(composed_series(trained.out, rates, f"dataset.steps={steps}"))
    out = capsys.readouterr().out
    mean = np.mean([RunFolder(trained.run_folder(seed)).report()["scores"]["test"]["rmse"] for seed in (0, 1)])
    better = mean < min(value for name, value in scores.items() if name.startswith("rmse_naive"))
    assert f"without a network: test last value rmse {scores['rmse_naive_last_value']:.4f}" in out
    assert f"training was {'better than all' if better else 'no better than the best'} of them by rmse" in out
    assert "rmse_naive" not in out


def test_several_series_are_named_in_the_forecast(rates: Path, tmp_path: Path) -> None:
    long = pd.read_csv(rates).melt("day", var_name="land", value_name="rate")
    long["land"] = long["land"].map({"australia": "007", "britain": "8"})
    long.to_csv(tmp_path / "long.csv", index=False)
    job = planned_series(tmp_path, tmp_path / "long.csv", "dataset.id=land", "time=day", "seeds=null")
    execute_job(job)
    predict.main([f"run={job.run_folder(0)}", f"series={tmp_path / 'long.csv'}", f"out={tmp_path / 'p.csv'}"])
    written = pd.read_csv(tmp_path / "p.csv", dtype={"land": str})
    assert list(written) == ["land", "day", "rate"]
    assert written["land"].tolist() == ["007"] * 3 + ["8"] * 3


def test_a_straight_line_goes_on(tmp_path: Path) -> None:
    """LSTNet's highway in the units of labels and inputs; the last value alone is 6.5 wrong."""
    rows = pd.DataFrame({"day": pd.date_range("2024-01-01", periods=200), "value": 3.0 * np.arange(200) + 7})
    rows.to_csv(tmp_path / "line.csv", index=False)
    small = ["model=lst_attn", "model.channels=4", "model.hidden=4", "train.batch_size=32", "train.lr=0.01"]
    job = planned_series(tmp_path, tmp_path / "line.csv", "method=erm", "dataset.steps=all", "seeds=null", *small,
                         "train.epochs=60")  # fmt: skip
    execute_job(job)
    assert RunFolder(job.run_folder(0)).report()["scores"]["test"]["rmse"] < 1
    np.testing.assert_allclose(load_run(job.run_folder(0)).predict(rows)["value"], [607, 610, 613], atol=1)
