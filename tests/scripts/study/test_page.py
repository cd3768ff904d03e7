"""The study's page: every place has its part whatever is trained, and its numbers are those of the records."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from scripts.claims.prose import places, splice
from scripts.study import objections, page
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


def test_a_verdict_is_given_of_whole_settings_alone(rules: Protocol2) -> None:
    said = page.verdict(made(rules, ["one", "two", "three"]), rules)
    assert said.startswith(
        "**All rows, split at random**, 3 tables: of 9 pairs of a method that mixes and a table 3 gain (RegMixup on "
    )
    assert "make no difference of 1 %, and of 0 it cannot be told. Without a verdict" in said
    assert "3 lose (C-Mixup on one +8." in said  # 0.1 of a mean error of 1.2
    part = page.verdict(made(rules, ["one", "two", "three"], of=30), rules)
    assert part.startswith("Without a verdict, as not all tables are trained: ")
    assert "All rows, split at random 3 of 30" in part


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
    front = figures["study/front.png"]
    assert [label.get_text() for label in front.axes[0].get_xticklabels()] == ["one", "three", "two"]
    said = page.readme()
    assert "On 3 real tables" in said
    assert "C-Mixup gains on 0, loses on 3 and makes no difference of 1 % on 0; on 0 it cannot be told." in said
