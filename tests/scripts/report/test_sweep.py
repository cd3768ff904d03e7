"""Sweeps: which runs belong to which value, means, t intervals and paired differences, and what the figure shows."""

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml

from cmixup.errors import InputError
from scripts.config.compose import part_file
from scripts.plan.selection import selected_methods, swept_values
from scripts.records import experiment as experiment_module
from scripts.records.experiment import Experiment, load_experiment
from scripts.records.published import write_reports
from scripts.report.sweep import Sweep, find_sweeps, grid_page, sweep_page, sweep_points
from scripts.report.sweep_figure import Panel, draw_sweeps, make_panel
from scripts.report.tables import published_sweeps
from scripts.stats.intervals import paired_or_none
from tests.scripts.reports import report as plain_report
from tests.scripts.sweeps import report

BANDWIDTH, ALPHA = load_experiment("figure_bandwidth"), load_experiment("figure_alpha")
SEARCH = load_experiment("figure_search")
T3 = 4.302652729911275  # the 97.5 % quantile of Student's t with 2 degrees of freedom
VERDICTS = {0.01: "self-pairing only: this is ERM", 1.75: "local", 5.0: "local", 1000.0: "indistinguishable from mixup"}
FRACTIONS = {0.01: 0.001, 1.75: 0.25, 5.0: 0.5, 1000.0: 1.0}


def line(method: str, scores: dict[int, float], **changes: Any) -> list[dict[str, Any]]:
    as_table = {"method": method, "experiment": "table1", "facts": {}, "verdict": "", **changes}
    return [report(seed, score, **as_table) for seed, score in scores.items()]


def reports() -> list[dict[str, Any]]:
    swept = {0.01: (1.0, 2.0, 3.0), 1000.0: (4.0, 4.0, 7.0), 5.0: (2.0,), 1.75: (2.0, 3.0, 4.0)}
    mine = [
        report(seed, score, value, verdict=VERDICTS[value], facts={"effective_fraction": FRACTIONS[value]})
        for value, scores in swept.items()
        for seed, score in enumerate(scores)
    ]
    others = [
        report(0, 99.0, 0.01, preset="released"),
        report(0, 99.0, 0.01, experiment="adhoc"),
        report(0, 99.0, 0.3, options={"method.bandwidth": 0.3, "train.lr": 0.5}),
        report(0, 99.0, 0.3, dataset="no2"),
        *line("erm", {0: 99.0}, options={"train.lr": 0.5}),
        *line("erm", {1: 99.0}, experiment="table_batch_id"),
        *line("mixup", {0: 99.0}),  # Airfoil's mixing partner is Manifold Mixup
    ]
    return [*others, *mine, *line("erm", {0: 1.5, 1: 2.0, 2: 2.5, 3: 9.0}), *line("manifold_mixup", {0: 1.0, 2: 3.0})]


def sweep() -> Sweep:
    (swept,) = find_sweeps(BANDWIDTH, reports(), "paper")
    return swept


def test_runs_are_grouped_by_value_and_lines_come_from_their_table() -> None:
    swept = sweep()
    assert [p.value for p in swept.points] == [0.01, 1.75, 5.0, 1000.0]
    assert [p.scores for p in swept.points][:2] == [{0: 1.0, 1: 2.0, 2: 3.0}, {0: 2.0, 1: 3.0, 2: 4.0}]
    assert swept.lines == {"erm": {0: 1.5, 1: 2.0, 2: 2.5}, "manifold_mixup": {0: 1.0, 2: 3.0}}  # seed 3 is in no point
    assert swept.published == 1.75
    assert [p.fraction for p in swept.points] == [0.001, 0.25, 0.5, 1.0]
    assert find_sweeps(BANDWIDTH, reports(), "released") == []  # one value is no sweep


