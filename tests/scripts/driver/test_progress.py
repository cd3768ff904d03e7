"""What is told of a run while it trains: to wandb, and on the terminal."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from scripts.driver import progress
from scripts.driver.job import execute
from scripts.driver.logger import NoLogger, make_logger
from tests.scripts.jobs import planned


class FakeRun:
    def __init__(self, **given: Any):
        self.given, self.logged, self.summary, self.finished = given, [], {}, False

    def log(self, row: dict[str, float], step: int) -> None:
        self.logged.append((step, row))

    def finish(self) -> None:
        self.finished = True


@pytest.mark.usefixtures("no_git")
def test_wandb_gets_curves_configuration_scores_and_facts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import wandb

    runs: list[FakeRun] = []
    monkeypatch.delenv("WANDB_MODE", raising=False)
    monkeypatch.setattr(wandb, "init", lambda **given: runs.append(FakeRun(**given)) or runs[-1])
    execute(planned(tmp_path, "method=cmixup", "logger=wandb", "seeds=[0,5]"))
    assert len(runs) == 2
    for seed, run in zip((0, 5), runs, strict=True):
        assert run.given["mode"] == "offline"
        assert Path(run.given["dir"]) == tmp_path
        assert run.given["config"]["seed"] == seed
        assert run.given["config"]["method"]["bandwidth"] == 1.2
        assert [step for step, _ in run.logged] == [1, 2]
        assert {"train_loss", "val_rmse"} <= set(run.logged[0][1])
        assert {"test/rmse", "val/rmse", "effective_fraction", "best_epoch"} <= set(run.summary)
        assert run.finished
    assert runs[0].logged != runs[1].logged


def test_no_logger() -> None:
    logger = make_logger({"logger": "none"}, [0])
    assert type(logger) is NoLogger


def test_without_a_terminal_progress_is_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "EVERY", -1)
    with progress.ProgressDisplay(4, "training") as board:
        board.epoch("job [a]", 1, 2, {"epoch": 1, "train_loss": 9.0, "val_rmse": 2.5})
        board.epoch("job [a]", 2, 2, {"epoch": 2, "train_loss": 9.0, "val_rmse": 1.25})
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert lines[0] == "training: 1/4 epochs; job [a] val_rmse 2.5"
    assert re.fullmatch(r"training: 2/4 epochs, about \d+ s left; job \[a\] val_rmse 1.25", lines[1])


def test_progress_of_a_run_that_goes_on_counts_its_earlier_epochs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "EVERY", -1)
    clock = iter([0.0, 500.0, 510.0])  # a search of 500 seconds before the first epoch is no pace
    monkeypatch.setattr(progress.time, "monotonic", lambda: next(clock))
    with progress.ProgressDisplay(10, "training") as board:
        board.epoch("job", 7, 10, {"val_rmse": 2.5})
        board.epoch("job", 8, 10, {"val_rmse": 2.5})
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(";")[0] for line in lines] == [
        "training: 7/10 epochs",
        "training: 8/10 epochs, about 20 s left",
    ]
