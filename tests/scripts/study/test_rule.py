"""The traits of a table, and the rule that foretells C-Mixup's effect from them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cmixup.errors import InputError
from scripts.claims.prose import places
from scripts.study import advise, rule_page
from scripts.study import rule as rules
from scripts.study.__main__ import main
from scripts.study.published import FOLDER
from scripts.study.rule import Case, cases_of, choose, fit_rule, judge, judged_by_others, left_out, read_rule, to_json
from scripts.study.traits import TRAITS, describe, mixing_bias

N = len(TRAITS)


def test_a_straight_function_has_no_mixing_bias_and_a_square_has_a_known_one() -> None:
    rng = np.random.default_rng(0)
    x, partner = rng.normal(size=(50, 3)), rng.integers(50, size=50)
    weights = rng.normal(size=(3, 2))
    np.testing.assert_allclose(mixing_bias(lambda rows: rows @ weights + 4.0, x, partner), 0.0, atol=1e-14)
    # f = x^2: f((a + b) / 2) - (f(a) + f(b)) / 2 = -(a - b)^2 / 4
    found = mixing_bias(lambda rows: rows[:, :1] ** 2, x, partner)
    np.testing.assert_allclose(found[:, 0], -((x[:, 0] - x[partner, 0]) ** 2) / 4, atol=1e-14)
    np.testing.assert_allclose(
        mixing_bias(lambda rows: rows[:, :1] ** 2, x, partner, lam=0.8)[:, 0],
        -0.16 * (x[:, 0] - x[partner, 0]) ** 2,
        atol=1e-14,
    )


def test_traits_know_noise_and_curvature_and_no_unit() -> None:
    rng = np.random.default_rng(1)
    x = rng.normal(size=(400, 2))
    straight, curved = x @ [1.0, 2.0], np.sin(3 * x[:, 0]) + np.cos(3 * x[:, 1])
    clean = describe(x, straight[:, None])
    noisy = describe(x, straight[:, None] + rng.normal(0, straight.std(), size=(400, 1)))
    bent = describe(x, curved[:, None])
    assert noisy["log10_noise"] == pytest.approx(np.log10(np.sqrt(0.5)), abs=0.06)
    assert noisy["log10_neighbour_noise"] == pytest.approx(np.log10(np.sqrt(0.5)), abs=0.08)
    assert clean["log10_noise"] < noisy["log10_noise"] - 1
    assert bent["log10_curvature"] > clean["log10_curvature"] + 1
    assert (clean["log10_rows"], clean["log10_features"]) == (pytest.approx(np.log10(400)), pytest.approx(np.log10(2)))
    other_unit = describe(x, 1000 * curved[:, None] - 5e4)
    assert other_unit == pytest.approx(bent, abs=1e-6)
    with pytest.raises(InputError, match="20 training rows or more, got 19"):
        describe(x[:19], straight[:19, None])


def cases(effect: float, tables: int = 12, seed: int = 0) -> list[Case]:
    """Two cases a table, whose effect is `effect` times the first trait, with a little noise."""
    rng = np.random.default_rng(seed)
    found = []
    for k in range(tables):
        for condition in ("all", "rows100"):
            traits = tuple(rng.normal(size=N).tolist())
            value = effect * traits[0] + rng.normal(0, 0.1)
            found.append(Case(f"t{k}", condition, traits, value, min(value, 0.0)))
    return found


def test_a_table_is_never_foretold_by_its_own_cases() -> None:
    given = cases(1.0)
    mine = [k for k, case in enumerate(given) if case.table == "t3"]
    changed = [
        Case(c.table, c.condition, c.traits, c.effect + (100.0 if c.table == "t3" else 0.0), c.by_validation)
        for c in given
    ]
    one, chosen = left_out(given, choose)
    other, _ = left_out(changed, choose)
    np.testing.assert_array_equal(one[mine], other[mine])
    assert len(chosen) == 12
    assert not np.array_equal(np.delete(one, mine), np.delete(other, mine))


def test_a_line_is_found_and_followed_and_noise_is_not() -> None:
    given = cases(2.0)
    judged = judge(given)
    followed = judged.policies[rules.FOLLOWED]
    assert followed is not None
    assert followed.high < 0
    assert judged.squared is not None
    assert judged.squared.high < 0
    rule = fit_rule(choose(given), given, judged)
    assert rule.name == f"{next(iter(TRAITS))} alone"
    slope = rule.weights[0] / rule.stds[0]
    assert slope == pytest.approx(2.0 * 24 / (24 + rules.PENALTIES[0]), rel=0.05)  # ridge on a standardised trait
    parts = rule_page.parts(given, rule, judged)
    assert parts["kept"].startswith("Following the rule lowers the error")
    assert set(places((FOLDER / "rule.md").read_text())) == set(parts)
    nothing = [Case(c.table, c.condition, c.traits, abs(c.effect) + 1, 0.0) for c in given]
    parts = rule_page.parts(nothing, fit_rule(choose(nothing), nothing, judge(nothing)), judge(nothing))
    assert parts["kept"] == 'No rule tried here beats "always ERM".'


def test_a_rule_is_read_as_written_and_says_where_it_does_not_reach(tmp_path: Path) -> None:
    rule = replace(
        fit_rule("always ERM", cases(0.0)), spread=1.5, followed=[0.1, -0.2, 0.4], by_others=[-0.3, -0.5, -0.1]
    )
    (tmp_path / "rule.json").write_text(to_json(rule))
    assert read_rule(tmp_path / "rule.json") == rule
    inside = rule.means
    assert (rule(inside), rule.beyond(inside)) == (0.0, [])
    outside = [rule.high[0] + 1, *inside[1:]]
    line = fit_rule("log10_rows alone", cases(1.0))
    assert line([line.high[0] + 5, *line.means[1:]]) == line([line.high[0], *line.means[1:]])
    text = advise.advice(rule, outside)
    assert text.startswith("Expect +0.0 % ± 3.0 % of ERM's test error from C-Mixup: leave it.")
    assert 'no rule beat "always ERM": following it changed the error by +0.10 [-0.20, +0.40] %' in text
    assert "the sign that other seeds of the same table show would by -0.30 [-0.50, -0.10] %." in text
    good = replace(rule, intercept=-1.0, followed=[-0.5, -0.7, -0.3])
    assert advise.advice(good, inside).startswith("Expect -1.0 % ± 3.0 % of ERM's test error from C-Mixup: try it.")
    assert "no rule beat" not in advise.advice(good, inside)
    assert advise.advice(replace(good, followed=[-0.5, -1.2, 0.2]), inside).count("leave it") == 1
    assert text.endswith("This table lies beyond those tables in log10_rows: trust it less.")


def test_cases_are_percent_of_erm_and_the_lower_validation_error_decides() -> None:
    def record(method: str, condition: str, val: float, test: float) -> dict:
        seeds = [{"seed": s, "val": val, "test": test + 0.01 * (s - 0.5)} for s in (0, 1)]
        return {"table": "t", "condition": condition, "method": method, "seeds": seeds,
                "trials": [{"options": [], "val": val}, {"options": [], "val": 9.0}]}  # fmt: skip

    records = [record("erm", "all", 0.5, 0.4), record("cmixup", "all", 0.6, 0.3), record("mixup", "all", 0.1, 0.1)]
    records += [record("erm", "rows100", 0.5, 0.4), record("cmixup", "rows100", 0.4, 0.44)]
    traits = [{"table": "t", "condition": c, "traits": dict.fromkeys(TRAITS, 1.0)} for c in ("all", "rows100")]
    first, second = cases_of(records, traits)
    assert (first.effect, first.by_validation) == (pytest.approx(-25.0), 0.0)
    assert (second.effect, second.by_validation) == (pytest.approx(10.0), pytest.approx(10.0))
    assert (first.by_others, second.by_others) == (pytest.approx(-25.0), 0.0)
    assert cases_of(records, traits[:1]) == [first]


def test_no_seed_judges_a_sign_that_it_chose() -> None:
    left, error = judged_by_others(np.array([-3.0, 1.0, 1.0]))
    assert left == pytest.approx((0 + 1 + 1) / 3)  # the first alone says that it helps, and is judged by the others
    assert error == pytest.approx(np.std([-3, 1, 1], ddof=1) / np.sqrt(3))
    assert judged_by_others(np.array([-3.0, -1.0, -2.0]))[0] == -2.0
    assert judged_by_others(np.array([3.0, 1.0, 2.0]))[0] == 0.0


def test_where_nothing_helps_the_sign_of_other_seeds_is_worth_nothing_and_chance_is_said() -> None:
    rng = np.random.default_rng(0)
    given = []
    for k in range(480):
        differences = rng.normal(0, 2.0, size=10)
        by_others, error = judged_by_others(differences)
        given.append(Case(f"t{k % 6}", f"c{k}", (0.0,) * N, float(differences.mean()), 0.0, by_others, error))
    foretold = judge(given)
    honest = foretold.policies[rules.BY_OTHERS]
    assert honest is not None
    assert honest.low < 0 < honest.high
    assert foretold.by_chance == pytest.approx(-2 / np.sqrt(10) / np.sqrt(2 * np.pi), rel=0.05)
    assert foretold.by_own == pytest.approx(foretold.by_chance, rel=0.15)


def test_advise_reads_a_table_and_prints_what_to_expect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    rng = np.random.default_rng(0)
    rows = [f"{a:.4f},{b:.4f},{a + b * b:.4f}" for a, b in rng.normal(size=(90, 2))]
    (tmp_path / "my.csv").write_text("\n".join(["a,b,price", *rows]))
    monkeypatch.setattr(advise, "FOLDER", tmp_path)
    words = ["advise", f"table={tmp_path / 'my.csv'}", "target=price"]
    with pytest.raises(SystemExit):
        main(words)
    assert "the study has published no rule yet" in capsys.readouterr().err
    (tmp_path / "rule.json").write_text(to_json(replace(fit_rule("the mean effect", cases(0.0)), spread=1.0)))
    main(words)
    said = capsys.readouterr().out
    assert "of ERM's test error from C-Mixup" in said
    assert all(what.split(",")[0][:20] in said for what in TRAITS.values())
    with pytest.raises(SystemExit):
        main(["advise", "table=my.csv"])
    assert "target must be given" in capsys.readouterr().err
