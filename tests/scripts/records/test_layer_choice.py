"""Which of a method's two forms enters a table."""

from typing import Any

from scripts.records.records import choose_variants


def report(layer: str, seed: int, val: float, metric: str = "rmse", **changes: Any) -> dict[str, Any]:
    return {
        "experiment": "table1", "dataset": "airfoil", "model": "fcn3", "method": "k_mixup", "preset": "paper",
        "layer": layer, "options": {"method.layer": layer} if layer == "input" else {}, "seed": seed,
        "selection": metric, "scores": {"val": {metric: val}, "test": {metric: -val}},
        "run": f"{layer}/seed={seed}",
    } | changes  # fmt: skip


def chosen(reports: list[dict[str, Any]]) -> dict[str, str]:
    return {r["run"]: r["experiment"] for r in choose_variants(reports)}


def test_the_better_mean_on_validation_enters_the_table_over_seeds_that_both_layers_have() -> None:
    reports = [report("hidden", 0, 1.0), report("hidden", 1, 4.0), report("input", 0, 2.0), report("input", 1, 2.0)]
    assert chosen(reports) == {
        "hidden/seed=0": "table1_variants", "hidden/seed=1": "table1_variants",
        "input/seed=0": "table1", "input/seed=1": "table1",
    }  # fmt: skip
    inputs = [report("input", seed, error) for seed, error in enumerate((2.0, 5.0, 5.0))]
    better = chosen([*inputs, report("hidden", 0, 3.0)])  # one easy seed says nothing against three
    assert better == {**{f"input/seed={k}": "table1" for k in range(3)}, "hidden/seed=0": "table1_variants"}
    higher = [report("hidden", 0, 0.9, "r"), report("input", 0, 0.8, "r")]
    assert chosen(higher) == {"hidden/seed=0": "table1", "input/seed=0": "table1_variants"}


def test_other_options_presets_and_datasets_do_not_compete_and_the_layer_is_no_longer_an_option() -> None:
    reports = [
        report("hidden", 0, 1.0),
        report("input", 0, 2.0, preset="released", run="a"),
        report("input", 0, 2.0, dataset="no2", run="b"),
        report("input", 0, 2.0, options={"method.k": 8, "method.layer": "input"}, run="c"),
    ]
    assert set(chosen(reports).values()) == {"table1"}
    assert [kept["options"] for kept in choose_variants(reports)] == [{}, {}, {"method.k": 8}, {}]
