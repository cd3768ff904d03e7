"""Points that an experiment changes of its preset: which runs they are, the page, and the sweep of one option."""

import io
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
import yaml

from cmixup.errors import InputError
from scripts.config.compose import compose_train, override_words, part_file
from scripts.driver.job import plan_job
from scripts.plan.selection import points_of, selected_methods, swept_option
from scripts.records import experiment as experiment_module
from scripts.records.experiment import Experiment, load_experiment
from scripts.records.published import write_reports
from scripts.records.rescored import table_runs
from scripts.records.run_tables import frame_of
from scripts.report.ablation import ablation_csv, ablation_page, find_sweeps, published_ablations, runs_by_point
from tests.scripts.reports import report as plain_report
from tests.scripts.sweeps import report

ABLATION, GRID = load_experiment("ablation_ood"), load_experiment("ladder")
BANDWIDTH, ALPHA = load_experiment("figure_bandwidth"), load_experiment("figure_alpha")
SMALL = replace(
    ABLATION, datasets=["skillcraft"], points=[{"label": "preset paper", "options": {}},
    {"label": "scaled on all rows", "options": {"dataset.scaling": "all"}},
    {"grid": {"method.bandwidth": [0.5, 30.0]}, "methods": ["cmixup"]}],
)  # fmt: skip


def rows_of(text: str) -> dict[tuple[str, str], list[str]]:
    """The cells of each row of a page, by method and what is changed."""
    cells = [[cell.strip() for cell in row.split("|")[1:-1]] for row in text.splitlines() if row.startswith("| ")]
    return {(row[0], row[1]): row[2:] for row in cells}


# ---- points


def test_points_come_in_the_order_of_the_file_and_of_all_combinations() -> None:
    labels = ["preset paper", "scaled on all rows"]
    assert [p.label for p in points_of(SMALL, "skillcraft", "erm")] == labels
    assert [p.label for p in points_of(SMALL, "skillcraft", "cmixup")] == [*labels, "bandwidth 0.5", "bandwidth 30"]
    points = points_of(GRID, "airfoil", "erm")
    assert (len(points), points[0].label) == (18, "label scaling none, epochs 100, lr 0.01")
    assert points[-1].options == {"train.label_scaling": "standard", "train.epochs": 500, "train.lr": 0.003}
    assert [p.options for p in points_of(BANDWIDTH, "airfoil", "erm")] == [{}]  # beside the sweep, as its preset
    assert [swept_option(e) for e in (BANDWIDTH, GRID, SMALL)] == [("cmixup", "method.bandwidth"), ("", ""), ("", "")]


@pytest.mark.parametrize("experiment", [BANDWIDTH, ALPHA], ids=lambda e: e.name)
def test_sweeps_hold_the_preset_s_value_and_mixup_mixes_where_cmixup_does(experiment: Experiment) -> None:
    _, option = swept_option(experiment)
    for dataset in experiment.datasets:
        values = [p.options[option] for p in points_of(experiment, dataset, "cmixup")]
        assert values == sorted(values)
        if experiment is BANDWIDTH:
            assert len(values) == (6 if dataset == "exchange_rate" else 12)
        for preset in ("paper", "released"):
            preset_values = part_file("dataset", dataset)["presets"][preset]
            assert preset_values[option.rpartition(".")[2]] in values
            other = "mixup" if preset_values["layer"] == "input" else "manifold_mixup"
            assert selected_methods(experiment, dataset, experiment.methods) == ["erm", other, "cmixup"]


