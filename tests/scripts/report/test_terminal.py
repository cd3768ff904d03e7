"""Tables on a terminal of 80 columns: every number whole."""

import pytest

from scripts.driver.progress import print_table

HEAD = ["method", "n", *(f"{name}, {part}" for name in ("RMSE", "MAPE") for part in ("paper", "ours", "difference"))]
ROWS = [["[bold]Manifold Mixup[/bold]", "10", *(["13.534 ± 0.125", "[bold]14.000 ± 0.301[/bold]", "+1.215"] * 2)]]


@pytest.mark.parametrize("width", [40, 80, 120, 0])  # 0: a pipe, which takes lines of any length
def test_no_line_is_too_wide_and_no_number_is_cut(width: int, capsys: pytest.CaptureFixture[str]) -> None:
    print_table(HEAD, ROWS, "Airfoil", width=width)
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= (width or 1000)
    for number in ("13.534 ± 0.125", "14.000 ± 0.301", "+1.215"):
        assert printed.count(number) == 2
    assert printed.count("Manifold Mixup") == (1 if width in {120, 0} else printed.count("Airfoil"))