def test_the_panel_shows_means_t_bands_lines_and_verdicts() -> None:
    swept = sweep()
    shows = make_panel(swept.points, {"manifold_mixup": swept.lines["manifold_mixup"]})
    assert (shows.x, shows.log, shows.ticks) == ([0.01, 1.75, 5.0, 1000.0], True, [])
    half = T3 * 1 / math.sqrt(3)
    first, last = shows.scores[0], shows.scores[-1]
    assert (first.mean, first.low, first.high) == pytest.approx((2.0, 2 - half, 2 + half), rel=1e-9)
    assert (last.mean, last.high - last.mean) == pytest.approx((5.0, T3 * math.sqrt(3) / math.sqrt(3)), rel=1e-9)
    assert (shows.scores[2].low, shows.scores[2].high) == (2.0, 2.0)  # one seed has no interval
    assert (shows.lines, shows.paired) == ({"manifold_mixup": pytest.approx(2.0)}, False)  # no ERM: scores


def test_an_axis_is_logarithmic_from_a_decade_on_and_words_stand_side_by_side() -> None:
    def panel(*bandwidths: Any) -> Panel:
        return make_panel(sweep_points([report(0, 1.0, b) for b in bandwidths], "method.bandwidth", "rmse"), {})

    assert [panel(*pair).log for pair in ((0.2, 1.9), (0.2, 2.0), (0.0, 2.0))] == [False, True, False]
    words = panel(["std", 0.3], "auto", 2.0, 10.0, "inf")
    assert (words.x, words.log) == ([0.0, 1.0, 2.0, 3.0, 4.0], False)
    assert words.ticks == ["2", "10", "inf", "std 0.3", "auto"]


def test_the_figure_draws_differences_from_erm() -> None:
    swept = sweep()
    seeds = {point.value: point.scores for point in swept.points}
    whole = replace(swept, points=[p for p in swept.points if len(seeds[p.value]) > 1])
    figure = draw_sweeps([whole], "cmixup")
    (axis,) = figure.axes
    assert axis.get_xscale() == "log"
    line = next(line for line in axis.lines if line.get_linestyle() == "-" and line.get_marker() == "o")
    expected = [paired_or_none(point.scores, swept.lines["erm"]) for point in whole.points]
    assert list(line.get_ydata()) == pytest.approx([interval.mean for interval in expected if interval])
    zero = next(line for line in axis.lines if line.get_label() == "ERM")
    assert list(zero.get_ydata()) == [0, 0]
    assert axis.get_ylabel() == "test RMSE minus ERM's"
    legend = {text.get_text() for text in figure.legends[0].get_texts()}
    assert {"ERM", "C-Mixup minus ERM, paired over seeds", "Manifold Mixup minus ERM"} <= legend


def test_the_table_has_paired_differences() -> None:
    text = sweep_page(BANDWIDTH, [sweep()], "paper", ["NO2: not at hand"])
    rows = {row.split("|")[1].strip(): [cell.strip() for cell in row.split("|")[2:-1]]
            for row in text.splitlines() if row.startswith("| ")}  # fmt: skip
    half = T3 * 0.5 / math.sqrt(3)  # of 1 - 1.5, 2 - 2, 3 - 2.5
    assert rows["0.01"] == ["0.001", VERDICTS[0.01], "3", "2.000 ± 1.000", f"0.000 [-{half:.3f}, +{half:.3f}]",
                            "0.000 [0.000, 0.000]"]  # fmt: skip
    assert rows["**1.75**"][:5] == ["0.25", "local", "3", "3.000 ± 1.000", f"+1.000 [{1 - half:+.3f}, {1 + half:+.3f}]"]
    assert rows["5"] == ["0.5", "local", "1", "2.000", "—", "—"]
    assert rows["ERM"] == ["", "", "3", "2.000 ± 0.500", "", ""]
    assert "- NO2: not at hand" in text


@pytest.mark.parametrize("experiment", [BANDWIDTH, ALPHA], ids=lambda e: e.name)
def test_the_grids_hold_the_preset_s_value_and_mixup_mixes_where_cmixup_does(experiment: Experiment) -> None:
    key = experiment.sweep["option"].rpartition(".")[2]
    for dataset in experiment.datasets:
        values = experiment.sweep["values"][dataset]
        assert values == sorted(values)
        if experiment is BANDWIDTH:
            assert len(values) == (6 if dataset == "exchange_rate" else 12)
        for preset in ("paper", "released"):
            preset_values = part_file("dataset", dataset)["presets"][preset]
            assert preset_values[key] in values
            other = "mixup" if preset_values["layer"] == "input" else "manifold_mixup"
            assert selected_methods(experiment, dataset, experiment.methods) == ["erm", other, "cmixup"]


