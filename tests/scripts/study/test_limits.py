"""What limits the study: sentences that follow from records, on records made up for them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from scripts.study import limits, page
from scripts.study.effects import scores_of
from scripts.study.protocols import SMALL, Protocol1, load_protocol1
from scripts.study.published import read

NOISE = 0.01 * np.array([1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 1.5, -1.5, 0.2, -0.2])  # of the difference, by seed


def record(table: str, method: str, shift: float, condition: str = "all", late: int = 0, **more: Any) -> dict[str, Any]:
    """Return a record whose errors are 1 + shift, and of which `late` seeds are best at epoch 95."""
    seeds = [
        {
            "seed": k,
            "test": 1.0 + (shift + NOISE[k] if method != "erm" else shift),
            "best_epoch": 95 if k < late else 20,
        }
        for k in range(10)
    ]
    return {"table": table, "condition": condition, "method": method, "seeds": seeds, "train_rows": 100, **more}


@pytest.fixture(scope="module")
def rules() -> Protocol1:
    return load_protocol1()


def test_the_correction_for_overlap_leaves_clear_losses_and_is_said_by_method(rules: Protocol1) -> None:
    # standard error 0.0042, corrected 0.0087: of three tables a loss of 0.02 is one without the correction alone
    shifts = {"one": 0.02, "two": 0.05, "three": 0.0}
    records = [record(t, m, s if m == "mixup" else 0.0) for t, s in shifts.items() for m in ("erm", "mixup")]
    scores = scores_of(records, "all")
    line = limits.overlap(scores, rules)
    assert (
        "1 of the 2 losses of methods that mix stay on all rows (mixup 1), and there are 0 wins (0 without it)" in line
    )
    assert limits.overlap({}, rules) == ""


def test_a_gain_is_excluded_where_the_one_sided_end_lies_above_it(rules: Protocol1) -> None:
    records = [record("one", m, 0.0) for m in ("erm", "mixup", "resample")]
    scores = scores_of(records, "all")
    end = 1.833 * np.std(NOISE, ddof=1) / np.sqrt(10)  # Student's t of 9 degrees of freedom, 95 % one-sided
    assert limits.excluded(scores, ["mixup"], 100 * end * 1.001) == (1, 1)
    assert limits.excluded(scores, ["mixup"], 100 * end * 0.999) == (0, 1)
    assert limits.excluded(scores, ["mixup"], 100 * end * 2.0, limits.OVERLAP) == (0, 1)
    assert limits.excluded(scores, ["mixup"], 100 * end * 2.1, limits.OVERLAP) == (1, 1)
    assert (
        "Of 1 pairs of a method and a table on all rows, a gain of 5 % of ERM's error is excluded in 1, of 1 % in 0 "
        in (
            limits.power(scores, rules)  # resampling mixes nothing and is not counted
        )
    )


def test_tables_of_short_training_hold_their_share_of_the_effect(rules: Protocol1) -> None:
    shifts = {"slow": (0.06, 4), "almost": (0.01, 3), "quick": (0.02, 0), "quicker": (0.01, 0)}
    records = [
        record(t, m, s if m != "erm" else 0.0, late=n) for t, (s, n) in shifts.items() for m in ("erm", "cmixup")
    ]
    line = limits.epochs(records, "cmixup", by_name=True)
    assert line.startswith("**100 epochs are too few on 1 of 4 tables** (slow), where 40 % or more of C-Mixup's runs")
    assert "They hold 60 % of its mean effect on all rows: +0.025 " in line
    assert "without them +0.013 " in line
    assert limits.epochs([r for r in records if r["table"] != "slow"], "cmixup") == ""


def test_cases_whose_methods_ran_on_other_processors_than_erm_are_counted() -> None:
    def case(table: str, *devices: str) -> list[dict[str, Any]]:
        return [record(table, m, 0.0, device=d) for m, d in zip(("erm", "mixup", "cmixup"), devices, strict=True)]

    records = [*case("one", "a", "a", "a"), *case("two", "a", "a", "b"), *case("three", "b", "a", "a")]
    assert limits.processors(records).startswith("**2 of 3 cases (a table under a condition) mix processors**")
    assert limits.processors(case("one", "a", "a", "a")) == ""


def test_a_result_on_the_other_side_is_said_with_what_small_validation_leaves_of_it(rules: Protocol1) -> None:
    other, tables = load_protocol1(SMALL), [f"t{k}" for k in range(12)]
    records = [
        record(t, m, shift, "rows100_noise")
        for t in tables
        for m, shift in (("erm", 0.0), ("mixup", -0.02), ("cmixup", 0.01))
    ]
    small = [record(t, m, 0.02 * (m == "mixup"), "rows100_noise_val25") for t in tables for m in ("erm", "mixup")]
    line = limits.other_side(records, rules, small, other)
    assert line.startswith(
        "**1 of 2 results is on the other side**: mixup with 100 training rows, noise of 0.5 std on "
    )
    assert "below 0 on 12 of 12 tables (sign test, p 0.00049; -0.020 " in line
    assert "; validated on 25 rows, noisy, on 0 of 12 (p 0.00049; +0.020 " in line
    assert "validated on" not in limits.other_side(records, rules, [], other)
    worse = [record(t, m, 0.02 * (m == "mixup"), "rows100_noise") for t in tables for m in ("erm", "mixup")]
    assert limits.other_side(worse, rules, small, other) == ""


def test_small_validation_stands_beside_the_condition_that_is_like_it(rules: Protocol1) -> None:
    other, tables = load_protocol1(SMALL), ["one", "two", "three"]
    records = [record(t, m, 0.01 * (m == "mixup"), "rows100") for t in tables for m in ("erm", "mixup")]
    small = [
        record(t, m, 0.1 * k + (m == "cmixup"), "rows100_val25", commit="c" * 40)
        for k, t in enumerate(tables) for m in ("erm", "mixup", "cmixup")
    ]  # fmt: skip
    parts = page.parts([{**r, "seconds": 1.0} for r in records], rules, small, other)
    assert (parts["small_cells"], parts["small_commits"]) == ("9 of 180", "ccccccc")
    assert parts["small_errors"].startswith("+10.0 [")  # 0, 10 and 20 %
    rows = [line.split(" | ")[:3] for line in parts["others"].splitlines()[2:]]
    assert rows == [
        ["| 100 training rows", "mixup", "3"], ["| 100 training rows, 25 for validation", "mixup", "3"],
        ["| 100 training rows, 25 for validation", "C-Mixup, input", "3"],
    ]  # fmt: skip
    assert page.parts([{**r, "seconds": 1.0} for r in records], rules, [], other)["small_errors"] == ""


def test_validation_is_that_of_the_tables_under_the_condition_of_the_fewest_rows(rules: Protocol1) -> None:
    tables = tuple(replace(t, rows=n) for t, n in zip(rules.tables, (500, 1000, 20000), strict=False))
    assert "(a median of 200 rows beside 100)" in limits.validation(replace(rules, tables=tables))
    assert limits.validation(replace(rules, conditions=rules.conditions[:1])) == ""


def test_published_conditions_with_small_validation_have_the_rows_that_they_say() -> None:
    small = read(load_protocol1(SMALL))
    assert {(r["val_rows"], r["train_rows"]) for r in small} == {(25, 100)}


def test_the_page_points_to_no_small_validation_without_records(rules: Protocol1) -> None:
    records = [record(t, m, 0.02 * (m == "mixup")) for t in ("one", "two", "three") for m in ("erm", "mixup")]
    parts = page.parts([{**r, "seconds": 1.0} for r in records], rules, [], load_protocol1(SMALL))
    assert parts["limits"].startswith("- **The 10 splits of a table overlap**")
    assert "Validation is large" not in parts["limits"]
    assert parts["ranked"] == ""  # no table has every method
