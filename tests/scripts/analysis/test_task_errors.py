"""Methods compared on the same test tasks: errors of every task, paired intervals, refusals."""

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from cmixup.errors import InputError
from datasets.pascal1d_rendered import Pascal1DRendered
from scripts.analysis.task_errors import CONSTANT, render_tables, score_runs, task_means
from tests.scripts.jobs import execute_job, job_of

METHODS = ("maml", "mr_maml")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with runs of two methods on synthetic data; MR-MAML adds parameters to the backbone's."""
    out = tmp_path_factory.mktemp("runs")
    for method in METHODS:
        words = ["dataset=pascal1d_rendered", f"method={method}", "debug=tiny", "model.width=2"]
        execute_job(job_of(*words, "method.inner_steps=1", "experiment.name=table2", f"out={out}"))
    return out


@pytest.fixture
def trained(runs: Path) -> list[dict[str, Any]]:
    """The reports of those runs."""
    return [json.loads(next(runs.rglob(f"{method}/*/*/report.json")).read_text()) for method in METHODS]


def test_every_task_has_an_error_whose_mean_is_the_recorded_score(trained: list, runs: Path) -> None:
    frame = score_runs(trained, runs)
    assert list(frame) == ["seed", "task", "object", CONSTANT, *METHODS]
    for report in trained:
        mean = frame[report["method"]].astype(float).mean()
        assert mean == pytest.approx(report["scores"]["test"]["mse"], rel=1e-3)
    assert list(zip(frame["seed"], frame["task"], strict=True)) == [(0, 0), (0, 1)]
    dataset = Pascal1DRendered(synthetic=True)
    expected = (dataset.load(0).test.y - 10 * dataset.objects()[0].y.mean()).square().mean(dim=1)
    assert frame[CONSTANT].astype(float).tolist() == pytest.approx(expected.tolist(), rel=1e-3)
    assert set(frame["object"]) <= set(dataset.objects()[1].names)


def test_runs_on_other_tasks_are_refused(trained: list, runs: Path) -> None:
    trained[1]["config"]["dataset"]["task_seed"] = 5
    with pytest.raises(InputError, match="runs on pascal1d_rendered must share its options, got 2"):
        score_runs(trained, runs)


def frame_of(objects: str, **columns: list[float]) -> pd.DataFrame:
    """Rows of test tasks 0, 1, ... of these objects, as often as there are values."""
    n = len(next(iter(columns.values())))
    tasks = [k % len(objects) for k in range(n)]
    seeds = [k // len(objects) for k in range(n)]
    return pd.DataFrame({"seed": seeds, "task": tasks, "object": [objects[k] for k in tasks], CONSTANT: 8.0, **columns})


def test_seeds_are_averaged_and_only_shared_ones_compared() -> None:
    nan = float("nan")
    frame = frame_of("ab", maml=[4.0, 2, 6, 2, 60, 60], cmixup_meta=[3.0, 4, 4, 2, nan, nan])
    errors, objects, seeds = task_means(frame, "maml")
    assert (errors.tolist(), objects.tolist(), seeds) == ([pytest.approx(70 / 3), pytest.approx(64 / 3)], ["a", "b"], 3)
    errors, _, seeds = task_means(frame, "cmixup_meta", "maml")
    assert (errors.tolist(), seeds) == ([-1.5, 1.0], 2)


def test_the_table_has_both_intervals(tmp_path: Path) -> None:
    folder = tmp_path / "task_errors"
    folder.mkdir()
    frame = frame_of("aabb", maml=[4.0, 5, 6, 3], cmixup_meta=[3.0, 4, 6, 3])
    frame.to_csv(folder / "pascal1d_rendered_cpu.csv", index=False)
    ((name, text),) = render_tables(tmp_path).items()
    assert name == "tables/table2_paired_pascal1d_rendered_cpu.md"
    assert "PASCAL3D, our rendering, preset cpu (64 x 64 pixels, decoder width 16" in text
    assert "4 test tasks of 2 objects" in text
    # Differences -1, -1, 0, 0. Objects: sums about the mean -1, 1, so sqrt(2 * 2) / 4 = 0.5 and t(0.975, 1) = 12.7062.
    # Tasks: s = 1 / sqrt(3), so a standard error of 0.288675 and t(0.975, 3) = 3.182446.
    assert "| MAML | 1 | 4.500 [4.500, 4.500] | -0.500 | [-6.853, +5.853] | [-1.419, +0.419] |" in text
    # C-Mixup's own errors are 3.5 and 4.5 in the mean of each object: again sqrt(2 * 2) / 4.
    assert "| C-Mixup | 1 | 4.000 [-2.353, 10.353] | — | — | — |" in text
    assert "| mean training label | — | 8.000 [8.000, 8.000] | -4.000 | [-10.353, +2.353] |" in text
    assert render_tables(tmp_path / "nothing") == {}
