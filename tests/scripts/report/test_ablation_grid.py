"""The ladder: its cells, and parts of a gain that are known in closed form."""

import itertools
from collections.abc import Callable
from typing import Any

import pytest

from cmixup.errors import InputError
from scripts.records.experiment import load_experiment
from scripts.report.ablation_grid import account_gain, grid_page, scores_of, shapley_parts
from tests.scripts.reports import report

LADDER = load_experiment("ladder")
OPTIONS = list(LADDER.grid)
START, GOAL = ("none", 100, 0.01), ("standard", 200, 0.003)
Value = Callable[[str, tuple, int], float]


def reports(value: Value, seeds: int = 3, methods: tuple[str, ...] = ("erm", "cmixup")) -> list[dict[str, Any]]:
    """A run of every method, point and seed, with the test score `value`."""
    found = []
    for method, point, seed in itertools.product(methods, itertools.product(*LADDER.grid.values()), range(seeds)):
        options = dict(zip(OPTIONS, point, strict=True))
        train = {option.removeprefix("train."): v for option, v in options.items()}
        found.append(
            report(experiment="ladder", dataset="airfoil", method=method, preset="paper", seed=seed,
                   options=options, scores={"test": {"rmse": value(method, point, seed)}},
                   config={"train": train}, run=f"{method}/{point}/seed={seed}")
        )  # fmt: skip
    return found


def additive(method: str, point: tuple, seed: int) -> float:
    scale, epochs, lr = point
    return 3 + 0.1 * seed - 1.0 * (scale == "standard") - epochs / 1000 + 10 * lr + 0.2 * (method == "cmixup")


def interacting(method: str, point: tuple, seed: int) -> float:
    """Scaling helps by 1, and by 2 with the lower rate; the method harms by the seed where labels are scaled."""
    scaled = point[0] == "standard"
    return 5 - scaled * (1 + (point[2] == 0.003)) + scaled * seed * (method == "cmixup")


def test_shapley_values_of_a_product_are_shared_alike_and_sum_to_the_whole() -> None:
    parts = shapley_parts(lambda s: float({"a", "b"} <= s) + 3.0 * ("c" in s), ["a", "b", "c"])
    assert parts == {"a": pytest.approx(0.5), "b": pytest.approx(0.5), "c": pytest.approx(3.0)}


def test_a_run_with_a_further_option_is_refused_and_overwrites_no_other() -> None:
    runs = reports(additive, seeds=1)
    other = {**runs[0], "options": {**runs[0]["options"], "dataset.label_noise": 0.3}, "run": "another/seed=0"}
    with pytest.raises(InputError, match=r"seed 0 is there twice.*another"):
        scores_of(LADDER, [*runs, other], "airfoil", "paper")


def test_additive_parts_are_found_whatever_the_order() -> None:
    found = account_gain(scores_of(LADDER, reports(additive), "airfoil", "paper"), OPTIONS, "cmixup", START, GOAL)
    assert found is not None
    means = {name: interval.mean for name, interval in found.items() if interval}
    expected = {OPTIONS[0]: -1.0, OPTIONS[1]: -0.1, OPTIONS[2]: -0.07, "method": 0.2, "total": -0.97}
    assert means == pytest.approx(expected)
    assert found["method"]
    assert found["method"].low == pytest.approx(0.2)


def test_interactions_are_split_and_intervals_are_over_seeds() -> None:
    found = account_gain(scores_of(LADDER, reports(interacting), "airfoil", "paper"), OPTIONS, "cmixup", START, GOAL)
    assert found is not None
    means = {name: interval.mean for name, interval in found.items() if interval}
    seeds = 1.0  # the mean of 0, 1, 2
    assert means[OPTIONS[0]] == pytest.approx(-1.5 + seeds / 2)
    assert means[OPTIONS[2]] == pytest.approx(-0.5)
    assert means["method"] == pytest.approx(seeds / 2)
    assert means["total"] == pytest.approx(-2 + seeds)
    method = found["method"]
    assert method
    assert method.high - method.low == pytest.approx(2 * 4.3027 * 0.5 / 3**0.5, rel=1e-3)


def test_options_that_do_not_change_have_no_part_and_missing_corners_no_account() -> None:
    scores = scores_of(LADDER, reports(additive), "airfoil", "paper")
    found = account_gain(scores, OPTIONS, "cmixup", START, ("none", 200, 0.01))
    assert found is not None
    assert set(found) == {OPTIONS[1], "method", "total"}
    del scores["erm", ("none", 200, 0.01)]
    assert account_gain(scores, OPTIONS, "cmixup", START, ("none", 200, 0.01)) is None


def test_the_page_shows_differences_in_a_row_and_the_account() -> None:
    text = grid_page(LADDER, reports(additive), "paper")
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert rows[0] == "| label scaling | epochs | lr | n | ERM | C-Mixup minus |"
    assert rows[2].startswith("| none | 100 | 0.01 | 3 | 3.100 ± 0.100 | +0.200 [+0.200, +0.200] |")
    assert len([row for row in rows if row.startswith(("| none", "| centre", "| standard"))]) == 18
    assert "| C-Mixup | standard, 200, 0.003 | -0.184 | -0.970 [-0.970, -0.970] |" in text
    assert "ADA" not in "".join(rows)  # it has no runs here
