"""What is told of a run on the terminal while it trains."""

from __future__ import annotations

import re

import pytest

from scripts.driver import progress
from scripts.driver.logger import NoLogger
from scripts.driver.stack_logger import make_logger


def test_no_logger() -> None:
    logger = make_logger({"logger": "none"}, {}, [0])
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
