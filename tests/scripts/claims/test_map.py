"""The map of the paper's artefacts: what is said of each follows from the records."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from cmixup.errors import InputError
from scripts.claims.evidence import Evidence
from scripts.claims.map import findings, missing, state
from scripts.records import artefacts as artefact_list
from scripts.records.artefacts import Artefact, load
from scripts.records.experiment import RESULTS
from scripts.records.records import records_frame
from tests.door.targets import targets
from tests.scripts.reports import report

ARTEFACT = Artefact("x", "Table 1", "gains", "reproduce-table1", "table1", ["paper"], gain=[["cmixup", "erm"]])


def evidence(first, second, *, dataset="airfoil", methods=("cmixup", "erm"), presets=("paper",)) -> Evidence:
    """Records of two methods whose test RMSE is `first` and `second` by seed, the same for every preset."""
    reports = [
        report(dataset=dataset, method=method, preset=preset, seed=seed, options={}, scores={"test": {"rmse": value}},
               run=f"{preset}/{method}/seed={seed}")
        for preset in presets
        for method, values in zip(methods, (first, second), strict=True)
        for seed, value in enumerate(values)
    ]  # fmt: skip
    return Evidence(records_frame(reports))


# Ten seeds, as the tables plan.
LOWER = [1.0, 1.1, 1.2, 1.0, 1.1, 1.2, 1.0, 1.1, 1.2, 1.1]
HIGHER = [2.0, 2.1, 2.3, 2.0, 2.1, 2.3, 2.0, 2.1, 2.3, 2.1]
EITHER = [0.9, 1.2, 1.2, 0.9, 1.2, 1.2, 0.9, 1.2, 1.2, 1.1]


@pytest.mark.parametrize(
    ("kind", "first", "second", "holds"),
    [("gain", LOWER, HIGHER, True), ("gain", HIGHER, LOWER, False), ("gain", LOWER, EITHER, False),
     ("level", LOWER, EITHER, True), ("level", LOWER, HIGHER, False), ("gain", LOWER[:1], HIGHER[:1], None),
     ("gain", LOWER[:9], HIGHER[:9], None)],
)  # fmt: skip
def test_what_the_paper_says_holds_where_the_interval_says_so(kind, first, second, holds):
    artefact = replace(ARTEFACT, **{"gain": [], kind: [["cmixup", "erm"]]})
    (found,) = findings(artefact, evidence(first, second), {})
    assert (found.about, found.holds, found.n) == ("Airfoil", holds, len(first))
    word = {True: "reproduces", False: "differs", None: "open"}[holds]
    assert state([found]) == f"**{word}**: Airfoil"


def test_higher_is_better_for_r():
    artefact = replace(ARTEFACT, experiment="table3")
    reports = [
        report(experiment="table3", dataset="dti", method=method, seed=seed, options={}, run=f"{method}/seed={seed}",
               scores={"test": {"r": value}})
        for method, values in (("cmixup", HIGHER), ("erm", LOWER)) for seed, value in enumerate(values)
    ]  # fmt: skip
    (found,) = findings(artefact, Evidence(records_frame(reports)), {})
    assert found.holds is True


def test_presets_that_disagree_are_told_apart():
    both = replace(ARTEFACT, presets=["paper", "released"])
    assert [f.about for f in findings(both, evidence(LOWER, HIGHER, presets=both.presets), {})] == ["Airfoil"]
    reports = [
        report(method=method, preset=preset, seed=seed, options={}, scores={"test": {"rmse": value}},
               run=f"{preset}/{method}/seed={seed}")
        for preset, order in (("paper", (LOWER, HIGHER)), ("released", (HIGHER, LOWER)))
        for method, scores in zip(("cmixup", "erm"), order, strict=True) for seed, value in enumerate(scores)
    ]  # fmt: skip
    found = findings(both, Evidence(records_frame(reports)), {})
    assert state(found) == "**reproduces**: Airfoil (paper); **differs**: Airfoil (released)"


def test_several_pairs_all_have_to_hold():
    pairs = [["cmixup", "erm"], ["cmixup", "mixup"]]
    reports = [
        report(method=method, seed=seed, options={}, scores={"test": {"rmse": value}}, run=f"{method}/seed={seed}")
        for method, values in (("cmixup", LOWER), ("erm", HIGHER), ("mixup", EITHER))
        for seed, value in enumerate(values)
    ]
    (found,) = findings(replace(ARTEFACT, gain=pairs), Evidence(records_frame(reports)), {})
    assert (found.about, found.holds) == ("Airfoil, 1 of 2", False)


def test_claims_say_what_the_paper_says_or_the_opposite():
    verdicts = {name: SimpleNamespace(holds=holds) for name, holds in (("yes", True), ("no", True), ("gone", False))}
    artefact = replace(
        ARTEFACT, experiment="", gain=[], claims={"A": "yes", "B": "gone", "D": "unknown"}, against={"C": "no"}
    )
    assert state(findings(artefact, evidence(LOWER, HIGHER), verdicts)) == (
        "**reproduces**: A; **differs**: C; **open**: B"
    )


def test_what_has_no_runs_is_listed_with_its_reason():
    lines = missing(ARTEFACT, evidence(LOWER, HIGHER))
    assert "Electricity (files)" in lines
    assert not any(line.startswith("Airfoil") for line in lines)
    assert any(line.startswith("NO2 (time: ") for line in lines)


def test_a_key_that_is_none_and_an_artefact_that_nothing_decides_are_refused(tmp_path):
    (tmp_path / artefact_list.FILE).write_text("x: {paper: a, what: b, command: c, colour: red}")
    with pytest.raises(InputError, match="colour"):
        load(tmp_path)
    (tmp_path / artefact_list.FILE).write_text("x: {paper: a, what: b, command: c}")
    with pytest.raises(InputError, match="x must have gain, level, claims, against or words"):
        load(tmp_path)


def test_every_command_of_the_map_is_a_target_and_every_such_target_is_on_the_map():
    known = set(targets((RESULTS.parent / "Makefile").read_text()))
    listed = {a.command for a in load()}
    assert listed <= known
    # No artefacts of the paper.
    extra = {"reproduce-table2-paired", "reproduce-ablation-ood", "reproduce-all", "reproduce-ladder"}
    assert {t for t in known if t.startswith("reproduce-")} - extra == listed


def test_links_of_the_map_are_files():
    for artefact in load():
        for link in artefact.links.values():
            assert (RESULTS / link).is_file(), link
