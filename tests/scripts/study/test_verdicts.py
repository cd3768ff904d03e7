"""The four verdicts of protocol 2 against SciPy, and what they count."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from scripts.study import verdicts
from scripts.study.verdicts import (
    Change,
    changes,
    chosen_erm,
    counts,
    errors_of,
    ranking,
    standard_error,
    verdict,
    win_rates,
)

SPLITS = range(5)


def made(shift: float, spread: float = 0.0, seed: int = 0, base: float = 0.5) -> dict[str, dict[int, float]]:
    rng = np.random.default_rng(seed)
    erm = {s: base + 0.1 * s for s in SPLITS}
    return {"erm": erm, "mixup": {s: erm[s] + shift + spread * float(rng.normal()) for s in SPLITS}}


def test_intervals_and_p_values_are_scipys_with_the_corrected_variance() -> None:
    table = made(0.02, 0.01)
    (change,) = changes({"t": table}, "mixup").values()
    whole = np.mean(list(table["erm"].values()))
    percent = np.array([100 * (table["mixup"][s] - table["erm"][s]) / whole for s in SPLITS])
    error = percent.std(ddof=1) * math.sqrt(1 / 5 + (0.2 / 0.6))  # Nadeau and Bengio, 20 % test and 60 % training rows
    assert standard_error(change.interval) == pytest.approx(error)
    low, high = stats.t.interval(0.95, 4, percent.mean(), error)
    assert (change.interval.low, change.interval.high) == pytest.approx((low, high))
    assert change.p == pytest.approx(2 * stats.t.sf(abs(percent.mean() / error), 4))
    assert change.detectable == pytest.approx(error * (stats.t.ppf(0.975, 4) + stats.t.ppf(0.8, 4)))


def test_equivalence_is_two_one_sided_tests() -> None:
    table = made(0.001, 0.002)
    (change,) = changes({"t": table}, "mixup", overlap=0.0).values()
    whole = np.mean(list(table["erm"].values()))
    percent = [100 * (table["mixup"][s] - table["erm"][s]) / whole for s in SPLITS]
    one_sided = [
        stats.ttest_1samp(percent, 1.0, alternative="less").pvalue,
        stats.ttest_1samp(percent, -1.0, alternative="greater").pvalue,
    ]
    assert change.equivalence(1.0) == pytest.approx(max(one_sided))


@pytest.mark.parametrize(
    ("shift", "spread", "verdict"),
    [
        (-0.05, 0.001, "gains"), (0.05, 0.001, "loses"), (0.0005, 0.0005, "no difference"),
        (0.01, 0.02, "cannot be told"), (0.0, 0.0, "no difference"), (-0.05, 0.0, "gains"),
    ],
)  # fmt: skip
def test_each_verdict(shift: float, spread: float, verdict: str) -> None:
    (change,) = changes({"t": made(shift, spread)}, "mixup").values()
    assert change.verdict(0.05, 1.0) == verdict
    assert counts({"t": change}, 0.05, 1.0) == {v: int(v == verdict) for v in verdicts.VERDICTS}


def test_holms_correction_is_over_tables_so_a_gain_among_many_cannot_be_told() -> None:
    clear, rest = made(-0.02, 0.014), {f"t{k}": made(0.0, 0.03, seed=k) for k in range(1, 30)}
    alone = changes({"t": clear}, "mixup")["t"]
    among = changes({"t": clear, **rest}, "mixup")["t"]
    assert alone.interval == among.interval
    assert among.corrected == pytest.approx(30 * alone.p)
    assert (alone.verdict(0.05, 1.0), among.verdict(0.05, 1.0)) == ("gains", "cannot be told")


def record(method: str, rows: list[tuple[int, float, str]], **about: object) -> dict[str, object]:
    seeds = [
        {"seed": 10 * split + k, "split": split, "test": value, "options": [f"method={word}"]}
        for k, (split, value, word) in enumerate(rows, start=1)
    ]
    return {"table": "t", "condition": "random", "method": method, "seeds": seeds, **about}


def test_a_split_counts_once_by_its_first_two_weights_and_failed_ones_not_at_all() -> None:
    rows = [(0, 1.0, "erm"), (0, 3.0, "erm"), (0, 99.0, "erm"), (1, math.inf, "erm"), (1, 1.0, "erm")]
    as_found = record("erm", rows)
    turned = {**as_found, "seeds": as_found["seeds"][::-1]}
    for lines in (as_found, turned):  # whichever finished first
        assert errors_of([lines], "random") == {"t": {"erm": {0: 2.0}}}
    assert errors_of([record("erm", rows)], "rows100") == {}
    assert errors_of([record("erm", rows)], "random", "test_worst") == {}


def test_how_often_tuning_chose_erm_counts_splits() -> None:
    rows = [(0, 1.0, "erm"), (0, 1.0, "erm"), (1, 1.0, "mixup"), (1, 1.0, "mixup"), (2, 1.0, "erm")]
    assert chosen_erm([record("mixup", rows), record("erm", rows)], "random", "mixup") == (2, 3)


def test_win_rates_count_ties_half() -> None:
    errors = {
        "a": {"x": {0: 1.0}, "y": {0: 2.0}}, "b": {"x": {0: 1.0}, "y": {0: 1.0}}, "c": {"x": {0: 3.0}},
    }  # fmt: skip
    assert win_rates(errors, ["x", "y"]) == {("x", "y"): 0.75, ("y", "x"): 0.25}


def test_a_change_without_spread_is_equal_or_not() -> None:
    (same,) = changes({"t": made(0.0)}, "mixup").values()
    assert isinstance(same, Change)
    assert same.equivalence(1.0) == 0.0
    (far,) = changes({"t": made(0.05)}, "mixup").values()
    assert far.equivalence(1.0) == 1.0


def test_what_is_said_of_a_method_is_its_place_its_tables_and_what_could_be_seen() -> None:
    shifts = {"erm": 0.0, "mixup": -0.05, "resample": 0.01}
    records = [
        {"table": table, "condition": "random", "method": method, "seeds": [
            {"seed": 10 * s + w, "split": s, "test": 0.5 + shift + 0.01 * s + 0.001 * ((s * len(method + table)) % 3),
             "options": ["method=erm", *(["+method.path=x"] if method == "mixup" and s else [])]}
            for s in SPLITS for w in (1, 2)]}
        for table in ("one", "three") for method, shift in shifts.items() if (table, method) != ("one", "resample")
    ]  # fmt: skip
    errors = errors_of(records, "random")
    assert [name for name, _ in ranking(errors, "mixup")] == ["mixup", "erm"]  # resampling lacks a table
    assert [name for name, _ in ranking(errors, "resample")] == ["mixup", "erm", "resample"]
    said = verdict(records, "random", "mixup", 0.05, 1.0)
    each = changes(errors, "mixup")
    seen = np.median([change.detectable for change in each.values()])
    assert "setting random, 2 tables: 1 of 2 by mean error" in said
    assert "gains on 2, loses on 0, makes no difference of 1 % on 0, and cannot be told on 0;" in said
    assert f"before Holm's correction: {seen:.1f} % in the median" in said
    assert said.endswith("Tuning chose ERM itself on 2 of 10 splits.")
    assert f"{each['one'].interval.mean:+.1f} [" in next(line for line in said.splitlines() if "  one " in line)
