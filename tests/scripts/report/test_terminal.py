"""Tables on a terminal of 80 columns and in a pipe: every number whole."""

import pytest

from scripts.driver import progress
from scripts.report.result_table import markdown_table

HEAD = ["method", "n", *(f"RMSE, {part}" for part in ("paper", "ours", "difference"))]
ROWS = [["**Manifold Mixup**", "10", "13.534 ± 0.125", "**14.000 ± 0.301**", "+1.215 [-0.301, +2.125]"]]


@pytest.mark.parametrize("terminal", [True, False])
def test_no_line_is_too_wide_and_no_number_is_cut(
    terminal: bool, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(progress, "_is_terminal", lambda: terminal)
    progress.print_page(markdown_table(HEAD, ROWS))
    progress.print_table(HEAD, ROWS, "Airfoil")
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= (80 if terminal else 1000)
    counts = {"13.534": 2, "0.125": 2, "14.000": 2, "0.301": 4, "+1.215": 2, "+2.125]": 2}  # of both tables
    assert {number: printed.count(number) for number in counts} == counts
    assert ("**14.000 ± 0.301** | +1.215" in printed) == (not terminal)
