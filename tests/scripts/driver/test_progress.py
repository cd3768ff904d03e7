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
            board.show("job", 0, 10, {"search_percent": 100 * step / 40})
        for clock["now"], epoch in ((200, 7), (300, 8), (301, 9)):  # 6 epochs are from before
            board.show("job [a]", epoch, 10, {"epoch": epoch, "train_loss": 9.0, "val_rmse": epoch / 4})
    assert capsys.readouterr().err.splitlines() == [
        "training: 0/20 epochs; job search_percent 5",
        "training: 7/20 epochs; job [a] val_rmse 1.75",
        "training: 8/20 epochs, about 1200 s left; job [a] val_rmse 2",
    ]
