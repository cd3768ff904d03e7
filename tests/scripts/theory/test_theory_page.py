"""The verdicts and the page of the simulations, on numbers made by hand and on a small run."""

import math
import statistics
from pathlib import Path

import pytest

from scripts.measure.__main__ import main
from scripts.records.experiment import RESULTS
from scripts.records.records import read_csv
from scripts.records.stats import Interval
from scripts.theory import numbers as theory
from scripts.theory.numbers import (
    BASE,
    COLUMNS,
    QUANTITIES,
    THIRD,
    Numbers,
    all_settings,
    base_setting,
    standing_word,
    swept_settings,
)
from scripts.theory.page import PAGE, axis_points, ordering_rows, render_theory, theorem_figure, theory_figures
from scripts.theory.simulations import Theorem1, Theorem2
from tests.robustness.pictures import faults


def row(value: float, seed: int = 0, **changes: object) -> dict[str, str]:
    base = {
        "theorem": 1, "setting": "base", "N": BASE[1].n, "p": BASE[1].p, "bandwidth": "", "method": "mixup",
        "theta": "true", "seed": seed, "metric": "mse", "value": value,
    }  # fmt: skip
    found = {name: str(v) for name, v in (base | changes).items()}
    if found["method"] == "cmixup" and not found["bandwidth"]:
        found["bandwidth"] = "0.1"
    return found


def rows_of(values: dict[str, list[float]], **changes: object) -> list[dict[str, str]]:
    return [row(v, s, method=m, **changes) for m, several in values.items() for s, v in enumerate(several)]


LOWEST = {
    "cmixup": [1.0, 1.2, 1.1], "mixup": [2.0, 2.3, 2.1], "feature_1": [1.5, 1.8, 1.6], "feature_0.1": [1.2, 1.4, 1.35],
    "erm": [0.5, 0.6, 0.7],
}  # fmt: skip


def test_verdicts_need_all_intervals_below_or_one_above() -> None:
    below, above, across = Interval(-1, -2, -0.1, 5), Interval(1, 0.1, 2, 5), Interval(0, -1, 1, 5)
    assert standing_word({"mixup": below, "feature_1": below}) == "holds"
    assert standing_word({"mixup": below, "feature_1": across}) == "open"
    assert standing_word({"mixup": below, "feature_1": across, "feature_0.1": above}) == "does not hold"
    assert standing_word({"mixup": Interval(0, 0, 0, 5)}) == "open"
    assert standing_word({}) == "open"


def test_differences_are_paired_over_seeds_and_against_the_same_place() -> None:
    other = {"N": 500, "setting": "N"}
    worse = {**LOWEST, "cmixup": [5.0, 5.1, 5.2], "mixup": [4.0, 4.2, 4.1]}
    numbers = Numbers([*rows_of(LOWEST), *rows_of(worse, **other)])
    found = numbers.differences(base_setting(1), "mse", "true")
    assert {m: round(d.mean, 6) for m, d in found.items()} == {
        "mixup": -1.033333, "feature_1": -0.533333, "feature_0.1": -0.216667,
    }  # fmt: skip
    assert standing_word(found) == "holds"  # unpaired, the last would not be
    there = numbers.differences(swept_settings(1, "N")[0], "mse", "true")
    assert there["mixup"].mean == pytest.approx(1.0)
    assert standing_word(there) == "does not hold"
    assert numbers.differences(base_setting(1), "mse", "estimated") == {}


def test_another_bandwidth_is_compared_with_the_methods_of_the_base() -> None:
    other = [row(v, s, method="cmixup", setting="bandwidth", bandwidth="1") for s, v in enumerate([9.0, 9.2, 9.1])]
    numbers = Numbers([*rows_of(LOWEST), *other])
    found = numbers.differences(swept_settings(1, "bandwidth")[3], "mse", "true")
    assert found["mixup"].mean == pytest.approx(9.1 - 6.4 / 3)
    assert standing_word(found) == "does not hold"


def test_bandwidths_stand_side_by_side_from_zero_to_infinity() -> None:
    numbers = theory.read_numbers(RESULTS)
    assert numbers is not None
    drawn = theorem_figure(numbers, 3)
    axis = drawn.axes[2]
    (line,) = axis.containers
    assert list(line.lines[0].get_xdata()) == list(range(9))
    labels = [label.get_text() for label in axis.get_xticklabels()]
    assert labels == ["0", "1e-06", "0.001", "0.1", "0.333", "1", "10", "100", "inf"]
    means = axis_points(numbers, 3, "bandwidth", "cmixup", QUANTITIES[3][0])
    assert line.lines[0].get_ydata()[-1] == pytest.approx(statistics.fmean(means[math.inf].values()))
    assert faults(drawn) == []


