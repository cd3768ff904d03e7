"""Methods compared on the same test tasks: errors of every task, paired intervals, refusals."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from cmixup.errors import InputError
from scripts.analysis.task_errors import (
    CONSTANT,
    TASK_KEY,
    file_columns,
    over_seeds,
    paired_table,
    render_tables,
    saved_rows,
    score_runs,
    task_figures,
)
from scripts.config.compose import compose_train
from scripts.driver import execute as run_module
from scripts.driver.execute import execute_job
from scripts.driver.job import plan_job
from scripts.records.published import published_records
from scripts.records.records import read_csv, to_csv
from tests.helpers import CPU

METHODS = ("maml", "mr_maml")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with runs of two methods on the twin; MR-MAML's model has parameters that are not the backbone's."""
    out = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as monkeypatch:
        monkeypatch.setattr(run_module, "run_environment", lambda _: {"commit": "c0ffee", "dirty": False})
        for method in METHODS:
            words = ["dataset=pascal1d_rendered", f"method={method}", "debug=tiny", "model.width=2"]
            more = ["method.inner_steps=1", "experiment.name=table2", f"out={out}"]
            execute_job(plan_job(compose_train([*words, *more])))
    return out


@pytest.fixture
def trained(runs: Path) -> list[dict[str, Any]]:
    """The reports of those runs."""
    return [json.loads(next(runs.rglob(f"{method}/*/*/report.json")).read_text()) for method in METHODS]


def test_every_task_has_an_error_whose_mean_is_the_recorded_score(trained: list, runs: Path) -> None:
    rows = score_runs(trained, runs, CPU)
    assert file_columns(rows) == ["seed", "task", "object", CONSTANT, "maml", "mr_maml"]
    for report in trained:
        mean = np.mean([float(r[report["method"]]) for r in rows])
        assert mean == pytest.approx(report["scores"]["test"]["mse"], rel=1e-3)
    assert [(r["seed"], r["task"]) for r in rows] == [(0, 0), (0, 1)]
    assert all(r["object"].startswith("spot ") and r["object"] not in [f"spot {k}" for k in range(4)] for r in rows)


def test_changed_scores_and_other_tasks_are_refused(trained: list, runs: Path) -> None:
    trained[1]["config"]["dataset"]["task_seed"] = 5
    with pytest.raises(InputError, match="runs on pascal1d_rendered must share its options, got 2"):
        score_runs(trained, runs, CPU)
    trained[0]["scores"]["test"]["mse"] *= 1.05
    with pytest.raises(InputError, match=r"table2/pascal1d_rendered\S+ was recorded with mse"):
        score_runs(trained[:1], runs, CPU)


def test_what_other_runs_left_stays(trained: list, runs: Path) -> None:
    """Their checkpoints may be on another machine."""
    old = [{k: str(v) for k, v in r.items()} | {"metamix": "7.5"} for r in score_runs(trained[:1], runs, CPU)]
    other = [{**r, "seed": "1"} for r in old]
    rows = score_runs(trained[1:], runs, CPU, [*old, *other])
    assert [str(r["seed"]) for r in rows] == ["0", "0", "1", "1"]
    assert file_columns(rows) == ["seed", "task", "object", CONSTANT, "maml", "mr_maml", "metamix"]
    assert [r["maml"] for r in rows] == [r["maml"] for r in [*old, *other]]
    assert all(r["mr_maml"] for r in rows[:2])
    assert rows[2:] == other
    moved = [{**r, CONSTANT: "1.0"} for r in old]  # errors on other tasks have no place beside these
    assert file_columns(score_runs(trained[1:], runs, CPU, moved))[3:] == [CONSTANT, "mr_maml"]


