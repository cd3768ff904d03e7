"""The choice of the regressor's default, and what intervals are compared by, on numbers made up here."""

import numpy as np
import pandas as pd
import pytest
import torch

from cmixup.errors import InputError
from cmixup.sklearn.trees import weigh_trees
from scripts.bench import ablation, intervals
from scripts.bench.estimators import interval_coverage
from scripts.bench.recipes import RECIPES, prepared_columns
from scripts.config.arguments import parse_args
from scripts.records.records import read_csv
from tests.robustness.pictures import faults_of


def test_the_cheapest_within_a_standard_error_of_the_best_is_chosen() -> None:
    """Ten networks are better by less than a standard error, trees worse by more; without table "d" ten are chosen."""
    errors = pd.DataFrame(
        [[0.0, 0.0, 0.0, 0.0], [-0.1, -0.1, -0.1, 0.2], [0.5, 0.6, 0.4, 0.5]],
        index=["networks_5", "networks_10", "trees_1"], columns=list("abcd"),
    )  # fmt: skip
    best, without, left_out = ablation.chosen_default(errors)
    assert (best, without) == ("networks_5", ["networks_5", "networks_5", "networks_5", "networks_10"])
    assert left_out == pytest.approx(0.2 / 4)


def test_the_page_of_the_ablation_is_that_of_its_record() -> None:
    path = ablation.RESULTS / "benchmarks" / "ablation.csv"
    _, table, *rest = ablation.report_blocks(read_csv(path))
    text = path.with_suffix(".md").read_text()
    assert "\n".join(table) in text
    assert all(str(part) in text for part in rest)


def test_a_model_that_is_not_installed_is_named_before_any_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ablation, "find_spec", lambda _: None)
    monkeypatch.setattr(ablation, "measure_table", lambda *_: pytest.fail("fitted first"))
    with pytest.raises(InputError, match="compares with catboost, which is not installed"):
        ablation.run(parse_args(["short=1"], ablation.KEYS))


def test_the_blend_of_the_ablation_is_that_of_the_library() -> None:
    rng = np.random.default_rng(0)
    nets, trees, held, grown, labels = rng.normal(size=(5, 30, 2))
    weight = weigh_trees([held], [grown], [labels], np.ones(30))
    np.testing.assert_allclose(ablation.stacked_mean(nets, trees, held, grown, labels), nets + (trees - nets) * weight)


def test_recipes_change_what_they_say() -> None:
    frame = pd.DataFrame({"a": [0.0, 1, 2, 3, 1000], "b": pd.Categorical(list("uvuvu"))})
    squeezed, _ = prepared_columns("robust", frame, np.zeros((5, 1)), frame)
    z = (frame["a"] - 2) / 2
    np.testing.assert_allclose(squeezed["a"], z / np.sqrt(1 + (z / 3) ** 2))
    assert squeezed["a"].max() < 3
    many = pd.DataFrame({"a": np.arange(40.0), "b": pd.Categorical([str(k % 10) for k in range(40)])})
    train, test = prepared_columns("target", many, np.arange(40.0)[:, None], many)
    assert list(train) == list(test) == ["a", "b|0"]
    scaled = RECIPES["scaled"].network((3, 4, 1))
    plain = ablation.PLAIN.network((3, 4, 1))
    plain.load_state_dict({name: value for name, value in scaled.state_dict().items() if name != "scale"})
    x = torch.randn(5, 3)
    assert torch.equal(scaled(x), plain(x))
    with torch.no_grad():
        scaled.scale.fill_(1 / 6)
    assert torch.allclose(scaled(x), plain(2 * x))


def test_coverage_and_width_are_means_over_outputs() -> None:
    y = np.array([[0.0, 0.0], [1.0, 2.0], [2.0, 4.0]])
    half = np.array([1.0, 3.0])
    ends = np.stack([y - half, y + half], axis=1)
    ends[0, :, 0] = [5.0, 7.0]
    width = (2 / y[:, 0].std() + 6 / y[:, 1].std()) / 2
    assert interval_coverage(ends, y) == (pytest.approx(5 / 6, abs=1e-4), pytest.approx(width, abs=1e-4))
    assert interval_coverage(ends[:, :, 0], y[:, :1])[0] == pytest.approx(2 / 3, abs=1e-4)


def test_the_conformal_quantile_is_that_of_the_definition() -> None:
    scores = np.random.default_rng(0).permutation(np.arange(1.0, 20))  # 19 of them: the 18th
    assert intervals.score_quantile(scores) == 18
    assert intervals.score_quantile(np.arange(5.0)) == 4


def test_the_picture_of_intervals_misleads_nobody() -> None:
    rng = np.random.default_rng(0)
    rows = [
        {"table": str(t), "model": name, "coverage": str(rng.uniform(0.8, 0.99)), "width": str(rng.uniform(1, 3))}
        for name in intervals.WORDS for t in range(30)
    ]  # fmt: skip
    assert faults_of({"intervals.png": intervals.coverage_picture(rows)}) == []
    table = intervals.report_table(rows)
    assert len(table) == 2 + len(intervals.WORDS)
