"""Sweeps: means and t intervals of the values of an option, and what the figure shows."""

import math
from typing import Any

import pytest

from scripts.records.run_tables import frame_of
from scripts.report.sweep import Sweep, sweep_points
from scripts.report.sweep_figure import Panel, draw_sweeps, make_panel
from scripts.stats.intervals import paired_or_none
from tests.scripts.sweeps import report

SWEPT = {0.01: (1.0, 2.0, 3.0), 1.75: (2.0, 3.0, 4.0), 5.0: (2.0,), 1000.0: (4.0, 4.0, 7.0)}
LINES = {"erm": {0: 1.5, 1: 2.0, 2: 2.5}, "manifold_mixup": {0: 1.0, 2: 3.0}}
RUNS = frame_of(report(k, score, b) for b, scores in SWEPT.items() for k, score in enumerate(scores))
POINTS = sweep_points(RUNS, "method.bandwidth", "rmse")
T3 = 4.302652729911275  # 97.5 % quantile of Student's t with 2 degrees of freedom


def test_the_panel_shows_means_t_bands_lines_and_verdicts() -> None:
    shows = make_panel(POINTS, {"manifold_mixup": LINES["manifold_mixup"]})
    assert (shows.x, shows.log, shows.ticks) == ([0.01, 1.75, 5.0, 1000.0], True, [])
    half = T3 * 1 / math.sqrt(3)
    first, last = shows.scores[0], shows.scores[-1]
    assert (first.mean, first.low, first.high) == pytest.approx((2.0, 2 - half, 2 + half), rel=1e-9)
    assert (last.mean, last.high - last.mean) == pytest.approx((5.0, T3 * math.sqrt(3) / math.sqrt(3)), rel=1e-9)
    assert (shows.scores[2].low, shows.scores[2].high) == (2.0, 2.0)  # one seed has no interval
    assert (shows.lines, shows.paired) == ({"manifold_mixup": pytest.approx(2.0)}, False)  # no ERM: scores


def test_an_axis_is_logarithmic_from_a_decade_on_and_words_stand_side_by_side() -> None:
    def panel(*bandwidths: Any) -> Panel:
        return make_panel(sweep_points(frame_of(report(0, 1.0, b) for b in bandwidths), "method.bandwidth", "rmse"), {})

    assert [panel(*pair).log for pair in ((0.2, 1.9), (0.2, 2.0), (0.0, 2.0))] == [False, True, False]
    words = panel(["std", 0.3], "auto", 2.0, 10.0, "inf")
    assert (words.x, words.log) == ([0.0, 1.0, 2.0, 3.0, 4.0], False)
    assert words.ticks == ["2", "10", "inf", "std 0.3", "auto"]


def test_the_figure_draws_differences_from_erm() -> None:
    whole = Sweep("Airfoil", "method.bandwidth", "rmse", [p for p in POINTS if len(p.scores) > 1], LINES)
    figure = draw_sweeps([whole], "cmixup")
    (axis,) = figure.axes
    assert axis.get_xscale() == "log"
    line = next(line for line in axis.lines if line.get_linestyle() == "-" and line.get_marker() == "o")
    expected = [paired_or_none(point.scores, LINES["erm"]) for point in whole.points]
    assert list(line.get_ydata()) == pytest.approx([interval.mean for interval in expected if interval])
    zero = next(line for line in axis.lines if line.get_label() == "ERM")
    assert list(zero.get_ydata()) == [0, 0]
    assert axis.get_ylabel() == "test RMSE minus ERM's"
    legend = {text.get_text() for text in figure.legends[0].get_texts()}
    assert {"ERM", "C-Mixup minus ERM, paired over seeds", "Manifold Mixup minus ERM"} <= legend
