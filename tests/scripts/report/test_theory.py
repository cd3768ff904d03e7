"""The numbers and figures of the simulated theorems, on numbers made by hand and on the published ones."""

import statistics
from typing import Any

import pandas as pd
import pytest

from scripts.report.paper.theory import QUANTITIES, Numbers, read_numbers, theorem_figure

TRUE_MSE = QUANTITIES[1][1]


def rows_of(values: dict[str, list[float]], **changes: object) -> pd.DataFrame:
    base = {"theorem": 1, "setting": "base", "N": 4000, "p": 50, "theta": "true", "metric": "mse"}
    rows = [
        base | {"bandwidth": "0.1" if m == "cmixup" else "", "method": m, "seed": seed, "value": value} | changes
        for m, by_seed in values.items() for seed, value in enumerate(by_seed)
    ]  # fmt: skip
    return pd.DataFrame(rows)


LOWEST = {
    "cmixup": [1.0, 1.2, 1.1], "mixup": [2.0, 2.3, 2.1], "feature_1": [1.5, 1.8, 1.6], "feature_0.1": [1.2, 1.4, 1.35],
}  # fmt: skip


def test_differences_are_paired_over_seeds_against_the_same_place_and_over_bandwidths_the_base() -> None:
    worse = {**LOWEST, "cmixup": [5.0, 5.1, 5.2], "mixup": [4.0, 4.2, 4.1]}
    wider = rows_of({"cmixup": [9.0, 9.2, 9.1]}, setting="bandwidth", bandwidth="1")
    numbers = Numbers(pd.concat([rows_of(LOWEST), rows_of(worse, N=500, setting="N"), wider]))
    base, smaller, widest = numbers.base(1), numbers.along(1, "N")[0], numbers.along(1, "bandwidth")[1]
    differences = numbers.differences(base, TRUE_MSE)
    assert [d.mean for d in differences] == pytest.approx([-1.033333, -0.533333, -0.216667], abs=1e-6)
    assert all(d.high < 0 for d in differences)  # unpaired, the last would not be
    assert numbers.differences(smaller, TRUE_MSE)[0].mean == pytest.approx(1.0)
    assert numbers.differences(widest, TRUE_MSE)[0].mean == pytest.approx(9.1 - 6.4 / 3)
    assert numbers.differences(base, QUANTITIES[1][0]) == []


def test_a_figure_shows_the_published_means() -> None:
    published = read_numbers()
    over_n, _, over_bandwidth = theorem_figure(published, 3).axes[:3]  # the last side by side from 0 to infinity
    labels = [label.get_text() for label in over_bandwidth.get_xticklabels()]
    assert labels == ["0", "1e-06", "0.001", "0.1", "0.333", "1", "10", "100", "inf"]
    for axis, name in ((over_n, "N"), (over_bandwidth, "bandwidth")):
        line: Any = next(one for one in axis.containers if one.get_label() == "C-Mixup")
        values = [published.values(at, "cmixup", *QUANTITIES[3][0][:2]) for at in published.along(3, name)]
        assert list(line.lines[0].get_ydata()) == pytest.approx([statistics.fmean(v.values()) for v in values])
