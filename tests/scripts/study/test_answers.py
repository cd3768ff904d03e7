"""The pages of networks, of likelihood and of the referee: what is told, and that only whole parts are told of."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from scripts.driver.predictions import Scored
from scripts.protocol.protocols import Protocol2, load_protocol2, rules_named
from scripts.protocol.published import FOLDER
from scripts.protocol.rules import Rules
from scripts.records.study_errors import error_scores
from scripts.report.places import page_places, splice_page
from scripts.study import answers, evidence, likelihood, no_search, parts, referee
from tests.scripts.study.test_page import everything

Records = list[dict[str, Any]]


def cells_of(rules: Protocol2, condition: str, tables: Sequence[str], change: float) -> Records:
    """Return records of all methods on some tables, whose scores differ from ERM's by `change` and a little noise."""
    (methods,) = (c.methods for c in rules.conditions if c.name == condition)
    rng, found = np.random.default_rng(0), Records()
    for table in tables:
        hard = rng.uniform(1, 2, size=5)
        for method in methods:
            seeds = []
            for split in range(rules.splits):
                for number in (1, 2):
                    value = hard[split % 5] + (method != "erm") * (change + rng.normal(0, 0.001))
                    scores = dict.fromkeys(
                        ("test_nll", "test_nll_rescaled", "test_crps_rescaled", "test"), float(value)
                    )
                    covered = {"test_coverage90": 0.8, "test_coverage90_rescaled": 0.9}
                    seeds.append({"seed": 10 * split + number, "split": split, "options": [], **scores, **covered})
            found.append({"table": table, "condition": condition, "method": method, "seeds": seeds, "trials": []})
    return found


@pytest.fixture
def stored(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, Records], None]:
    """Let the pages read records of rules by name, and nothing of others."""
    by_name: dict[str, Records] = {}

    def read(rules: Rules, *_: object, **__: object) -> Records:
        return by_name.get(rules.name, [])

    for module in (evidence, no_search, parts, referee):
        monkeypatch.setattr(module, "read_store", read)
    return by_name.__setitem__


@pytest.mark.parametrize(("part", "whole"), [("lite", True), ("all", True), ("nine", False), ("a method", False)])
def test_a_network_is_told_of_on_the_lite_tables_or_all_of_them(
    stored: Callable[[str, Records], None], part: str, whole: bool
) -> None:
    rules = rules_named("network_realmlp")
    tables = {"all": [t.name for t in rules.tables], "nine": rules.lite_tables()[:9]}.get(part, rules.lite_tables())
    records = cells_of(rules, "rows100", tables, 0.2)
    stored("network_realmlp", records[:-1] if part == "a method" else records)
    page = no_search.write_networks()[no_search.OF_NETWORKS]
    assert page.count("### 100 training rows") == int(whole)
    assert page.count("Not run yet: 100 training rows; all rows") == 3 - whole
    assert page.count("Not run yet: all rows, split at random.") == int(whole)
    if whole:
        expected = "30 tables" if part == "all" else "the 10 tables with the fewest rows"
        assert f"### 100 training rows ({expected})" in page
        (line,) = (line for line in page.splitlines() if line.startswith("| C-Mixup, alpha 2 |"))
        assert "| higher |" in line