@pytest.mark.parametrize(
    ("points", "named"),
    [
        ({"label": "x"}, "points must have label and options, or grid, got {'label': 'x'}"),
        ({"label": "x", "options": {}, "grid": {}}, "points must have label and options, or grid"),
        ({"lable": "x", "grid": {"method.alpha": [1]}}, "points must have label and options, or grid"),
        ({"grid": {"method.alpha": [1.0, 1.0]}}, r"grid.method.alpha must be different values, got \[1.0, 1.0\]"),
        ({"grid": {"method.alpha": []}}, "points.grid.method.alpha must be different values"),
        ({"grid": {"method.alpha": [1]}, "methods": ["mixrl"]}, "methods must be one of erm, cmixup, got 'mixrl'"),
        ({"grid": {"method.alpha": [1]}, "datasets": ["no2"]}, "points.datasets must be one of airfoil, got 'no2'"),
    ],
)  # fmt: skip
def test_points_that_are_none_are_refused(
    points: dict[str, Any], named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node = {"name": "mine", "title": "t", "datasets": ["airfoil"], "methods": ["erm", "cmixup"], "budget_minutes": 1}
    monkeypatch.setattr(experiment_module, "part_path", lambda *_: tmp_path / "mine.yaml")
    (tmp_path / "mine.yaml").write_text(yaml.safe_dump({**node, "points": [points]}))
    with pytest.raises(InputError, match=named):
        load_experiment("mine")


@pytest.mark.parametrize("method", ABLATION.methods)
def test_a_run_is_at_the_point_it_was_planned_for_and_at_no_other(method: str) -> None:
    points, reports = points_of(ABLATION, "crime", method), []
    for seed, point in enumerate(points):
        cell = ["dataset=crime", f"method={method}", "preset=paper", "experiment=ablation_ood", "logger=none"]
        job = plan_job(compose_train([*cell, *override_words(point.options), "device=cpu"]))
        about = {"dataset": "crime", "method": method, "preset": job.config["preset"], "options": job.options}
        reports.append(plain_report(experiment="ablation_ood", seed=seed, config=job.config, run="", **about))
    found = runs_by_point(ABLATION, "crime", frame_of(reports), "paper")
    want = {point.label: [seed] for seed, point in enumerate(points)}
    assert {label: runs["seed"].tolist() for (one, label), runs in found.items() if one == method} == want


# ---- the page


def ablated(method: str, options: dict[str, Any], rmse: list[float], worst: list[float]) -> list[dict[str, Any]]:
    config = {"preset": "paper", "dataset": {"scaling": options.get("dataset.scaling", "train")},
              "method": {"bandwidth": options.get("method.bandwidth", 0.1)}}  # fmt: skip
    return [
        plain_report(experiment=SMALL.name, dataset="skillcraft", method=method, preset="paper", options=options,
               seed=k, scores={"test": {"rmse": r, "worst_rmse": w}}, config=config, run=f"{method}/{options}/seed={k}",
               facts={"effective_fraction": 0.04} if "method.bandwidth" in options else {})
        for k, (r, w) in enumerate(zip(rmse, worst, strict=True))
    ]  # fmt: skip


def test_changes_are_paired_differences_to_the_methods_first_row() -> None:
    reports = [
        *ablated("erm", {}, [5.0, 6.0, 7.0], [8.0, 9.0, 10.0]),
        *ablated("erm", {"dataset.scaling": "all"}, [5.5, 6.5, 7.5], [8.0, 8.0, 8.0]),
        *ablated("cmixup", {}, [4.0, 4.0, 4.0], [7.0, 7.0, 7.0]),
        *ablated("cmixup", {"dataset.scaling": "all"}, [5.0, 6.0, 7.0], [7.0, 7.0, 7.0]),
        *ablated("cmixup", {"method.bandwidth": 0.5}, [4.0, 5.0, 6.0], [7.0, 7.0, 7.0]),
    ]
    runs = frame_of(reports)
    rows = rows_of(ablation_page(SMALL, runs, "paper", ["NO2: not at hand"]))
    assert rows["ERM", "**preset paper**"] == ["3", "6.000 ± 1.000", "9.000 ± 1.000", "—", "—", "—"]
    change = "+0.500 [+0.500, +0.500]"
    assert rows["ERM", "scaled on all rows"] == ["3", "6.500 ± 1.000", "8.000 ± 0.000", change, "—", "—"]
    change, minus = "+1.000 [-1.484, +3.484]", "-1.000 [-1.000, -1.000]"
    assert rows["C-Mixup", "bandwidth 0.5"] == ["3", "5.000 ± 1.000", "7.000 ± 0.000", change, minus, "0.04"]
    change, minus = "+2.000 [-0.484, +4.484]", "-0.500 [-0.500, -0.500]"  # of ERM with the same change
    assert rows["C-Mixup", "scaled on all rows"][3:] == [change, minus, "—"]
    assert ("C-Mixup", "bandwidth 30") not in rows  # never run
    assert "- NO2: not at hand" in ablation_page(SMALL, runs, "paper", ["NO2: not at hand"])
    frame = pd.read_csv(io.StringIO(ablation_csv(SMALL, runs, "paper"))).set_index(["method", "changed"])
    line = frame.loc[("cmixup", "scaled on all rows")]
    assert line[["n", "rmse_mean", "rmse_std", "worst_rmse_mean"]].tolist() == [3, 6, 1, 7]
    assert line[["change", "change_low", "minus_erm", "minus_erm_high"]].tolist() == pytest.approx(
        [2, -0.484, -0.5, -0.5], abs=1e-3
    )
    assert frame.loc[("cmixup", "bandwidth 0.5"), "partners"] == pytest.approx(0.04)


def line(method: str, scores: dict[int, float], **changes: Any) -> list[dict[str, Any]]:
    as_table = {"method": method, "experiment": "table1", "facts": {}, "verdict": "", **changes}
    return [report(seed, score, **as_table) for seed, score in scores.items()]


def swept_runs() -> pd.DataFrame:
    """Runs of four bandwidths and what stands beside them, and runs that belong to neither."""
    swept = {0.01: (1.0, 2.0, 3.0), 1000.0: (4.0, 4.0, 7.0), 5.0: (2.0,), 1.75: (2.0, 3.0, 4.0)}
    others = [
        report(0, 99.0, 0.01, preset="released"),
        report(0, 99.0, 0.01, experiment="adhoc"),
        report(0, 99.0, 0.3, options={"method.bandwidth": 0.3, "train.lr": 0.5}),
        report(0, 99.0, 0.3, dataset="no2"),
        *line("erm", {0: 99.0}, options={"train.lr": 0.5}),
        *line("erm", {1: 99.0}, experiment="table_batch_id"),
        *line("mixup", {0: 99.0}),  # Airfoil's mixing partner is Manifold Mixup
    ]
    mine = [report(seed, score, value) for value, scores in swept.items() for seed, score in enumerate(scores)]
    lines = [*line("erm", {0: 1.5, 1: 2.0, 2: 2.5, 3: 9.0}), *line("manifold_mixup", {0: 1.0, 2: 3.0})]
    return frame_of([*others, *mine, *lines])


def test_runs_are_grouped_by_value_and_lines_come_from_their_table() -> None:
    (swept,) = find_sweeps(BANDWIDTH, swept_runs(), "paper")
    assert [p.value for p in swept.points] == [0.01, 1.75, 5.0, 1000.0]
    assert [p.scores for p in swept.points][:2] == [{0: 1.0, 1: 2.0, 2: 3.0}, {0: 2.0, 1: 3.0, 2: 4.0}]
    assert swept.lines == {"erm": {0: 1.5, 1: 2.0, 2: 2.5}, "manifold_mixup": {0: 1.0, 2: 3.0}}  # seed 3 is in no point
    assert find_sweeps(BANDWIDTH, swept_runs(), "released") == []  # one value is no sweep


def test_methods_without_points_are_what_the_others_are_compared_with() -> None:
    rows = rows_of(ablation_page(BANDWIDTH, swept_runs(), "paper"))
    assert rows["Airfoil", "changed"] == ["n", "RMSE", "change", "minus ERM", "minus Manifold Mixup", "partners"]
    assert rows["ERM", "the preset"][:2] == ["3", "2.000 ± 0.500"]
    minus = ["0.000 [-1.242, +1.242]", "0.000 [0.000, 0.000]"]  # of 1 - 1.5, 2 - 2, 3 - 2.5; of 1 - 1, 3 - 3
    assert rows["C-Mixup", "bandwidth 0.01"] == ["3", "2.000 ± 1.000", "—", *minus, "0.2"]
    assert rows["C-Mixup", "**bandwidth 1.75**"][2:4] == ["—", "+1.000 [-0.242, +2.242]"]  # no runs at the first
    assert rows["C-Mixup", "bandwidth 5"] == ["1", "2.000", "—", "—", "—", "0.2"]


def test_a_run_with_a_further_option_is_at_no_point_and_two_of_one_seed_are_refused() -> None:
    runs, other = swept_runs(), frame_of([{**report(0, 50.0, 0.01), "run": "another/seed=0"}])
    assert "99.0" not in ablation_page(BANDWIDTH, runs, "paper")
    with pytest.raises(InputError, match=r"seed 0 is there twice.*another"):
        ablation_page(BANDWIDTH, pd.concat([runs, other]), "paper")


def test_a_published_sweep_shows_the_layer_that_is_better_on_validation(tmp_path: Path) -> None:
    made = []
    for layer, scores in (("input", {0: 1.0, 25: 3.0}), ("hidden", {0: 2.0, 25: 2.0})):
        for outer, score in scores.items():
            options = {"method.layer": layer, "method.outer": outer}
            one = report(0, score, experiment="figure_search", method="mixrl", layer=layer, options=options)
            one["config"]["method"]["outer"] = outer
            made.append({**one, "run": f"figure_search/airfoil/fcn3/mixrl/paper,{layer},{outer}/seed=0"})
    write_reports(tmp_path, made)
    ((experiment, preset),) = published_ablations(tmp_path)
    assert (experiment.name, preset) == ("figure_search", "paper")
    (swept,) = find_sweeps(experiment, table_runs(tmp_path), preset)
    assert [(p.value, p.scores) for p in swept.points] == [(0, {0: 1.0}), (25, {0: 2.0})]