def test_a_published_sweep_shows_the_layer_that_is_better_on_validation(tmp_path: Path) -> None:
    made = []
    for layer, scores in (("input", {0: 1.0, 25: 3.0}), ("hidden", {0: 2.0, 25: 2.0})):
        for outer, score in scores.items():
            options = {"method.layer": layer, "method.outer": outer}
            one = report(0, score, experiment="figure_search", method="mixrl", layer=layer, options=options)
            one["config"]["method"]["outer"] = outer
            made.append({**one, "run": f"figure_search/airfoil/fcn3/mixrl/paper,{layer},{outer}/seed=0"})
    write_reports(tmp_path, made)
    ((experiment, preset, (swept,)),) = published_sweeps(tmp_path)
    assert (experiment.name, preset) == ("figure_search", "paper")
    assert [(p.value, p.scores) for p in swept.points] == [(0, {0: 1.0}), (25, {0: 2.0})]


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"values": {"airfoil": [1.0]}}, r"sweep.values.airfoil must be two different values or more, got \[1.0\]"),
        ({"method": "mixrl"}, "sweep.method must be among erm, cmixup, got 'mixrl'"),
        ({"step": 3}, "sweep takes option, method and values"),
    ],
)
def test_a_sweep_that_is_none_is_refused(
    change: dict[str, Any], named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sweep = {"option": "method.bandwidth", "method": "cmixup", "values": {"airfoil": [1.0, 2.0]}}
    node = {"name": "mine", "title": "t", "datasets": ["airfoil"], "methods": ["erm", "cmixup"], "budget_minutes": 1}
    monkeypatch.setattr(experiment_module, "part_path", lambda *_: tmp_path / "mine.yaml")
    path = tmp_path / "mine.yaml"
    path.write_text(yaml.safe_dump({**node, "sweep": sweep}))
    assert swept_values(load_experiment("mine"), "airfoil", "cmixup") == [1.0, 2.0]
    path.write_text(yaml.safe_dump({**node, "sweep": {**sweep, **change}}))
    with pytest.raises(InputError, match=named):
        load_experiment("mine")


GRID = load_experiment("ladder")
OPTIONS = list(GRID.grid)
Value = Callable[[str, tuple, int], float]


def grid_reports(value: Value, seeds: int = 3, methods: tuple[str, ...] = ("erm", "cmixup")) -> list[dict[str, Any]]:
    """A run of every method, point and seed, with the test score `value`."""
    made = []
    for method, point, seed in itertools.product(methods, itertools.product(*GRID.grid.values()), range(seeds)):
        options = dict(zip(OPTIONS, point, strict=True))
        train = {option.removeprefix("train."): v for option, v in options.items()}
        made.append(
            plain_report(experiment="ladder", dataset="airfoil", method=method, preset="paper", seed=seed,
                   options=options, scores={"test": {"rmse": value(method, point, seed)}},
                   config={"train": train}, run=f"{method}/{point}/seed={seed}")
        )  # fmt: skip
    return made


def additive(method: str, point: tuple, seed: int) -> float:
    scale, epochs, lr = point
    return 3 + 0.1 * seed - 1.0 * (scale == "standard") - epochs / 1000 + 10 * lr + 0.2 * (method == "cmixup")


def test_a_run_with_a_further_option_is_refused_and_overwrites_no_other() -> None:
    runs = grid_reports(additive, seeds=1)
    other = {**runs[0], "options": {**runs[0]["options"], "dataset.label_noise": 0.3}, "run": "another/seed=0"}
    with pytest.raises(InputError, match=r"seed 0 is there twice.*another"):
        grid_page(GRID, [*runs, other], "paper")


def test_the_page_shows_differences_in_a_row() -> None:
    text = grid_page(GRID, grid_reports(additive), "paper")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert rows[0] == "| label scaling | epochs | lr | n | ERM | C-Mixup minus |"
    assert rows[2].startswith("| none | 100 | 0.01 | 3 | 3.100 ± 0.100 | +0.200 [+0.200, +0.200] |")
    assert len([row for row in rows if row.startswith(("| none", "| centre", "| standard"))]) == 18
    assert "ADA" not in "".join(rows)  # it has no runs here
