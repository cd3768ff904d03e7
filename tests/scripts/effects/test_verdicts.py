"""What protocol 2 says of a method: direction, size, and what it counts."""

import math
from collections.abc import Mapping

import numpy as np
import pytest
from scipy import stats

from cmixup.errors import InputError
from scripts.effects.effects import Posterior, fit_effects
from scripts.effects.quadrature import Chances, Estimate
from scripts.effects.verdicts import (
    EQUAL,
    GAINS,
    HIGHER,
    LOSES,
    LOWER,
    OVERLAP,
    UNTOLD,
    VERDICTS,
    Effect,
    chance_text,
    chosen_erm,
    direction_text,
    errors_of,
    mean_text,
    method_effect,
    method_verdict,
    percent_differences,
    rank_methods,
    win_rates,
)

SPLITS = range(5)
SIDES = {"one": -1.0, "two": -1.2, "three": -0.8, "four": -1.1}  # means that are surely below 0
MIXED = {"one": -3.0, "two": 2.0, "three": -2.0, "four": 1.0}  # and such that are not


def made(shift: float, spread: float = 0.0, seed: int = 0, base: float = 0.5) -> dict[str, dict[int, float]]:
    rng = np.random.default_rng(seed)
    erm = {s: base + 0.1 * s for s in SPLITS}
    return {"erm": erm, "mixup": {s: erm[s] + shift + spread * float(rng.normal()) for s in SPLITS}}


def estimate(below: float = 0.5, gain: float = 0.0, within: float = 1.0) -> Estimate:
    return Estimate(0.0, -1.0, 1.0, below, Chances(gain, within, 1 - gain - within))


def told(below: float, means: Mapping[str, float], tables: Mapping[str, Estimate] | None = None) -> Effect:
    """Return what is said if the model finds the mean effect below 0 with a probability."""
    own = tables or dict.fromkeys(means, estimate())
    return Effect(Posterior(estimate(below), (0.0, 0.0, 0.0), 0.5, own, estimate()), means, 0.95)


def negative(means: Mapping[str, float]) -> dict[str, float]:
    return {table: -mean for table, mean in means.items()}


@pytest.mark.parametrize(
    ("below", "means", "way", "said"),
    [
        (0.95, SIDES, LOWER, "the mean error is lower"),
        (0.05, negative(SIDES), HIGHER, "the mean error is higher"),
        (0.94, SIDES, UNTOLD, "the direction cannot be told"),
        (0.06, negative(SIDES), UNTOLD, "the direction cannot be told"),
        (0.99, MIXED, UNTOLD, "the two means disagree, so the direction cannot be told"),
        (0.01, negative(MIXED), UNTOLD, "the two means disagree, so the direction cannot be told"),
        (0.99, negative(SIDES), UNTOLD, "the two means disagree, so the direction cannot be told"),
        (0.01, SIDES, UNTOLD, "the two means disagree, so the direction cannot be told"),
        (0.99, {"one": -1.0}, LOWER, "the mean error is lower"),  # of one table there is no other mean
        (0.99, {"one": -1.0, "two": -1.0}, LOWER, "the mean error is lower"),
        (0.5, {"one": 0.0, "two": 0.0}, UNTOLD, "the direction cannot be told"),
    ],
)
def test_a_direction_is_said_where_model_and_plain_mean_say_so(
    below: float, means: Mapping[str, float], way: str, said: str
) -> None:
    own = told(below, means)
    assert (own.direction(), direction_text(own)) == (way, said)


def test_the_plain_mean_says_so_by_students_t() -> None:
    values = [-2.0, -0.1, -0.5, 0.1]
    p = stats.ttest_1samp(values, 0.0, alternative="less").pvalue
    means = dict(zip("abcd", values, strict=True))
    assert 0.05 < p < 0.2
    assert told(0.99, means).direction() == UNTOLD
    assert Effect(told(0.99, means).posterior, means, 1 - p - 1e-6).direction() == LOWER
    assert Effect(told(0.99, means).posterior, means, 1 - p + 1e-6).direction() == UNTOLD


@pytest.mark.parametrize(
    ("gain", "within", "kind"),
    [
        (0.95, 0.05, GAINS), (0.94, 0.06, UNTOLD), (0.0, 0.05, LOSES), (0.0, 0.06, UNTOLD), (0.05, 0.95, EQUAL),
        (0.06, 0.94, UNTOLD), (0.475, 0.05, UNTOLD),
    ],
)  # fmt: skip
def test_a_size_is_said_where_it_has_the_probability(gain: float, within: float, kind: str) -> None:
    each = Estimate(0.0, -1.0, 1.0, 0.5, Chances(gain, within, round(1 - gain - within, 9)))
    own = told(0.5, {"t": 0.0}, {"t": each})
    assert own.size(each) == own.tables["t"][1] == kind
    assert own.counts() == {verdict: int(verdict == kind) for verdict in VERDICTS}


def test_tables_are_counted_on_either_side_of_zero() -> None:
    tables = {"a": estimate(0.95), "b": estimate(0.94), "c": estimate(0.04), "d": estimate(0.99), "e": estimate(0.06)}
    assert told(0.5, dict.fromkeys(tables, 0.0), tables).sided() == (2, 1)