def test_published_task_errors_are_those_of_the_published_runs() -> None:
    records = {
        (r["dataset"], r["preset"], str(r["seed"]), r["method"]): float(r["value"])
        for r in published_records().to_dict("records")
        if (r["experiment"], r["split"], r["metric"], r["options"]) == ("table2", "test", "mse", {})
    }
    means = {}
    for (dataset, preset), rows in saved_rows().items():
        for seed in {r["seed"] for r in rows}:
            mine = [r for r in rows if r["seed"] == seed]
            for method in [c for c in file_columns(mine) if c not in (*TASK_KEY, CONSTANT)]:
                means[dataset, preset, seed, method] = np.mean([float(r[method]) for r in mine])
    assert means.keys() == records.keys()
    for run, mean in means.items():
        assert mean == pytest.approx(records[run], rel=1e-4), run


def row(seed: int, task: int, thing: str, **scores: float) -> dict[str, Any]:
    return {"seed": seed, "task": task, "object": thing, CONSTANT: 8.0, **scores}


def test_seeds_are_averaged_and_only_shared_ones_compared() -> None:
    rows = [
        row(0, 0, "a", maml=4.0, cmixup_meta=3.0),
        row(0, 1, "b", maml=2.0, cmixup_meta=4.0),
        row(1, 0, "a", maml=6.0, cmixup_meta=4.0),
        row(1, 1, "b", maml=2.0, cmixup_meta=2.0),
        row(2, 0, "a", maml=60.0),
        row(2, 1, "b", maml=60.0),
    ]
    assert over_seeds(rows, "maml") == ([pytest.approx(70 / 3), pytest.approx(64 / 3)], ["a", "b"], 3)
    assert over_seeds(rows, "cmixup_meta", "maml") == ([-1.5, 1.0], ["a", "b"], 2)


def test_the_table_has_both_intervals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [
        row(0, 0, "a", maml=4.0, cmixup_meta=3.0),
        row(0, 1, "a", maml=5.0, cmixup_meta=4.0),
        row(0, 2, "b", maml=6.0, cmixup_meta=6.0),
        row(0, 3, "b", maml=3.0, cmixup_meta=3.0),
    ]
    folder = tmp_path / "task_errors"
    folder.mkdir()
    (folder / "pascal1d_rendered_cpu.csv").write_text(to_csv(rows, file_columns(rows)))
    texts = render_tables(tmp_path)
    assert list(texts) == ["tables/table2_paired_pascal1d_rendered_cpu.md"]
    (text,) = texts.values()
    assert text == paired_table(read_csv(folder / "pascal1d_rendered_cpu.csv"), "pascal1d_rendered", "cpu")
    assert "PASCAL3D, our rendering, preset cpu (64 x 64 pixels, decoder width 16" in text
    assert "4 test tasks of 2 objects" in text
    # Differences -1, -1, 0, 0. Objects: sums about the mean -1, 1, so sqrt(2 * 2) / 4 = 0.5 and t(0.975, 1) = 12.7062.
    # Tasks: s = 1 / sqrt(3), so a standard error of 0.288675 and t(0.975, 3) = 3.182446.
    assert "| MAML | 1 | 4.500 [4.500, 4.500] | -0.500 | [-6.853, +5.853] | [-1.419, +0.419] |" in text
    # C-Mixup's own errors are 3.5 and 4.5 in the mean of each object: again sqrt(2 * 2) / 4.
    assert "| C-Mixup | 1 | 4.000 [-2.353, 10.353] | — | — | — |" in text
    assert "| mean training label | — | 8.000 [8.000, 8.000] | -4.000 | [-10.353, +2.353] |" in text
    ((name, drawn),) = task_figures(tmp_path).items()
    assert name == "figures/table2_objects_pascal1d_rendered_cpu.png"
    (axis,) = drawn.axes
    assert [label.get_text() for label in axis.get_xticklabels()] == ["a", "b"]
    assert {line.get_label(): list(line.get_ydata()) for line in axis.lines} == {
        "mean training label": [8.0, 8.0], "MAML": [4.5, 4.5], "C-Mixup": [3.5, 4.5],
    }  # fmt: skip
    assert render_tables(tmp_path / "nothing") == {}
