"""The ablation grid: its cells, and their differences from ERM."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from cmixup.errors import InputError
from scripts.records.experiment import load_experiment
from scripts.report.sweep import grid_page, scores_of
from tests.scripts.reports import report

GRID = load_experiment("ladder")
OPTIONS = list(GRID.grid)
Value = Callable[[str, tuple, int], float]


def reports(value: Value, seeds: int = 3, methods: tuple[str, ...] = ("erm", "cmixup")) -> list[dict[str, Any]]:
    """A run of every method, point and seed, with the test score `value`."""
    made = []
    for method, point, seed in itertools.product(methods, itertools.product(*GRID.grid.values()), range(seeds)):
        options = dict(zip(OPTIONS, point, strict=True))
        train = {option.removeprefix("train."): v for option, v in options.items()}
        made.append(
            report(experiment="ladder", dataset="airfoil", method=method, preset="paper", seed=seed,
                   options=options, scores={"test": {"rmse": value(method, point, seed)}},
                   config={"train": train}, run=f"{method}/{point}/seed={seed}")
        )  # fmt: skip
    return made


def additive(method: str, point: tuple, seed: int) -> float:
    scale, epochs, lr = point
    return 3 + 0.1 * seed - 1.0 * (scale == "standard") - epochs / 1000 + 10 * lr + 0.2 * (method == "cmixup")


def test_a_run_with_a_further_option_is_refused_and_overwrites_no_other() -> None:
    runs = reports(additive, seeds=1)
    other = {**runs[0], "options": {**runs[0]["options"], "dataset.label_noise": 0.3}, "run": "another/seed=0"}
    with pytest.raises(InputError, match=r"seed 0 is there twice.*another"):
        scores_of(GRID, [*runs, other], "airfoil", "paper")


def test_the_page_shows_differences_in_a_row() -> None:
    text = grid_page(GRID, reports(additive), "paper")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert rows[0] == "| label scaling | epochs | lr | n | ERM | C-Mixup minus |"
    assert rows[2].startswith("| none | 100 | 0.01 | 3 | 3.100 ± 0.100 | +0.200 [+0.200, +0.200] |")
    assert len([row for row in rows if row.startswith(("| none", "| centre", "| standard"))]) == 18
    assert "ADA" not in "".join(rows)  # it has no runs here