def test_likelihood_has_a_positive_and_a_negative_control_and_is_told_in_nats(
    stored: Callable[[str, Records], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = rules_named("likelihood")
    records = cells_of(rules, "rows100", rules.lite_tables(), -0.05)
    erm = [record for record in records if record["method"] == "erm"]
    for record in erm:  # a third and a fourth network, as good as the first two
        later = [{**row, "seed": row["seed"] + 2} for row in record["seeds"]]
        record["seeds"] += later
    better = [{**r, "method": likelihood.ENSEMBLE, "seeds": [
        {**row, "test_nll_rescaled": row["test_nll_rescaled"] - 0.1} for row in r["seeds"]]} for r in erm]  # fmt: skip
    monkeypatch.setattr(likelihood, "ensembles", lambda *_: better)
    stored("likelihood", records)
    lines = likelihood.write_page()[likelihood.PAGE].splitlines()
    row = {line.split("|")[1].strip(): line.split("|") for line in lines if line.startswith("| ")}
    assert row["rescaled likelihood"][2].strip() == "mean effect, nats"
    assert row[likelihood.ENSEMBLE][2].strip().startswith("-0.100 [")
    assert row[likelihood.ENSEMBLE][4].strip() == "lower"
    assert row[likelihood.AGAIN][4].strip() == "cannot be told"
    assert lines.count("Not run yet.") == 1
    assert not [line for line in lines if line.startswith("The rule cannot tell the direction")]
    for record, own in zip(better, erm, strict=True):
        record["seeds"] = own["seeds"]  # as good as ERM
    assert "The rule cannot tell the direction of the positive control here" in likelihood.write_page()[likelihood.PAGE]
    (told,) = (line for line in answers.of_part("likelihood") if line.arm == "C-Mixup")
    assert told.own.overall.mean == pytest.approx(-0.05, abs=0.002)
    assert told.size.endswith(" nats")


def test_the_mixture_of_distributions_has_its_moments() -> None:
    rng = np.random.default_rng(0)
    y = np.zeros((4, 2), np.float32)
    members = [Scored({"": rng.normal(size=(4, 2)).astype(np.float32), "std": rng.uniform(0.5, 2, (4, 2)).astype(
        np.float32)}, y, np.zeros(4)) for _ in range(3)]  # fmt: skip
    found = likelihood.mixture(members).prediction
    drawn = np.concatenate([rng.normal(m.prediction[""], m.prediction["std"], size=(200_000, 4, 2)) for m in members])
    np.testing.assert_allclose(found[""], drawn.mean(axis=0), atol=0.01)
    np.testing.assert_allclose(found["std"], drawn.std(axis=0), atol=0.01)


def test_the_first_lines_and_the_referee_say_what_is_not_run_and_order_by_the_chance_of_a_gain(
    stored: Callable[[str, Records], None],
) -> None:
    rules = load_protocol2()
    found = everything(rules, ["one", "two", "three"])
    _, _, own, *lines = answers.first_lines(found, rules).splitlines()
    where = "All rows, split at random, 3 tables, 5 splits; more splits: not run yet (0 of 60 cells)"
    assert own.startswith(f"| **Does C-Mixup help, tuned?** | {where} | +8.3 [")
    assert [line.split(" | ")[1] for line in lines] == ["Not run yet"] * 4
    tabm = rules_named("network_tabm")
    stored("network_tabm", cells_of(tabm, "rows100", tabm.lite_tables(), -0.3))
    table = answers.first_lines(found, rules).splitlines()
    (line,) = (row for row in table if row.startswith("| **On TabM?** |"))
    assert "; alpha 2: -" in line
    assert line.endswith("(lower) | above 0.99, above 0.99 | below 0.01, below 0.01 |")
    assert len(table) == 7  # the answers end in the tenth line of the page
    made = referee.results(found, rules)
    assert made["network_tabm"].startswith("Mean effect in 3 comparisons: lower in 3, higher in 0, 0 cannot be told. ")
    assert made["network_wide"] == "Not run yet"
    text = (FOLDER / "referee.md").read_text()
    assert set(made) == set(page_places(text))
    page = splice_page(text, made)
    table = page.partition("## What is run")[0].splitlines()
    assert {line.count("|") for line in table if line.startswith("| ")} == {5}
    rows = made["best"].splitlines()[2:]
    assert [row.split("|")[1].strip() for row in rows[:2]] == ["[TabM](networks.md)"] * 2
    assert made["gains"] == (
        f"Of {len(rows)} pairs of a setting and a form of C-Mixup the mean error is lower in 2. A new table is more "
        "likely than not to gain in 2."
    )


def test_a_part_is_answered_once_every_table_of_every_setting_has_all_methods(
    stored: Callable[[str, Records], None],
) -> None:
    rules = rules_named("network_tabm")
    names = [table.name for table in rules.tables]
    every = [r for c in ("rows100", "random") for r in cells_of(rules, c, names, 0.0)]
    stored("network_tabm", every)
    assert referee.state_text(referee.all_progress(), "TabM") == "answered"
    stored("network_tabm", every[:-1])  # the last table at random lacks a method
    found = referee.all_progress()
    assert referee.state_text(found, "TabM") == (
        "100 training rows: 30 of 30 tables; All rows, split at random: 29 of 30 tables"
    )
    (last,) = (one for one in found if one.part == "TabM" and one.tables == 29)
    assert (last.cells, last.planned) == (119, 120)
    assert referee.state_text(found, "RealMLP").startswith("100 training rows: 0 of 30 tables")


def test_later_splits_join_those_of_protocol_2_once_both_methods_have_all_tables(
    stored: Callable[[str, Records], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = load_protocol2()
    found = everything(rules, [t.name for t in rules.tables])
    names, both = [t.name for t in rules.tables], ("erm", "cmixup")
    later = [r for r in cells_of(rules_named("more_splits"), "random", names, 0.2) if r["method"] in both]
    for record in later:
        for row in record["seeds"]:
            row["split"] += 5
    averaged = [{**r, "method": evidence.ENSEMBLE} for r in later if r["method"] == "erm"]
    first = [{**r, "method": evidence.ENSEMBLE} for r in found[-1].records if r["method"] == "erm"]
    found[-1] = replace(found[-1], others=first)
    monkeypatch.setattr(evidence, "study_settings", lambda _: found)
    monkeypatch.setattr(evidence, "ensemble_records", lambda *_: averaged)
    stored("more_splits", later)
    own, there, of = answers.with_more_splits(rules)
    assert (there, of) == (60, 60)
    assert own is not None
    assert own.overall.mean == pytest.approx(np.mean([100 * 0.1 / 1.2] * 5 + [100 * 0.2 / 1.5] * 20), abs=2.0)
    alone = answers.Answer("tuned", "", "C-Mixup", own)
    assert answers.in_short([alone], "1 %") == (
        f"Mean effect {alone.size} (higher). A new table gains 1 % with probability below 0.01."
    )
    wide = evidence.with_later_splits()
    assert wide.splits == 25
    control = wide.effect(evidence.ENSEMBLE, rules)
    assert control is not None
    assert control.overall.mean == pytest.approx(0.0, abs=1e-9)
    assert evidence.leading_settings()[:-1] == found[:-1]
    stored("more_splits", later[1:])
    assert answers.with_more_splits(rules) == (None, 59, 60)
    assert evidence.with_later_splits() is found[-1]


def test_predictions_of_later_splits_are_those_of_their_method() -> None:
    """Each method has a file of its own there: an ensemble must not average the runs of another."""
    rules = rules_named("more_splits")
    records = [r for r in evidence.later_cells()[0] if r["table"] == "penguin_mass"]
    kept = evidence.kept_predictions(records[0], rules, ("cmixup", "erm"))
    for record in records:
        for row in record["seeds"][:4]:
            (error,) = (v for k, v in error_scores(kept[record["method"]][row["seed"]]["test"], np.array(record["std"]),
                                                   grouped=False).items() if k == "nrmse")  # fmt: skip
            assert error == row["test"]