@pytest.mark.parametrize(
    ("shift", "spread", "kind", "way"),
    [
        (-0.05, 0.002, GAINS, LOWER), (0.05, 0.002, LOSES, HIGHER), (0.0, 0.0005, EQUAL, UNTOLD),
        (0.005, 0.05, UNTOLD, UNTOLD), (0.0, 0.0, EQUAL, UNTOLD), (-0.05, 0.0, GAINS, LOWER),
    ],
)  # fmt: skip
def test_tables_that_agree_have_each_verdict(shift: float, spread: float, kind: str, way: str) -> None:
    own = method_effect({f"t{k}": made(shift, spread, seed=k) for k in range(5)}, "mixup", 0.05, 1.0)
    assert own is not None
    assert own.counts() == {verdict: 5 * (verdict == kind) for verdict in VERDICTS}
    assert own.direction() == way


def test_differences_are_in_percent_of_the_other_on_splits_of_both() -> None:
    errors = {
        "a": {"erm": {0: 1.0, 1: 3.0, 2: 2.0}, "x": {1: 3.2, 0: 0.9}, "y": {0: 2.0, 1: 2.0}},
        "b": {"erm": {0: 1.0, 1: 1.0}, "x": {0: 2.0}}, "c": {"x": {0: 1.0, 1: 1.0}},
    }  # fmt: skip
    found = percent_differences(errors, "x")
    assert found == {"a": {0: pytest.approx(-5.0), 1: pytest.approx(10.0)}}
    assert list(found["a"]) == [0, 1]
    assert percent_differences(errors, "x", "y") == {"a": {0: pytest.approx(-55.0), 1: pytest.approx(60.0)}}
    assert method_effect(errors, "z", 0.05, 1.0) is None
    own = method_effect(errors, "x", 0.05, 1.0)
    assert own is not None
    assert own.means == {"a": pytest.approx(2.5)}
    assert own.plain is None


def test_an_effect_is_the_models_with_the_overlap_of_splits() -> None:
    errors = {f"t{k}": made(0.01, 0.02 * (k + 1), seed=k) for k in range(4)}
    own, independent = method_effect(errors, "mixup", 0.05, 1.0), method_effect(errors, "mixup", 0.05, 1.0, overlap=0.0)
    values = {table: list(each.values()) for table, each in percent_differences(errors, "mixup").items()}
    assert own is not None
    assert independent is not None
    assert pytest.approx(1 / 3) == OVERLAP  # 20 % of test rows, 60 % of training rows
    assert own.posterior == fit_effects(values, OVERLAP, 1.0)
    widths = [[each.high - each.low for each, _ in one.tables.values()] for one in (own, independent)]
    assert all(wide > narrow for wide, narrow in zip(*widths, strict=True))
    means = list(own.means.values())
    assert own.plain is not None
    assert (own.plain.low, own.plain.high) == pytest.approx(stats.t.interval(0.95, 3, np.mean(means), stats.sem(means)))
    assert f"{own.overall.mean:+.1f} [" in mean_text(own)
    assert f" % by a model of all tables, {np.mean(means):+.1f} [" in mean_text(own)


def test_probabilities_that_round_to_sure_are_not_said_to_be() -> None:
    assert [chance_text(p) for p in (0.0, 0.0099, 0.01, 0.5, 0.99, 0.9901, 1.0)] == [
        "below 0.01", "below 0.01", "0.01", "0.50", "0.99", "above 0.99", "above 0.99",
    ]  # fmt: skip


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
    assert errors_of([as_found], "random", weights=1) == {"t": {"erm": {0: 1.0}}}
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


def test_what_is_said_of_a_method_is_its_place_its_tables_and_its_mean() -> None:
    shifts = {"erm": 0.0, "mixup": -0.05, "resample": 0.01}
    records = [
        {"table": table, "condition": "random", "method": method, "seeds": [
            {"seed": 10 * s + w, "split": s, "test": 0.5 + shift + 0.01 * s + 0.001 * ((s * len(method + table)) % 3),
             "options": ["method=erm", *(["+method.path=x"] if method == "mixup" and s else [])]}
            for s in SPLITS for w in (1, 2)]}
        for table in ("one", "three") for method, shift in shifts.items() if (table, method) != ("one", "resample")
    ]  # fmt: skip
    errors = errors_of(records, "random")
    assert [name for name, _ in rank_methods(errors, "mixup")] == ["mixup", "erm"]  # resampling lacks a table
    assert [name for name, _ in rank_methods(errors, "resample")] == ["mixup", "erm", "resample"]
    said = method_verdict(records, "random", "mixup", 0.05, 1.0)
    own = method_effect(errors, "mixup", 0.05, 1.0)
    assert own is not None
    assert "setting random, 2 tables\nMean over tables: " in said
    assert said.index("A new table gains") < said.index("\nBy mean error 1 of 2: mixup ") < said.index("\nTuning")
    assert f" Mean over tables: {mean_text(own)}; {direction_text(own)}. Size: " in " ".join(said.split())
    assert (
        "Size: gains 1 % or more on 2 tables, loses as much on 0, lies within on 0, cannot be told on 0. "
        f"A new table gains 1 % or more with probability {chance_text(own.posterior.new.chances.gain)} and loses"
        in " ".join(said.split())
    )
    assert max(map(len, said.splitlines())) <= 80
    assert said.endswith("Tuning chose ERM itself on 2 of 10 splits.")
    row = next(line for line in said.splitlines() if line.startswith("  one "))
    assert f"{own.tables['one'][0].mean:+.1f} [" in row
    assert row.endswith("  gains")
    with pytest.raises(InputError, match="share no table of setting rows100"):
        method_verdict(records, "rows100", "mixup", 0.05, 1.0)
