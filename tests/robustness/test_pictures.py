"""What is wrong with a picture is said, nothing is said of a right one, and a published one with a fault is named."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from scripts.records.stats import summarise_values
from scripts.records.tables import Block, ResultTable, Score
from scripts.report import table_figure
from scripts.report.figures import series_looks
from tests.robustness import pictures
from tests.robustness.pictures import faults

METHODS = ("erm", "mixup", "manifold_mixup", "cmixup")


def plot() -> tuple[Figure, Axes]:
    """A figure with two series of three marks and a legend, without a fault."""
    figure = Figure(figsize=(4, 3))
    axes = figure.subplots()
    for k, look in enumerate(series_looks(2)):
        axes.plot([1, 2, 3], [k + 1, k + 3, k + 2], label=f"series {k}", **look)
    axes.legend(loc="upper left")
    axes.set_title("a panel")
    figure.tight_layout()
    return figure, axes


def presets(n: int) -> Figure:
    """The picture of a table with `n` presets."""
    random = np.random.default_rng(0)
    shown, records = {}, []
    for preset in (f"number {k}" for k in range(n)):
        cells = {}
        for method in METHODS:
            seeds = random.normal(2, 1, 5)
            cells[method] = {"rmse": Score(summarise_values(list(seeds)), 2.5, 0.2)}
            records += [
                {"experiment": "table1", "preset": preset, "dataset": "airfoil", "method": method, "metric": "rmse",
                 "split": "test", "seed": seed, "value": value} for seed, value in enumerate(seeds)
            ]  # fmt: skip
        shown[preset] = ResultTable("T", [Block("airfoil", ["rmse"], cells)])
    return table_figure.table_figure(shown, pd.DataFrame(records, dtype=object))


@pytest.mark.parametrize("n", [1, 5, 14])
def test_any_number_of_presets_is_drawn_without_a_fault(n: int) -> None:
    figure = presets(n)
    assert faults(figure) == []
    assert len(figure.legends[0].get_texts()) == n + 1


@pytest.mark.parametrize(
    ("marker", "series"),
    [
        ("D", "the paper, 95 % interval of two means of 3 seeds"),
        ("P", "ours, preset number 4"),
        ("o", "ours, preset number 0"),
    ],
)
def test_a_mark_in_the_next_row_is_named(marker: str, series: str) -> None:
    figure = presets(5)
    moved = next(line for line in figure.axes[0].lines if line.get_marker() == marker and line.get_gid() == "mixup")
    moved.set_ydata(moved.get_ydata() + np.float64(1))
    (fault,) = faults(figure)
    assert fault.endswith(f"a mark of {series!r} is outside its row, 'mixup'")


def test_an_error_bar_in_the_next_row_and_a_mark_that_says_no_row_are_named() -> None:
    figure, axes = plot()
    axes.get_legend().remove()
    axes.set_yticks([1, 2, 3, 4], ["one", "two", "three", "four"])
    axes.set(xlim=(0.5, 4.5), ylim=(0.5, 4.5))
    axes.lines[0].set_gid("three")
    axes.lines[1].remove()
    axes.errorbar([2.0], [1.4], xerr=0.5, yerr=0.3, gid="one", label="wide")
    assert faults(figure) == [
        "in 'a panel' a mark of 'series 0' is outside its row, 'three'",
        "in 'a panel' a mark of 'wide' is outside its row, 'one'",
    ]
    axes.lines[0].set_gid(None)
    assert "in 'a panel' a mark of 'series 0' does not say which row it belongs to (its gid)" in faults(figure)
    axes.lines[0].set_data([1, 2, 3, 4], [1.1, 2.2, 3, 3.8])  # a mark a row
    assert faults(figure) == ["in 'a panel' a mark of 'wide' is outside its row, 'one'"]


def test_marks_and_error_bars_that_leave_their_panel_are_named() -> None:
    cut = "is cut by the edge of the panel, or outside it"
    figure, axes = plot()
    axes.set_xlim(1, 3.5)
    assert faults(figure) == [f"in 'a panel' a mark of 'series {k}' {cut}" for k in (0, 1)]
    for line in axes.lines:
        line.set_clip_on(False)  # half of each mark is beyond the edge, and drawn
    assert faults(figure) == []
    axes.plot([0, 3], [0, 2], label="no marks")
    assert faults(figure) == []
    axes.errorbar([2], [3], yerr=[[0.1], [9]], label="long", clip_on=False)
    axes.set_ylim(0, 5)
    assert faults(figure) == [f"in 'a panel' a mark of 'long' {cut}"]


def test_a_legend_that_says_something_else_than_the_panel_is_named() -> None:
    figure, axes = plot()
    for line in axes.get_legend().get_lines():
        line.set_color("C5")
        line.set_marker("o")
    assert faults(figure) == [
        "in the legend 'series 0' and 'series 1' have the same colour and mark",
        "'series 0' has another colour than in the legend",
        "'series 1' has another colour than in the legend",
    ]


def test_text_over_a_mark_and_text_in_another_panel_are_named() -> None:
    figure, axes = plot()
    axes.text(2, 3, "note", ha="center", va="center")
    figure.text(0.5, 0.5, "watermark")
    assert faults(figure) == ["text 'note' covers a mark", "text 'watermark' stands in a panel that is not its own"]


def test_the_command_draws_every_picture_and_names_its_faults(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    figure, _ = plot()
    monkeypatch.setattr(
        "scripts.report.rendering.run_all", lambda *_: SimpleNamespace(figures={"figures/a.png": figure})
    )
    pictures.main([])
    assert capsys.readouterr().out == "no published picture misleads\n"
    figure.text(0.5, 0.5, "watermark")
    with pytest.raises(SystemExit):
        pictures.main([])
    assert capsys.readouterr().err.startswith("error: pictures that mislead: figures/a.png: text 'watermark'")
