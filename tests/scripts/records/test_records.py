"""Reports as a frame: every bit, what tells one run from another, and the better layer."""

import math
from typing import Any

import pytest

from cmixup.errors import InputError
from scripts.records.csv_rows import to_csv
from scripts.records.run_tables import by_seed, choose_variants, frame_of, option_words
from tests.scripts.reports import report


def test_a_report_is_a_row_and_what_its_cell_shares() -> None:
    made = report(scores={"val": {"rmse": 0.1 + 0.2}, "test": {"r": math.nan, "rmse": 1e-17}}, notes=["one"])
    (run,) = frame_of([made]).to_dict("records")
    assert run["shared"] == {"run": "table1/airfoil", "options": made["options"], "notes": ["one"]}
    assert option_words(run["options"]) == {"method.bandwidth": "1.75", "train.lr": "0.1"}
    numbers = {"seed": 3, "val_rmse": 0.1 + 0.2, "test_rmse": 1e-17, "test_r": math.inf, "best_epoch": 80,
               "train_effective_fraction": 0.27, "seconds": 1.5, "bandwidth": 1.75}  # fmt: skip
    assert {key: run[key] for key in numbers} == numbers
    assert (run["experiment"], run["layer"], run["run"]) == ("table1", "hidden", "table1/airfoil/seed=3")


def test_csv_leaves_out_other_keys() -> None:
    assert to_csv([{"a": 1, "b": None, "c": 3}], ["b", "a"]) == "b,a\n,1\n"


def test_scores_are_found_by_seed_and_a_seed_is_there_once() -> None:
    runs = frame_of([report(seed=4), report(scores={"test": {"r": 0.5}}), report(run="other/seed=4", seed=4)])
    assert by_seed(runs[:2], "test_rmse") == {4: 1 / 3}
    assert by_seed(runs, "test_mae") == by_seed(frame_of([]), "test_rmse") == {}
    with pytest.raises(InputError, match=r"seed 4 is there twice with the same options: .* and other"):
        by_seed(runs, "test_rmse")


def layer_report(layer: str, seed: int, val: float, metric: str = "rmse", **changes: Any) -> dict[str, Any]:
    options = {"method.layer": layer} if layer == "input" else {}
    about = {"options": options, "selection": metric, "run": f"{layer}/seed={seed}", **changes}
    return report(layer=layer, seed=seed, scores={"val": {metric: val}, "test": {metric: -val}}, **about)


def chosen(reports: list[dict[str, Any]]) -> dict[str, str]:
    runs = choose_variants(frame_of(reports))
    return dict(zip(runs["run"], runs["experiment"], strict=True))


def test_the_better_mean_on_validation_enters_the_table_over_seeds_that_both_layers_have() -> None:
    errors = {"hidden": (1.0, 4.0), "input": (2.0, 2.0)}
    reports = [layer_report(layer, seed, val) for layer, both in errors.items() for seed, val in enumerate(both)]
    assert chosen(reports) == {
        "hidden/seed=0": "table1_variants", "hidden/seed=1": "table1_variants",
        "input/seed=0": "table1", "input/seed=1": "table1",
    }  # fmt: skip
    inputs = [layer_report("input", seed, error) for seed, error in enumerate((2.0, 5.0, 5.0))]
    better = chosen([*inputs, layer_report("hidden", 0, 3.0)])  # one easy seed says nothing against three
    assert better == {**{f"input/seed={k}": "table1" for k in range(3)}, "hidden/seed=0": "table1_variants"}
    higher = [layer_report("hidden", 0, 0.9, "r"), layer_report("input", 0, 0.8, "r")]
    assert chosen(higher) == {"hidden/seed=0": "table1", "input/seed=0": "table1_variants"}


def test_other_options_presets_and_datasets_do_not_compete_and_the_layer_is_no_longer_an_option() -> None:
    reports = [
        layer_report("hidden", 0, 1.0),
        layer_report("input", 0, 2.0, preset="released", run="a"),
        layer_report("input", 0, 2.0, dataset="no2", run="b"),
        layer_report("input", 0, 2.0, options={"method.k": 8, "method.layer": "input"}, run="c"),
    ]
    assert set(chosen(reports).values()) == {"table1"}
    assert choose_variants(frame_of(reports))["options"].tolist() == ["", "", "method.k=8", ""]
    assert choose_variants(frame_of([])).empty
