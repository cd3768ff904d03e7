"""Reports as tidy rows, and what tells one row from another."""

from typing import Any

from scripts.records.records import (
    RECORD_COLUMNS,
    by_seed,
    choose_variants,
    records_csv,
    records_frame,
    report_rows,
    select_records,
    to_csv,
)
from tests.scripts.reports import report


def test_rows_of_a_report() -> None:
    tidy = report_rows(report())
    assert all(set(row) == set(RECORD_COLUMNS) for row in tidy)
    values = {(row["split"], row["metric"]): row["value"] for row in tidy}
    assert values == {
        ("val", "rmse"): 2.5, ("val", "r"): 0.9, ("test", "rmse"): 1 / 3, ("train", "effective_fraction"): 0.27,
        ("train", "seconds"): 1.5, ("train", "best_epoch"): 80,
    }  # fmt: skip
    assert all(row["options"] == {"train.lr": 0.1, "method.bandwidth": 1.75} for row in tidy)
    assert {(row["seed"], row["layer"], row["run"]) for row in tidy} == {(3, "hidden", "table1/airfoil/seed=3")}


def test_csv_leaves_out_other_keys() -> None:
    assert to_csv([{"a": 1, "b": None, "c": 3}], ["b", "a"]) == "b,a\n,1\n"


def test_numbers_keep_every_digit_and_their_type_in_csv() -> None:
    given = report(scores={"val": {"rmse": 0.1 + 0.2}, "test": {"r": float("nan"), "rmse": 1e-17}}, facts={})
    lines = records_csv(records_frame([given])).splitlines()[1:]
    assert all(",method.bandwidth=1.75 train.lr=0.1," in line for line in lines)
    assert [line.split(",")[-2] for line in lines] == ["0.30000000000000004", "nan", "1e-17", "1.5", "80"]


def test_records_are_selected_by_typed_options() -> None:
    both = records_frame([report(options={"method.bandwidth": ["std", 0.3]}), report(seed=4, options={})])
    assert set(select_records(both, options={"method.bandwidth": ["std", 0.3]})["seed"]) == {3}
    assert by_seed(both, metric="rmse", options={}) == {4: 1 / 3}
    assert by_seed(both.iloc[:0], metric="rmse", options={}) == by_seed(both, preset="tuned") == {}


def layer_report(layer: str, seed: int, val: float, metric: str = "rmse", **changes: Any) -> dict[str, Any]:
    return {
        "experiment": "table1", "dataset": "airfoil", "model": "fcn3", "method": "k_mixup", "preset": "paper",
        "layer": layer, "options": {"method.layer": layer} if layer == "input" else {}, "seed": seed,
        "selection": metric, "scores": {"val": {metric: val}, "test": {metric: -val}},
        "run": f"{layer}/seed={seed}",
    } | changes  # fmt: skip


def chosen(reports: list[dict[str, Any]]) -> dict[str, str]:
    return {r["run"]: r["experiment"] for r in choose_variants(reports)}


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
    assert [kept["options"] for kept in choose_variants(reports)] == [{}, {}, {"method.k": 8}, {}]
