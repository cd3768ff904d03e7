"""What is told of a run on the terminal while it trains."""

import pytest

from scripts.driver import progress


def test_without_a_terminal_progress_is_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = {"now": 0.0}
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock["now"])
    with progress.ProgressDisplay(20, "training") as board:
        for clock["now"], step in ((10, 1), (20, 2), (21, 3)):  # a line every 15 seconds
            board.show("job", step, 40)
        clock["now"] = 200.0
        board.show("job [a]", 7, 10, {"epoch": 7, "train_loss": 9.0, "val_rmse": 2.5})  # 6 epochs are from before
        clock["now"] = 300.0
        board.show("job [a]", 8, 10, {"epoch": 8, "train_loss": 9.0, "val_rmse": 1.25})
    assert capsys.readouterr().err.splitlines() == [
        "training: job searches before its first epoch, 2/40 steps",
        "training: 7/20 epochs; job [a] val_rmse 2.5",
        "training: 8/20 epochs; job [a] val_rmse 1.25",
    ]
