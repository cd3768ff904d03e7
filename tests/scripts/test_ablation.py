"""Points that an experiment changes of its preset: which runs they are, the page, and the sweep of one option."""

import math
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
from scripts.report.ablation import ablation_frame, ablation_page, find_sweeps, published_ablations, runs_by_point
from tests.scripts.reports import report as plain_report
from tests.scripts.sweeps import report

ABLATION, GRID = load_experiment("ablation_ood"), load_experiment("ladder")
BANDWIDTH, ALPHA = load_experiment("figure_bandwidth"), load_experiment("figure_alpha")
T3 = 4.302652729911275  # 97.5 % quantile of Student's t with 2 degrees of freedom
SMALL = replace(
    ABLATION, datasets=["skillcraft"], points=[{"label": "preset paper", "options": {}},
    {"label": "scaled on all rows", "options": {"dataset.scaling": "all"}},
    {"grid": {"method.bandwidth": [0.5, 30.0]}, "methods": ["cmixup"]}],
)  # fmt: skip


def rows_of(experiment: Experiment, runs: pd.DataFrame) -> pd.DataFrame:
    """The rows of an ablation by method and what is changed."""
    return ablation_frame(experiment, runs, "paper").set_index(["method", "changed"])


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
    by_point = runs_by_point(ABLATION, "crime", frame_of(reports), "paper")
    want = {point.label: [seed] for seed, point in enumerate(points)}
    assert {label: runs["seed"].tolist() for (one, label), runs in by_point.items() if one == method} == want


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
    rows = rows_of(SMALL, frame_of(reports))
    exact = ["n", "rmse_mean", "rmse_std", "worst_rmse_mean", "worst_rmse_std"]
    assert rows.loc[("erm", "preset paper"), exact].tolist() == [3, 6, 1, 9, 1]
    assert rows.loc[("erm", "scaled on all rows"), exact].tolist() == [3, 6.5, 1, 8, 0]
    assert ("cmixup", "bandwidth 30") not in rows.index  # never run
    ends = [*(f"{name}{end}" for name in ("change", "minus_erm") for end in ("", "_low", "_high")), "partners"]
    none, half = math.nan, T3 / math.sqrt(3)
    want = {
        ("erm", "preset paper"): [none] * 7, ("erm", "scaled on all rows"): [0.5] * 3 + [none] * 4,
        ("cmixup", "bandwidth 0.5"): [1, 1 - half, 1 + half, -1, -1, -1, 0.04],
        # minus ERM with the same change
        ("cmixup", "scaled on all rows"): [2, 2 - half, 2 + half, -0.5, -0.5, -0.5, none],
    }  # fmt: skip
    for key, values in want.items():
        assert rows.loc[key, ends].astype(float).tolist() == pytest.approx(values, nan_ok=True)
    page = ablation_page(SMALL, rows.reset_index(), "paper", ["NO2: not at hand"])
    assert "| 3 | 5 | 1 | 7 | 0 | 1 [-1.484, 3.484] | -1 [-1, -1] | 0.04 |\n" in page
    assert "- NO2: not at hand" in page
    alone = ablation_page(SMALL, rows_of(SMALL, frame_of(reports[:1])).reset_index(), "paper")
    assert "| 1 | 5 |  | 8 |  | — | — |  |\n" in alone
    assert "|" not in ablation_page(SMALL, pd.DataFrame(), "paper")  # nothing is trained yet


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
    rows = rows_of(BANDWIDTH, swept_runs())
    assert rows.loc[("erm", "the preset"), ["n", "rmse_mean", "rmse_std"]].tolist() == [3, 2, 0.5]
    about = ["n", "rmse_mean", "rmse_std", "change", "partners"]
    values = rows.loc[("cmixup", "bandwidth 0.01"), about].astype(float).tolist()
    assert values == pytest.approx([3, 2, 1, math.nan, 0.2], nan_ok=True)
    minus = rows.loc[("cmixup", "bandwidth 0.01"), ["minus_erm", "minus_erm_high", "minus_manifold_mixup_high"]]
    assert minus.tolist() == pytest.approx([0, T3 * 0.5 / math.sqrt(3), 0])  # of 1 - 1.5, 2 - 2, 3 - 2.5; 1 - 1, 3 - 3
    assert rows.loc[("cmixup", "bandwidth 1.75"), "minus_erm"] == 1
    assert rows["change"].isna().all()  # no runs at the first value
    assert rows.loc[("cmixup", "bandwidth 5"), "n"] == 1


def test_a_run_with_a_further_option_is_at_no_point_and_two_of_one_seed_are_refused() -> None:
    runs, other = swept_runs(), frame_of([{**report(0, 50.0, 0.01), "run": "another/seed=0"}])
    assert rows_of(BANDWIDTH, runs)["rmse_mean"].max() == 5
    with pytest.raises(InputError, match=r"seed 0 is there twice.*another"):
        rows_of(BANDWIDTH, pd.concat([runs, other]))


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
