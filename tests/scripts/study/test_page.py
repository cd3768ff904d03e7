"""The study's page: every place has its part whatever is trained, and its numbers are those of the records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from scripts.claims.prose import places, splice
from scripts.study import front, objections, page
from scripts.study.evidence import Setting
from scripts.study.protocols import Protocol2, load_protocol2
from scripts.study.published import FOLDER
from tests.attacks.pictures import faults_of

SHIFTS = {"mixup": 0.0, "cmixup": 0.1, "regmixup": -0.1, "resample": 0.0}  # of an error of 1


def record(table: str, condition: str, method: str, k: int) -> dict[str, Any]:
    """Return a record whose splits differ; a method's error is ERM's and its shift, with a little noise."""
    noise = np.random.default_rng([k, len(method)]).normal(0, 0.0005, 10) * (method != "erm")
    seeds = [
        {"seed": 10 * s + w, "split": s, "best_epoch": 30 + 330 * (s == 0 and k == 0),
         "options": [f"method={'erm' if s == 4 else method}", f"train.lr=0.00{s + 1}", "train.weight_decay=0.0"],
         "test": (value := 1 + 0.1 * s + SHIFTS.get(method, 0.0) + noise[2 * s + w - 1]), "test_balanced": 2 * value}
        for s in range(5) for w in (1, 2)
    ]  # fmt: skip
    return {"table": table, "condition": condition, "method": method, "seeds": seeds, "trials": [{}] * 40,
            "seconds": 10.0, "device": "cpu: one" if k else f"cpu: {method}"}  # fmt: skip


@pytest.fixture(scope="module")
def rules() -> Protocol2:
    return load_protocol2()


def made(rules: Protocol2, tables: Sequence[str], name: str = "random", of: int = 0) -> list[Setting]:
    """Return all settings, of which one has tables."""
    found = []
    for condition in rules.conditions:
        own = [record(t, name, m, k) for k, t in enumerate(tables) for m in condition.methods]
        found.append(Setting(condition, of or len(tables), own if condition.name == name else []))
    return found


def test_every_place_of_the_page_has_its_part_whatever_is_trained(
    rules: Protocol2, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(page, "read", lambda _: [])
    monkeypatch.setattr(page.entries, "read", lambda *_, **__: [])
    text = (FOLDER / "when.md").read_text()
    for found in (made(rules, []), made(rules, ["one"], of=2), made(rules, ["one", "two", "three"])):
        parts = page.parts(found, rules)
        assert set(parts) == set(places(text))
        filled = splice(text, parts)
        assert {line.count("|") for line in filled.partition("## Objections")[2].splitlines()[3:]} <= {0, 4}


def everything(rules: Protocol2, tables: Sequence[str]) -> list[Setting]:
    """Return all settings, each with all of its tables."""
    return [
        Setting(c, len(tables), [record(t, c.name, m, k) for k, t in enumerate(tables) for m in c.methods])
        for c in rules.conditions
    ]


def test_the_page_opens_with_what_was_found_in_whole_settings_alone(rules: Protocol2) -> None:
    said = page.verdict(made(rules, ["one", "two", "three"]), rules)
    assert said.startswith(
        "**In the 1 of 4 settings whose tables are all trained, mixing is shown to lower the test error on 3 of 3 real "
        "tables, and to raise it on 3.** That is said of mixup, C-Mixup and RegMixup in these settings (All rows, "
        "split at random). For 3 of 9 pairs of a method and a table a difference of 1 % or more is ruled out, and for "
        "none the runs cannot tell. What gains: RegMixup on one by -8."
    )
    assert "What loses: C-Mixup on one by +8." in said  # 0.1 of a mean error of 1.2
    assert said.endswith(
        " Without a verdict, as not all tables are trained: 100 training rows (0 of 3 tables so far); 100 training "
        "rows, noisy labels (0 of 3 tables so far); Whole groups held out (0 of 3 tables so far)."
    )
    part = page.verdict(made(rules, ["one", "two", "three"], of=30), rules)
    assert part.startswith(
        "Without a verdict, as not all tables are trained: 100 training rows (0 of 30 tables so far)"
    )
    assert part.endswith("All rows, split at random (3 of 30 tables so far).")


def test_once_all_settings_are_whole_the_page_says_nothing_of_what_is_missing(
    rules: Protocol2, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = page.verdict(everything(rules, ["one", "two"]), rules)
    assert said.startswith("**Mixing is shown to lower the test error on 2 of 2 real tables, and to raise it on 2.** ")
    assert "split at random). For 8 of 24 pairs" in said
    assert said.endswith("and for none the runs cannot tell.")  # eight gain and eight lose: too many to name
    monkeypatch.setitem(SHIFTS, "cmixup", 0.0)
    monkeypatch.setitem(SHIFTS, "regmixup", 0.0)
    said = page.verdict(everything(rules, ["one", "two"]), rules)
    assert "lower the test error on none of 2 real tables, and to raise it on none.** " in said


def test_readme_says_what_came_of_each_setting_at_every_stage(
    rules: Protocol2, monkeypatch: pytest.MonkeyPatch
) -> None:
    def readme(found: Sequence[Setting]) -> str:
        return " ".join(front.lines(found, rules).split())

    assert " setting (" not in readme(made(rules, ["one", "two"], "rows100", of=3))
    some = readme(made(rules, ["one"], "rows100", of=1))  # nothing at random: what protocol 1 found
    assert some.startswith(
        "**C-Mixup is shown to lower the test error on none of 30 real tables, and to raise it on none.**"
    )
    assert (
        "In another setting (100 training rows: 1 tables) it is shown to lower the error on none, and to raise it"
        in some
    )
    assert some.endswith("Setting: All rows, split at random, by protocol 1.")
    assert front.short(made(rules, [], of=30), rules) == (
        "Not that we could show: on 21 of 30 real tables the error is higher than without mixing"
    )
    found = everything(rules, ["one", "two", "three"])
    whole = readme(found)
    assert whole.startswith(
        "**C-Mixup is shown to lower the test error on none of 3 real tables, and to raise it on 3.** "
    )
    assert (
        "On none a difference of 1 % or more is ruled out, on none the runs cannot tell. Its error is higher than "
        "ERM's on 3 of the 3 tables (+8.3 % on their mean, sign test p = 0.25). In other settings " in whole
    )
    assert (
        "(100 training rows: 3 tables; 100 training rows, noisy labels: 3 tables; Whole groups held out: 3 tables) it "
        "is shown to lower the error on none, and to raise it on 3." in whole
    )
    assert "Averaging" not in whole
    assert whole.endswith("Setting: All rows, split at random.")
    monkeypatch.setitem(SHIFTS, "cmixup", -0.1)
    better = [*found[:3], everything(rules, ["one", "two", "three"])[3]]
    assert "lower the test error on 3 of 3 real tables, and to raise it on none." in readme(better)
    assert "Its error is lower than ERM's on 3 of the 3 tables (-8.3 % on their mean, sign test p = 0.25)." in readme(
        better
    )
    assert front.short(better, rules) == "Shown on 3: on 3 of 3 real tables the error is lower than without mixing"


@pytest.mark.parametrize(
    ("shift", "of", "said"),
    [
        (-0.1, 3, "lowers the error (-8.3 % on the mean of 3 tables)."),
        (-0.1, 4, "lowers the error (-8.3 % on the mean of 3 tables so far)."),
        (0.1, 3, "raises the error (+8.4 % on the mean of 3 tables)."),
        (-0.0035, 3, "is not shown to change the error (-0.2 % on the mean of 3 tables)."),
        (0.0, 3, "is not shown to change the error (+0.1 % on the mean of 3 tables)."),
    ],
)
def test_an_ensemble_is_said_to_do_what_its_interval_says(rules: Protocol2, shift: float, of: int, said: str) -> None:
    found = made(rules, ["one", "two", "three"], of=of)
    others = [
        {"table": t, "condition": "random", "method": "ERM x 5",
         "seeds": [{"seed": s, "split": s, "test": 1 + 0.1 * s + shift + own} for s in range(5)]}
        for t, own in {"one": 0.0, "two": 0.009, "three": -0.006}.items()
    ]  # fmt: skip
    last = replace(found[-1], others=others)
    text = " ".join(front.lines([*found[:-1], last], rules).split())
    assert "Averaging five networks of ERM " + said in text


def test_what_came_out_of_the_objections_is_counted(rules: Protocol2) -> None:
    found = made(rules, ["one", "two", "three"])
    out = objections.came_out(found, rules, page.title)
    assert out["decay"] == "decay above 0 was chosen by ERM on 0 of 15 splits, by C-Mixup on 0 of 15 splits"
    assert "mixup 3 of 15, C-Mixup 3 of 15" in out["chosen"]
    assert "by a factor of 5.0 for ERM, 5.0 for C-Mixup (median)" in out["tuned"]
    assert out["late"] == "0 of 150 runs, on 0 tables, are best in the last 40 of 400 epochs"
    later = replace(rules, patience=41)  # best at epoch 360: one split of two weights, five methods
    assert (
        objections.late(found[-1].records, later)
        == "10 of 150 runs, on 1 tables, are best in the last 41 of 400 epochs"
    )
    assert out["processors"] == "1 of 3 tables of a setting mix processors"
    assert out["overlap"].startswith("3 gains and 3 losses; without the correction ")
    assert "of 12 pairs of a method and a table" in out["power"]
    assert out["grouped"] == "Whole groups held out: nothing is trained yet"
    nothing = objections.came_out(made(rules, []), rules, page.title)
    assert set(nothing.values()) == {objections.NOTHING}


def test_without_the_correction_intervals_are_those_of_independent_splits(rules: Protocol2) -> None:
    each = made(rules, ["one", "two"])[-1].changes("cmixup", overlap=0.0)
    values = [100 / 1.2 * (0.1 + n) for n in np.random.default_rng([0, 6]).normal(0, 0.0005, 10).reshape(5, 2).mean(1)]
    half = 2.7764451 * np.std(values, ddof=1) / 5**0.5
    interval = each["one"].interval
    assert (interval.mean, interval.high - interval.low) == pytest.approx((np.mean(values), 2 * half))


def test_pictures_have_no_faults(rules: Protocol2, monkeypatch: pytest.MonkeyPatch) -> None:
    found = made(rules, ["one", "two", "three"])
    monkeypatch.setattr(page, "settings", lambda: found)
    figures = page.figures()
    assert figures.keys() == {"study/forest_random.png", "study/wins.png", "study/cost.png", "study/front.png"}
    assert faults_of(figures) == []
    forest = figures["study/forest_random.png"]
    assert [axis.get_title() for axis in forest.axes] == ["mixup", "C-Mixup", "RegMixup", "resample only"]
    (legend,) = forest.legends
    shown = [text.get_text() for text in legend.get_texts()]
    assert shown == ["gains", "loses", "no difference", "mean over tables"]
    assert page.costs(found[-1], rules)["ERM"][0] == pytest.approx(9 * 10 / 50)
    shown = figures["study/front.png"].axes[0]
    assert [label.get_text() for label in shown.get_yticklabels()] == ["one", "three", "two"]
    assert page.readme() == front.lines(found, rules)
    assert page.short() == "Not that we could show: on 3 of 3 real tables the error is higher than without mixing"
