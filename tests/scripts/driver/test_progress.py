"""What is told of a run on the terminal while it trains."""

import re

import pytest

from scripts.driver import progress


def test_without_a_terminal_progress_is_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "EVERY", -1)
    with progress.ProgressDisplay(4, "training") as board:
        board.show("job [a]", 1, 2, {"epoch": 1, "train_loss": 9.0, "val_rmse": 2.5})
        board.show("job [a]", 2, 2, {"epoch": 2, "train_loss": 9.0, "val_rmse": 1.25})
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 2
    assert lines[0] == "training: 1/4 epochs; job [a] val_rmse 2.5"
    assert re.fullmatch(r"training: 2/4 epochs, about \d+ s left; job \[a\] val_rmse 1.25", lines[1])


@pytest.fixture
def seconds(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """A clock that stands still until it is set."""
    clock = {"now": 0.0}
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock["now"])
    return clock


def test_progress_of_a_run_that_goes_on_counts_its_earlier_epochs(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, seconds: dict[str, float]
) -> None:
    monkeypatch.setattr(progress, "EVERY", -1)
    with progress.ProgressDisplay(10, "training") as board:
        for epoch, seconds["now"] in ((7, 500.0), (8, 510.0)):  # a search of 500 seconds before is no pace
            board.show("job", epoch, 10, {"val_rmse": 2.5})
    lines = capsys.readouterr().err.splitlines()
    assert [line.partition(";")[0] for line in lines] == [
        "training: 7/10 epochs",
        "training: 8/10 epochs, about 20 s left",
    ]


def test_a_search_has_lines_with_the_time_that_it_needs_yet(
    capsys: pytest.CaptureFixture[str], seconds: dict[str, float]
) -> None:
    with progress.ProgressDisplay(2, "training") as board:
        for step, seconds["now"] in ((1, 90.0), (2, 92.0), (10, 108.0), (11, 108.5)):  # 90 seconds of reading data
            board.show("job", step, 40)
        seconds["now"] = 200.0
        board.show("job", 1, 2, {"val_rmse": 2.5})
    assert capsys.readouterr().err.splitlines() == [
        "training: job searches before its first epoch, 1/40 steps",
        "training: job searches before its first epoch, 10/40 steps, about 60 s left",
        "training: 1/2 epochs; job val_rmse 2.5",
    ]
