"""The study's page: every place has its part whatever is trained, and its numbers are those of the records."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from scripts.effects.verdicts import chance_text, mean_text
from scripts.protocol.protocols import Protocol2, load_protocol2
from scripts.protocol.published import FOLDER
from scripts.records.tables import interval_text
from scripts.report.places import page_places, splice_page
from scripts.study import effect_tables, front, page, referee
from scripts.study.effect_tables import row_head, table_row
from scripts.study.evidence import Setting

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
    monkeypatch.setattr(page, "read_store", lambda _: [])
    monkeypatch.setattr(page, "with_later_splits", lambda: made(rules, [])[-1])
    monkeypatch.setattr(page.answers, "first_lines", lambda *_: "")
    monkeypatch.setattr(page.front, "read_store", lambda *_, **__: [])
    text = (FOLDER / "when.md").read_text()
    names = [table.name for table in rules.tables[:3]]
    for found in (made(rules, [], of=30), made(rules, names[:1], of=2), made(rules, names)):
        parts = page.page_parts(found, rules)
        assert set(parts) == set(page_places(text))
        splice_page(text, parts)


def everything(rules: Protocol2, tables: Sequence[str]) -> list[Setting]:
    """Return all settings, each with all of its tables."""
    return [
        Setting(c, len(tables), [record(t, c.name, m, k) for k, t in enumerate(tables) for m in c.methods])
        for c in rules.conditions
    ]


def verdict_of(found: Sequence[Setting], rules: Protocol2) -> str:
    """Return the verdict that leads with the last setting."""
    return page.verdict_lines(found, rules, found[-1])


def flat(text: str) -> str:
    return " ".join(text.split())


def test_the_page_opens_with_what_was_found_in_whole_settings_alone(rules: Protocol2) -> None:
    found = made(rules, ["one", "two", "three"])
    own = found[-1].effect("cmixup", rules)
    assert own is not None
    assert own.overall.mean == pytest.approx(100 * 0.1 / 1.2, abs=0.05)
    said = verdict_of(found, rules)
    assert said.startswith(
        "**C-Mixup: the mean error is higher (3 tables, 5 splits each).** mixup, C-Mixup and RegMixup have 9 pairs of "
        "a method and a table over 1 settings (All rows, split at random). The error changes by less than 1 % on 3 of "
        "them. It is lower by as much or more on 3, higher on 3, and none cannot be told."
    )
    assert said.endswith(
        " Not all tables are trained: 100 training rows (0 of 3 tables so far); 100 training rows, noisy labels (0 of "
        "3 tables so far); Whole groups held out (0 of 3 tables so far)."
    )
    part = verdict_of(made(rules, ["one", "two", "three"], of=30), rules)
    assert part.startswith("Not all tables are trained: 100 training rows (0 of 30 tables so far)")
    assert part.endswith("All rows, split at random (3 of 30 tables so far).")


def test_once_all_settings_are_whole_the_page_says_nothing_of_what_is_missing(
    rules: Protocol2, monkeypatch: pytest.MonkeyPatch
) -> None:
    said = verdict_of(everything(rules, ["one", "two", "three"]), rules)
    assert said.endswith(
        "The error changes by less than 1 % on 12 of them. It is lower by as much or more on 12, higher on 12, and "
        "none cannot be told."
    )
    monkeypatch.setitem(SHIFTS, "cmixup", 0.0)
    monkeypatch.setitem(SHIFTS, "regmixup", 0.0)
    said = verdict_of(everything(rules, ["one", "two"]), rules)
    assert "the direction cannot be told (2 tables, 5 splits each).**" in said
    assert said.endswith(
        "less than 1 % on 24 of them. It is lower by as much or more on none, higher on none, and none cannot be told."
    )


def test_readme_says_what_came_of_each_setting_at_every_stage(
    rules: Protocol2, monkeypatch: pytest.MonkeyPatch
) -> None:
    def readme(found: Sequence[Setting]) -> str:
        return flat(front.front_lines(found, rules))

    found = everything(rules, ["one", "two", "three"])
    whole = readme(found)
    own = found[-1].effect("cmixup", rules)
    assert own is not None
    assert whole.startswith(
        "**C-Mixup: the mean error is higher (3 tables, 5 splits each).** Of these tables it gains 1 % or more on "
        "none, loses as much on 3, stays within on none, and on none that cannot be told. | setting | against ERM |"
    )
    size = interval_text(own.overall, 1)
    assert f"| All rows, split at random | C-Mixup | {size} |" in whole
    assert "| higher | below 0.01 | above 0.99 |" in whole
    assert "| 100 training rows | C-Mixup | +8.3 [" in whole
    assert "| 100 training rows |" not in front.sentences(found, rules)
    assert "average" not in whole
    assert whole.endswith("Setting: All rows, split at random, 5 splits.")
    monkeypatch.setitem(SHIFTS, "cmixup", -0.1)
    better = [*found[:3], everything(rules, ["one", "two", "three"])[3]]
    assert "**C-Mixup: the mean error is lower (3 tables, 5 splits each).**" in readme(better)
    assert "it gains 1 % or more on 3, loses as much on none, " in readme(better)


@pytest.mark.parametrize(
    ("shift", "said"), [(-0.1, "On average it lowers the error"), (0.1, "On average it raises the error"),
                        (0.0, "On average that cannot be told")],
)  # fmt: skip
def test_whether_mixing_helps_is_the_direction_of_the_mean(
    rules: Protocol2, monkeypatch: pytest.MonkeyPatch, shift: float, said: str
) -> None:
    monkeypatch.setitem(SHIFTS, "cmixup", shift)
    found = made(rules, ["one", "two", "three", "four"])
    own = found[-1].effect("cmixup", rules)
    assert own is not None
    new = own.posterior.new.chances
    assert front.short_answer(found, rules) == (
        f"{said}: over 4 real tables, 5 splits each, {mean_text(own)}. A new table gains 1 % or more with "
        f"probability {chance_text(new.gain)} and loses as much with {chance_text(new.loss)}"
    )


@pytest.mark.parametrize(
    ("shift", "of", "said"),
    [
        (-0.1, 4, "the mean error is lower (4 tables, 5 splits each).**"),
        (-0.1, 5, "the mean error is lower (4 tables so far, 5 splits each).**"),
        (0.1, 4, "the mean error is higher (4 tables, 5 splits each).**"),
        (-0.002, 4, "the direction cannot be told (4 tables, 5 splits each).**"),
    ],
)
def test_an_ensemble_is_told_of_by_the_same_rule(rules: Protocol2, shift: float, of: int, said: str) -> None:
    found = made(rules, ["one", "two", "three", "four"], of=of)
    others = [
        {"table": t, "condition": "random", "method": front.ENSEMBLE,
         "seeds": [{"seed": s, "split": s, "test": 1 + 0.1 * s + shift + own * (1 + s % 3)} for s in range(5)]}
        for t, own in {"one": 0.0, "two": 0.003, "three": -0.002, "four": 0.001}.items()
    ]  # fmt: skip
    last = replace(found[-1], others=others)
    own = last.effect(front.ENSEMBLE, rules)
    assert own is not None
    text = flat(front.front_lines([*found[:-1], last], rules))
    new = own.posterior.new.chances
    assert f"**An average of five networks of ERM: {said}" in text
    assert f"| {chance_text(new.gain)} | {chance_text(new.loss)} |" in text
    if of == 4:
        whole = page.verdict_lines(found, rules, last)
        assert f"**An average of five networks of ERM: {said}" in whole


def test_what_came_out_of_the_objections_is_counted(rules: Protocol2) -> None:
    found = made(rules, ["one", "two", "three"])
    out = referee.came_out(found, rules)
    assert out["decay"] == "decay above 0 was chosen by ERM on 0 of 15 splits, by C-Mixup on 0 of 15 splits"
    assert "mixup 3 of 15, C-Mixup 3 of 15" in out["chosen"]
    assert "by a factor of 5.0 for ERM, 5.0 for C-Mixup (median)" in out["tuned"]
    assert out["late"] == "0 of 150 runs, on 0 tables, are best in the last 40 of 400 epochs"
    later = replace(rules, patience=41)  # best at epoch 360: one split of two weights, five methods
    assert (
        referee.late_runs(found[-1].records, later)
        == "10 of 150 runs, on 1 tables, are best in the last 41 of 400 epochs"
    )
    assert out["processors"] == "1 of 3 tables of a setting mix processors"
    assert out["overlap"] == "3 gains and 3 losses; 3 and 3 if splits were independent"
    assert out["power"] == (
        "of 12 pairs of a method and a table the effect lies within 1 % on 6, and cannot be told on 0"
    )
    assert out["random"] == (
        "All rows, split at random (3 tables, pairs of a method and a table): gains 3, loses 3, within 1 % 6, cannot "
        "be told 0"
    )
    assert out["grouped"] == "Whole groups held out: nothing is trained yet"
    nothing = referee.came_out(made(rules, []), rules)
    assert set(nothing.values()) == {referee.NOTHING}


def test_a_row_says_what_the_effect_says(rules: Protocol2) -> None:
    found = made(rules, ["one", "two", "three"])
    own = found[-1].effect("cmixup", rules)
    assert own is not None
    mean, plain, direction, spread, sizes, new = table_row(own)
    assert mean == f"{own.overall.mean:+.1f} [{own.overall.low:+.1f}, {own.overall.high:+.1f}]"
    assert plain.startswith(f"{np.mean(list(own.means.values())):+.1f} [")
    assert (direction, sizes, new) == ("higher", "0 / 3 / 0 / 0", "below 0.01, above 0.99")
    median, low, high = own.posterior.spread
    assert spread == f"{median:.1f} [{low:.1f}, {high:.1f}]"
    assert len(row_head(rules)) == len(table_row(own))
    assert f"| C-Mixup | {' | '.join(table_row(own))} | 0 of 3 (p 0.25) | 3 of 15 |" in page.setting_section(
        found[-1], rules
    )


def test_controls_and_calibration_have_a_row_for_each_setting(rules: Protocol2) -> None:
    found = page.drawable_settings(made(rules, [table.name for table in rules.tables[:3]]))
    (negative,) = effect_tables.control_rows(found, rules)[2:]
    assert negative.startswith("| negative | ERM, other weights, All rows, split at random (3 tables) | +0.0 [")
    assert negative.endswith(" | 0, 0 |")
    own, every = effect_tables.calibration_rows(found)[2:]
    assert own.startswith("| All rows, split at random (3 tables) | C-Mixup | ")
    assert own.count("of 3 (") == every.count("of 3 (") == 2
    (traits,) = effect_tables.trait_rows(found, rules)[2:]
    assert traits.startswith("| All rows, split at random (3 tables) | C-Mixup | ")
    assert effect_tables.control_rows([], rules) == effect_tables.trait_rows([], rules) == []
    assert effect_tables.calibration_rows([]) == []


def test_pictures_show_every_method(rules: Protocol2, monkeypatch: pytest.MonkeyPatch) -> None:
    found = made(rules, ["one", "two", "three"])
    for name in ("study_settings", "leading_settings"):
        monkeypatch.setattr(page, name, lambda: found)
    figures = page.study_figures()
    assert figures.keys() == {"study/forest_random.png", "study/wins.png", "study/cost.png", "study/front.png",
                              "study/first.png"}  # fmt: skip
    forest = figures["study/forest_random.png"]
    assert [axis.get_title().splitlines()[0] for axis in forest.axes] == [
        "mixup",
        "C-Mixup",
        "RegMixup",
        "resample only",
    ]
    (legend,) = forest.legends
    shown = [text.get_text() for text in legend.get_texts()]
    assert shown == ["gains", "loses", "within 1 %", "mean over tables"]
    assert page.cost_rows(found[-1], rules)["ERM"][0] == pytest.approx(9 * 10 / 50)
    cost, seconds = figures["study/cost.png"].axes
    names = [label.get_text() for label in cost.get_yticklabels()]
    changes = {name: change.mean for name, (_, change) in page.cost_rows(found[-1], rules).items()}
    assert names == sorted(changes, key=lambda name: changes[name])  # the lowest error above
    assert seconds.get_ylim() == cost.get_ylim()
    shown = figures["study/front.png"].axes[0]
    assert [label.get_text() for label in shown.get_yticklabels()] == [
        "one", "three", "two", "mean over tables", "a new table",
    ]  # fmt: skip
    parts = page.front_pages()
    assert parts["README.md"] == {"study": front.sentences(found, rules), "helps": front.short_answer(found, rules)}
