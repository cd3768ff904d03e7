"""Pages on a terminal of 80 columns and in a pipe: every number whole."""

import sys

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
    monkeypatch.setenv("TERM", "dumb")  # no colours
    monkeypatch.setattr(sys.stdout, "isatty", lambda: terminal)
    progress.print_page(markdown_table(HEAD, ROWS))
    printed = capsys.readouterr().out
    assert not terminal or max(map(len, printed.splitlines())) <= 80
    counts = {"13.534": 1, "0.125": 1, "14.000": 1, "0.301": 2, "+1.215": 1, "+2.125]": 1}
    assert {number: printed.count(number) for number in counts} == counts
    assert ("**14.000 ± 0.301** | +1.215" in printed) == (not terminal)
