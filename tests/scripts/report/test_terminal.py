"""Tables on a terminal of 80 columns: every number whole."""

import itertools

import pytest

from scripts.report.terminal import parts_that_fit, print_table, width_here

HEAD = ["method", "n", *(f"{name}, {part}" for name in ("RMSE", "MAPE") for part in ("paper", "ours", "difference"))]
ROWS = [["[bold]Manifold Mixup[/bold]", "10", *(["13.534 ± 0.125", "[bold]14.000 ± 0.301[/bold]", "+1.215"] * 2)]]


@pytest.mark.parametrize("width", [40, 80, 120, 1000])
def test_no_line_is_too_wide_and_no_number_is_cut(width: int, capsys: pytest.CaptureFixture[str]) -> None:
    print_table(HEAD, ROWS, "Airfoil", width=width)
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) <= width
    for number in ("13.534 ± 0.125", "14.000 ± 0.301", "+1.215"):
        assert printed.count(number) == 2
    assert printed.count("Manifold Mixup") == (1 if width in {120, 1000} else printed.count("Airfoil"))


def test_every_column_stands_in_one_part_in_order() -> None:
    for widths in itertools.product([3, 9, 30], repeat=4):
        parts = parts_that_fit(widths, 40)
        assert [part[0] for part in parts] == [0] * len(parts)
        assert [k for part in parts for k in part[1:]] == [1, 2, 3]
        for part in parts:
            assert sum(widths[k] for k in part) + 2 * (len(part) - 1) <= 40 or len(part) == 2
    assert parts_that_fit([5], 40) == [[0]]


def test_a_pipe_takes_lines_of_any_length() -> None:
    assert width_here() == 1000


def test_a_table_is_printed_into_nothing_where_stdout_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdout", None)
    print_table(("a", "b"), [["1", "2"]], "a title")
    assert width_here() == 1000
