"""The map of the paper's artefacts: what is said of each follows from the records."""

import re
from dataclasses import replace

import pytest

from cmixup.errors import InputError
from scripts.records.experiment import RESULTS
from scripts.records.run_tables import frame_of
from scripts.report.evidence import Evidence, published_evidence
from scripts.report.paper import verdicts as artefact_list
from scripts.report.paper.statements import paper_counts, published_statements
from scripts.report.paper.verdicts import (
    IDLE,
    OPEN,
    Artefact,
    find_all,
    load_artefacts,
)
from tests.scripts.reports import report

ARTEFACT = Artefact("Table 1", "gains", "reproduce-table1", "table1", ["paper"], gain=[["cmixup", "erm"]])


def evidence(first, second, *, dataset="airfoil", methods=("cmixup", "erm"), presets=("paper",)) -> Evidence:
    """Records of two methods whose test RMSE is `first` and `second` by seed, the same for every preset."""
    reports = [
        report(dataset=dataset, method=method, preset=preset, seed=seed, options={}, scores={"test": {"rmse": value}},
               run=f"{preset}/{method}/seed={seed}")
        for preset in presets
        for method, values in zip(methods, (first, second), strict=True)
        for seed, value in enumerate(values)
    ]  # fmt: skip
    return Evidence(frame_of(reports))


# Ten seeds, as the tables plan. The paper's C-Mixup is better than ERM by 0.184 on Airfoil, with an error of 0.055.
LOWER = [1.0, 1.1, 1.2, 1.0, 1.1, 1.2, 1.0, 1.1, 1.2, 1.1]
HIGHER = [2.0, 2.1, 2.3, 2.0, 2.1, 2.3, 2.0, 2.1, 2.3, 2.1]
EITHER = [0.9, 1.2, 1.2, 0.9, 1.2, 1.2, 0.9, 1.2, 1.2, 1.1]  # within 0.05 of LOWER
WIDE = [0.1, 2.0, 1.5, 0.4, 1.9, 0.3, 1.8, 0.6, 1.4, 1.5]


@pytest.mark.parametrize(
    ("first", "second", "word"),
    [(LOWER, [value + 0.18 for value in EITHER], "reproduces"), (LOWER, HIGHER, "same direction, larger"),
     (HIGHER, LOWER, "opposite direction"), (LOWER, EITHER, "direction inconclusive, smaller"),
     (LOWER, WIDE, "inconclusive"), (LOWER[:1], HIGHER[:1], OPEN), (LOWER[:9], HIGHER[:9], OPEN)],
)  # fmt: skip
def test_planted_runs_have_the_verdict_that_was_planted(first, second, word):
    (finding,) = find_all(ARTEFACT, evidence(first, second))
    assert (finding.where, finding.outcome, finding.n) == ("Airfoil", word, len(first))


def test_higher_is_better_for_r():
    artefact = replace(ARTEFACT, experiment="table3", worst=True)
    reports = [
        report(experiment="table3", dataset="dti", method=method, seed=seed, options={}, run=f"{method}/seed={seed}",
               scores={"test": {"r": value, "worst_r": -value}})
        for method, values in (("cmixup", HIGHER), ("erm", LOWER)) for seed, value in enumerate(values)
    ]  # fmt: skip
    findings = find_all(artefact, Evidence(frame_of(reports)))
    assert [(f.direction, f.magnitude) for f in findings] == [("same", "larger"), ("opposite", "smaller")]
    assert findings[1].where == f"worst domain of {findings[0].where}"
    assert (findings[0].paper.mean, findings[0].paper.error) == pytest.approx(
        (0.034, ((0.014**2 + 0.008**2) / 3) ** 0.5)
    )


def test_every_preset_has_a_row():
    both = replace(ARTEFACT, presets=["paper", "released"])
    reports = [
        report(method=method, preset=preset, seed=seed, options={}, scores={"test": {"rmse": value}},
               run=f"{preset}/{method}/seed={seed}")
        for preset, order in (("paper", (LOWER, HIGHER)), ("released", (HIGHER, LOWER)))
        for method, scores in zip(("cmixup", "erm"), order, strict=True) for seed, value in enumerate(scores)
    ]  # fmt: skip
    findings = find_all(both, Evidence(frame_of(reports)))
    assert [one.outcome for one in findings[1:]] == ["opposite direction"]


def test_runs_in_which_every_row_is_its_own_partner_are_degenerate():
    reports = [
        report(method=method, seed=seed, options={}, run=f"{method}/seed={seed}",
               scores={"test": {"rmse": value}}, facts={"self_probability": share})
        for method, values, share in (("cmixup", LOWER, 1.0), ("erm", HIGHER, 0.0)) for seed, value in enumerate(values)
    ]  # fmt: skip
    (finding,) = find_all(ARTEFACT, Evidence(frame_of(reports)))
    assert (finding.direction, finding.magnitude) == (IDLE, "")


def test_a_key_that_is_none_is_refused(tmp_path):
    (tmp_path / artefact_list.FILE).write_text("x: {paper: a, what: b, command: c, colour: red}")
    with pytest.raises(InputError, match="colour"):
        load_artefacts(tmp_path)


def test_every_command_of_the_map_is_a_target():
    targets = {word for line in (RESULTS.parent / "Makefile").read_text().splitlines() if line[:1].isalpha()
               for word in line.partition(":")[0].split()}  # fmt: skip
    experiments = {path.stem.replace("_", "-") for path in (RESULTS.parent / "configs" / "experiment").glob("*.yaml")}
    assert {a.command for a in load_artefacts()} <= targets | {f"reproduce-{name}" for name in experiments}


def test_every_difference_is_counted_once():
    rows = [one for one in published_statements() if one.direction != IDLE]
    groups = [int(count) for count in re.findall(r"(\d+) results:", paper_counts(published_evidence()))]
    assert sum(groups) == len({one.key for one in rows}) == len(rows) > 20
