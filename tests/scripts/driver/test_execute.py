"""A job leaves whole runs behind, or none: what is recorded, done again, killed or refused."""

import csv
import json
import math
import os
import re
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

from cmixup.errors import InputError
from cmixup.networks.fcn3 import FCN3
from cmixup.training.trainer import Stack
from scripts.driver import execute as run_module
from scripts.driver.execute import Diverged
from scripts.driver.provenance import run_environment
from scripts.driver.runs import RunFolder, load_reports
from tests.scripts.conftest import made_by
from tests.scripts.jobs import FILES, execute_job, killed_after, planned, report_of


def test_the_code_is_described_as_it_was_before_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    heard: list[str] = []

    def described(device: torch.device) -> dict[str, Any]:
        heard.append("environment")
        return made_by(device)

    monkeypatch.setattr(run_module, "run_environment", described)
    execute_job(planned(tmp_path), lambda epoch, _: heard.append(f"epoch {epoch}"))
    assert heard == ["environment", "epoch 1", "epoch 2"]


def test_the_folder_of_a_run_says_enough_to_repeat_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_module, "run_environment", run_environment)
    job = planned(tmp_path, "seed=4", "method=cmixup", "method.bandwidth=0.5")
    (folder,) = execute_job(job)
    options = "dataset.synthetic=True,bandwidth=0.5,train.batch_size=100,train.epochs=2"
    assert folder == tmp_path / "runs/debug/no2/fcn3/cmixup" / f"default,{options}" / "seed=4"
    assert sorted(os.listdir(folder)) == FILES  # noqa: PTH208

    with (folder / "history.csv").open() as stream:
        history = list(csv.DictReader(stream))
    assert [row["epoch"] for row in history] == ["1", "2"]
    assert list(history[0]) == ["epoch", "train_loss", "val_rmse"]
    report, best = report_of(folder), min(history, key=lambda row: float(row["val_rmse"]))
    assert report["best_epoch"] == int(best["epoch"])
    assert report["scores"]["val"]["rmse"] == pytest.approx(float(best["val_rmse"]), rel=1e-12)

    model = FCN3((7,), 1)
    model.load_state_dict(torch.load(folder / "checkpoint.pt", weights_only=True))
    test = job.dataset.load(4).test
    with torch.no_grad():
        mean, std = (report["label_scaling"][name][0] for name in ("mean", "std"))
        error = (model(test.x) * std + mean - test.y).double().square().mean().sqrt().item()
    assert error == pytest.approx(report["scores"]["test"]["rmse"], rel=1e-9)

    expected = {"seed": 4, "bandwidth": 0.5, "alpha": 2.0, "layer": "input", "options": job.options,
                "run": folder.relative_to(tmp_path / "runs").as_posix(), "selection": "rmse",
                "checksums": {}}  # fmt: skip
    assert {key: report[key] for key in expected} == expected
    assert report["seconds"] > 0
    assert 0 < report["facts"]["effective_fraction"] < 1
    assert re.fullmatch(r"[0-9a-f]{40}|", report["commit"])
    assert report["versions"]["torch"]
    assert report["device"].startswith("cpu: ")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ", report["started"])
    config = {**job.config, "seed": 4, "seeds": None}
    assert yaml.safe_load((folder / "config.yaml").read_text()) == config
    machine = {key: job.config[key] for key in ("out", "weights", "resume")}  # is not recorded
    assert {**report["config"], **machine} == config
    assert str(tmp_path) not in (folder / "report.json").read_text()


# ---- done, again, killed


@pytest.mark.parametrize("rerun", [False, True])
def test_a_killed_run_is_not_done_and_is_trained_next_time(tmp_path: Path, rerun: bool) -> None:
    if rerun:
        execute_job(planned(tmp_path, "seeds=0..1"))

    job = planned(tmp_path, "seeds=0..1", f"rerun={str(rerun).lower()}")
    with pytest.raises(KeyboardInterrupt):
        execute_job(job, killed_after(2))
    assert all((job.run_folder(seed) / "config.yaml").exists() for seed in (0, 1))
    assert list(tmp_path.rglob("DONE")) == []
    assert load_reports(tmp_path) == []
    again = planned(tmp_path, "seeds=0..1")
    assert again.pending == [0, 1]
    assert len(execute_job(again)) == len(load_reports(tmp_path)) == 2


