"""Variants of a preset: which runs they are, and the table of what each change does."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest

from cmixup.errors import InputError
from scripts.config.compose import compose_train
from scripts.driver.job import plan_job
from scripts.plan.selection import Variant, variant_identity, variant_rows
from scripts.records.experiment import Experiment, load_experiment
from scripts.report.tables import variant_tables

SMALL = replace(
    load_experiment("ablation_ood"),
    datasets=["skillcraft"],
    variants=[
        {"label": "preset paper", "overrides": []},
        {"label": "scaled on all rows", "overrides": ["dataset.scaling=all"]},
        {"sweep": "method.bandwidth", "values": [0.5, 30], "methods": ["cmixup"]},
    ],
)


def records(experiment: Experiment, variant: Variant, scores: Mapping[str, list[float]]) -> list[dict[str, Any]]:
    base = variant_identity(experiment.name, variant) | {"split": "test"}
    return [
        {**base, "metric": metric, "seed": seed, "value": value}
        for metric, values in scores.items()
        for seed, value in enumerate(values)
    ]


def test_a_sweep_is_a_row_a_value_in_the_order_of_datasets_and_methods() -> None:
    rows = [(v.method, v.label, v.overrides) for v in variant_rows(SMALL)]
    assert rows == [
        ("erm", "preset paper", ()),
        ("erm", "scaled on all rows", ("dataset.scaling=all",)),
        ("cmixup", "preset paper", ()),
        ("cmixup", "scaled on all rows", ("dataset.scaling=all",)),
        ("cmixup", "bandwidth 0.5", ("method.bandwidth=0.5",)),
        ("cmixup", "bandwidth 30", ("method.bandwidth=30",)),
    ]


@pytest.mark.parametrize("entry", [{"label": "x"}, {"label": "x", "overrides": [], "sweep": "a"}, {"lable": "x"}])
def test_an_entry_that_says_nothing_or_too_much_is_refused(entry: dict) -> None:
    with pytest.raises(InputError, match="variants of ablation_ood must have overrides or a sweep"):
        variant_rows(replace(SMALL, variants=[entry]))


@pytest.mark.parametrize(
    "variant", [v for v in variant_rows(load_experiment("ablation_ood")) if v.dataset == "crime"], ids=str
)
def test_a_variant_is_known_by_what_its_runs_record(variant: Variant) -> None:
    cell = [f"dataset={variant.dataset}", f"method={variant.method}", "preset=paper", "experiment=ablation_ood"]
    job = plan_job(compose_train([*cell, "logger=none", *variant.overrides, "device=cpu"]))
    assert variant_identity("ablation_ood", variant) == {
        "experiment": job.config["experiment"], "dataset": job.dataset.name, "method": job.config["method"]["name"],
        "preset": job.config["preset"], "options": job.options,
    }  # fmt: skip


def test_changes_are_paired_differences_to_the_methods_first_row() -> None:
    paper, scaled, mixed, _, narrow, _ = variant_rows(SMALL)
    given = [
        *records(SMALL, paper, {"rmse": [5.0, 6.0, 7.0], "worst_rmse": [8.0, 9.0, 10.0]}),
        *records(SMALL, scaled, {"rmse": [5.5, 6.5, 7.5], "worst_rmse": [8.0, 8.0, 8.0]}),
        *records(SMALL, mixed, {"rmse": [4.0, 4.0, 4.0], "worst_rmse": [7.0, 7.0, 7.0]}),
        *records(SMALL, narrow, {"rmse": [4.0, 5.0, 6.0], "worst_rmse": [7.0, 7.0, 7.0]}),
    ]
    fraction = {**variant_identity(SMALL.name, narrow), "split": "train", "metric": "effective_fraction", "value": 0.04}
    text = variant_tables(SMALL, pd.DataFrame([*given, fraction], dtype=object))
    assert "| ERM | the paper | 3 | 5.887 ± 0.362 | 10.182 ± 1.745 | — | — | — |" in text
    assert "| ERM | preset paper | 3 | 6.000 ± 1.000 | 9.000 ± 1.000 | — | — | — |" in text
    assert "| ERM | scaled on all rows | 3 | 6.500 ± 1.000 | 8.000 ± 0.000 | +0.500 [+0.500, +0.500] | — | — |" in text
    row = "| C-Mixup | bandwidth 0.5 | 3 | 5.000 ± 1.000 | 7.000 ± 0.000 | +1.000 [-1.484, +3.484] |"
    assert f"{row} -1.000 [-1.000, -1.000] | 0.04 |" in text
    assert "bandwidth 30" not in text  # never run