def test_the_grid_changes_one_thing_at_a_time() -> None:
    for setting in all_settings():
        given = BASE[setting.theorem]
        changed = {name for name, value in vars(setting.simulation).items() if value != vars(given)[name]}
        expected = {"base": set(), "N": {"n"}, "p": {"p"}, "bandwidth": {"bandwidth"}}
        name = setting.name.partition(" ")[0]
        assert changed == expected.get(name, {"noise"} if name == "noise" else {"noise", "penalty"})


def test_the_command_writes_numbers_page_and_figures_of_one_piece(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    small = {1: Theorem1(n=60, p=6, test=20)}
    monkeypatch.setattr(theory, "BASE", BASE | small)
    monkeypatch.setattr("scripts.measure.theory.all_settings", lambda: iter([theory.Setting("base", 1, small[1])]))
    monkeypatch.setattr("scripts.measure.theory.theory_figures", lambda _: {})
    main(["theory", "seeds=3", f"results={tmp_path}"])
    rows = read_csv(tmp_path / "theory.csv")
    assert tuple(rows[0]) == COLUMNS
    assert {r["seed"] for r in rows} == {"0", "1", "2"}
    assert (tmp_path / "theory.md").read_text() == render_theory(tmp_path)["theory.md"]
    assert "# Simulations of Theorems 1 to 3" in capsys.readouterr().out


def test_nothing_is_rendered_without_numbers(tmp_path: Path) -> None:
    assert render_theory(tmp_path) == {}
    assert theory_figures(tmp_path) == {}


def test_the_committed_figure_shows_what_the_numbers_are() -> None:
    numbers = theory.read_numbers(RESULTS)
    assert numbers is not None
    drawn = theorem_figure(numbers, 1)
    means = axis_points(numbers, 1, "N", "cmixup", QUANTITIES[1][0])
    assert len(means) == 4
    line = next(c for c in drawn.axes[0].containers if c.get_label() == "C-Mixup")
    expected = [sum(values.values()) / len(values) for values in means.values()]
    assert list(line.lines[0].get_ydata()) == pytest.approx(expected)


@pytest.mark.slow
def test_the_committed_numbers_are_those_of_the_simulations() -> None:
    """One seed of one place of each theorem is computed again."""
    rows = read_csv(RESULTS / "theory.csv")
    assert len({tuple(r[c] for c in COLUMNS if c != "value") for r in rows}) == len(rows)
    chosen = {(1, "N", 500), (2, "N", 1000), (3, "N", 200)}
    for setting in all_settings():
        if (setting.theorem, setting.name, setting.simulation.n) in chosen:
            for again in setting.rows(3):
                same = [r for r in rows if all(r[c] == str(again[c]) for c in COLUMNS if c != "value")]
                assert len(same) == 1
                assert float(same[0]["value"]) == pytest.approx(float(again["value"]), rel=1e-3, abs=1e-6), again


def test_the_page_is_rendered_and_misses_no_number() -> None:
    numbers = theory.read_numbers(RESULTS)
    assert numbers is not None
    text = render_theory()[PAGE]
    assert text == (RESULTS / PAGE).read_text()
    for theorem in BASE:
        assert all(numbers.differences(at, *q[:2]) for q, at in ordering_rows(theorem))
    for word in ("nan", ">—<"):
        assert word not in text


def test_the_prose_names_the_simulations_values() -> None:
    text = " ".join(
        (RESULTS / PAGE).read_text().replace("$", "").replace("\\lambda", "lambda").replace("_", "").split()
    )
    first, second = BASE[1], BASE[2]
    assert isinstance(first, Theorem1)
    assert isinstance(second, Theorem2)
    for words in (
        f"N = {first.n}, p = {first.p}, label bandwidth {first.bandwidth:g};",
        f"Nadaraya-Watson of width {first.width:g}. Partners",
        f"{second.n // (2 * second.support)} tasks of {second.support} support and {second.support} query rows",
        f"p = {second.p}, label bandwidth {second.bandwidth:g}; {second.new_tasks} new tasks a seed of",
        f"n = {THIRD.n} rows a domain, p1 = {THIRD.invariant}, p2 = {THIRD.p - THIRD.invariant},",
        f"standard deviation {THIRD.noise:g}, lambda = 1/2, ridge penalty {THIRD.penalty:g}, bandwidth",
    ):
        assert words in text, words