# ---- tables of one's own


def test_a_changed_table_is_a_changed_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """However its path is spelt it is one table, until a byte of it is another."""
    path = tmp_path / "my.csv"
    path.write_text("price,size\n" + "".join(f"{k % 7},{k % 5}\n" for k in range(30)))
    (tmp_path / "sub").mkdir()
    monkeypatch.chdir(tmp_path / "sub")
    words = ["dataset=csv", "dataset.target=price", "dataset.synthetic=false", "train.batch_size=10"]
    first = planned(tmp_path, *words, "dataset.path=../my.csv")
    (folder,) = execute_job(first)
    same = planned(tmp_path, *words, f"dataset.path={path}")
    assert (same.folder, same.pending) == (first.folder, [])
    before = report_of(folder)["checksums"]
    path.write_text(path.read_text() + "3,2\n")
    changed = planned(tmp_path, *words, "dataset.path=../my.csv")
    assert changed.pending == [0]
    execute_job(changed)
    assert f"the table has changed since {folder} was trained" in capsys.readouterr().err
    assert report_of(folder)["checksums"] != before
    assert planned(tmp_path, *words, "dataset.path=../my.csv").pending == []


# ---- what goes wrong


def test_an_unwritable_output_stops_before_training(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    job = planned(tmp_path / "file")
    monkeypatch.setattr(Stack, "train", lambda *_: pytest.fail("trained"))
    with pytest.raises(OSError, match="file"):
        execute_job(job)


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["method=manifold_mixup", "method.layer=block9"], "layer must be a mix point of FCN3 .*got 'block9'"),
        (["train.batch_size=999", "train.drop_last=true"], "batch_size 999 is larger than the 200 training rows"),
    ],
)
def test_what_shows_only_with_the_data_leaves_no_half_written_result(
    overrides: list[str], message: str, tmp_path: Path
) -> None:
    with pytest.raises(InputError, match=message):
        execute_job(planned(tmp_path, *overrides))
    assert list(tmp_path.rglob("DONE")) == []
    assert list(tmp_path.rglob("report.json")) == []
    assert list(tmp_path.rglob("checkpoint.pt")) == []


def test_runs_that_diverge_are_not_recorded(tmp_path: Path) -> None:
    job = planned(tmp_path, "seeds=0..1", "train.optimizer=sgd", "train.lr=1e30")
    with pytest.raises(
        Diverged, match=r"seed 0: the training loss is not finite at epoch 1, step \d; seed 1: "
    ) as raised:
        execute_job(job)
    assert all(word in str(raised.value) for word in ("train.lr=1e+30", "train.optimizer=sgd", "preset default"))
    assert list(tmp_path.rglob("DONE")) == list(tmp_path.rglob("predictions.h5")) == []
    for seed in (0, 1):
        report = RunFolder(job.run_folder(seed)).report()
        assert (report["status"], report["scores"], report["best_epoch"]) == ("failed", {}, 0)
        assert report["failure"].startswith("the training loss is not finite at epoch 1, step ")
    assert planned(tmp_path, "seeds=0..1", "train.optimizer=sgd", "train.lr=1e30").pending == [0, 1]


def test_a_report_is_strict_json(tmp_path: Path) -> None:
    """One validation row has no correlation: NaN is null in the file and NaN again when it is read."""
    folder = tmp_path / "run"
    report = {"scores": {"val": {"r": math.nan}, "test": {"rmse": 1.5}}, "facts": {"gap": math.inf}, "seed": 0}
    RunFolder(folder).write({}, report, [{"epoch": 1}])

    def refuse(word: str) -> None:
        raise AssertionError(word)

    text = (folder / "report.json").read_text()
    assert json.loads(text, parse_constant=refuse)["scores"]["val"] == {"r": None}
    back = RunFolder(folder).report()
    assert math.isnan(back["scores"]["val"]["r"])
    assert back["facts"] == {"gap": math.inf}
