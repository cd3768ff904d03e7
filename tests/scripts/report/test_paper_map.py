"""Published differences: what is said of each follows from the records, by direction and magnitude."""

import math
from dataclasses import replace
from typing import Any

import pandas as pd
import pytest
from scipy import stats

from cmixup.errors import InputError
from scripts.records.experiment import RESULTS
from scripts.records.run_tables import frame_of
from scripts.report.evidence import Evidence
from scripts.report.paper.statements import count_parts, printed_gains, published_statements
from scripts.report.paper.verdicts import (
    BETTER,
    COMPATIBLE,
    FILE,
    IDLE,
    LARGER,
    SMALLER,
    UNDECIDED,
    UNKNOWN,
    WORSE,
    Artefact,
    Finding,
    find_all,
    judge_gain,
    load_artefacts,
)
from scripts.stats.intervals import Difference, Summary, unpaired_difference
from tests.scripts.reports import report

ARTEFACT = Artefact("Table 1", "gains", "table1", ["paper"], gain=[["cmixup", "erm"]])
PAPER = unpaired_difference(Summary(2.717, 0.067, 3), Summary(2.901, 0.067, 3))  # C-Mixup and ERM of Table 1 on Airfoil


def effect(mean: float, error: float, df: float = 9) -> Difference:
    return Difference(mean, ((error**2, df),))


def test_ours_minus_the_papers_has_the_degrees_of_freedom_of_all_three_terms() -> None:
    terms = [(0.0805**2, 9), (0.067**2 / 3, 2), (0.067**2 / 3, 2)]
    freedom = sum(v for v, _ in terms) ** 2 / sum(v**2 / df for v, df in terms)
    half = stats.t(freedom).ppf(0.975) * math.sqrt(sum(v for v, _ in terms))
    assert effect(0.119, 0.0805).minus(PAPER).ends() == pytest.approx((0.303 - half, 0.303 + half))
    assert 12 < freedom < 14
    unknown = unpaired_difference(Summary(1, 0.3, 9), Summary(2, math.nan, 3))  # a spread that is not printed is none
    assert unknown.parts == ((0.3**2 / 9, 8),)
    none = unpaired_difference(Summary(0.1, math.nan, 3), Summary(0.2, math.nan, 3))
    assert none.ends() == pytest.approx((-0.1, -0.1))


@pytest.mark.parametrize(
    ("mean", "error", "judged", "outcome"),
    [
        (-0.2, 0.03, (BETTER, COMPATIBLE), "better; as published"),  # the paper's effect, seen
        (-0.02, 0.005, (BETTER, SMALLER), "better; smaller than published"),
        (-0.6, 0.05, (BETTER, LARGER), "better; larger than published"),
        (-0.1, 0.04, (BETTER, UNKNOWN), "better"),
        (0.2, 0.05, (WORSE, SMALLER), "worse"),
        (0.0, 0.01, (UNDECIDED, SMALLER), "undecided"),  # none, and not the paper's
        (-0.05, 0.1, (UNDECIDED, UNKNOWN), "undecided"),  # 0 and the paper's effect in one interval
        (0.0, 10.0, (UNDECIDED, UNKNOWN), "undecided"),  # so wide that it says nothing
    ],
)
def test_planted_effects_of_a_gain(mean: float, error: float, judged: tuple[str, str], outcome: str) -> None:
    for sign, other in ((1, PAPER), (-1, Difference(-PAPER.mean, PAPER.parts))):  # either score, mirrored
        assert judge_gain(effect(sign * mean, error), other, lower=sign > 0) == judged
    assert Finding("", "", "x", direction=judged[0], magnitude=judged[1]).outcome == outcome


# Ten seeds, as the tables plan. The paper's C-Mixup is better than ERM by 0.184 on Airfoil, with an error of 0.055.
LOWER = [1.0, 1.1, 1.2, 1.0, 1.1, 1.2, 1.0, 1.1, 1.2, 1.1]
HIGHER = [2.0, 2.1, 2.3, 2.0, 2.1, 2.3, 2.0, 2.1, 2.3, 2.1]
NEAR = [1.08, 1.38, 1.38, 1.08, 1.38, 1.38, 1.08, 1.38, 1.38, 1.28]


def findings_of(cmixup: list[float], erm: list[float], artefact: Artefact = ARTEFACT, **changes: Any) -> list[Finding]:
    """The findings of runs with these scores by seed; those of preset released are of the two methods exchanged."""
    values = {("cmixup", "paper"): cmixup, ("erm", "paper"): erm, ("cmixup", "released"): erm,
              ("erm", "released"): cmixup}  # fmt: skip
    reports = [
        report(method=method, preset=preset, seed=seed, options={}, run=f"{preset}/{method}/seed={seed}",
               **{"scores": {"test": {"rmse": value, "r": value, "worst_r": -value}}, **changes})
        for (method, preset), scores in values.items() for seed, value in enumerate(scores)
    ]  # fmt: skip
    return find_all(artefact, Evidence(frame_of(reports)))


@pytest.mark.parametrize(
    ("first", "second", "word"),
    [(LOWER, NEAR, "better; as published"), (LOWER, HIGHER, "better; larger than published"),
     (HIGHER, LOWER, "worse"), (LOWER[:1], HIGHER[:1], "undecided")],
)  # fmt: skip
def test_planted_runs_have_the_verdict_that_was_planted(first: list[float], second: list[float], word: str) -> None:
    (finding,) = findings_of(first, second)
    assert (finding.where, finding.outcome, finding.n) == ("Airfoil", word, len(first))


def test_higher_is_better_for_r_and_every_preset_has_a_row() -> None:
    artefact = replace(ARTEFACT, experiment="table3", worst=True, presets=["paper", "released"])
    findings = findings_of(HIGHER, LOWER, artefact, experiment="table3", dataset="dti")
    judged = [("better", "larger"), ("worse", "smaller")]
    assert [(f.direction, f.magnitude) for f in findings] == [*judged, *[(d, m) for d, m in reversed(judged)]]
    assert findings[1].where == f"worst domain of {findings[0].where}"
    paper = findings[0].paper
    assert (paper.mean, paper.error) == pytest.approx((0.034, ((0.014**2 + 0.008**2) / 3) ** 0.5))


def test_runs_in_which_every_row_is_its_own_partner_are_degenerate() -> None:
    (finding,) = findings_of(LOWER, HIGHER, facts={"self_probability": 1.0})
    assert (finding.direction, finding.magnitude) == (IDLE, "")


def test_a_key_that_is_none_is_refused(tmp_path) -> None:
    (tmp_path / FILE).write_text("x: {paper: a, decides: b, colour: red}")
    with pytest.raises(InputError, match="colour"):
        load_artefacts(tmp_path)


def test_no_mean_error_differs_between_our_code_and_the_authors() -> None:
    rows = pd.read_csv(RESULTS / "tables/authors_code.csv")
    assert len(rows) > 20
    assert ((rows["low"] <= 0) & (rows["high"] >= 0)).all()


def test_the_papers_gains_are_those_that_welch_finds() -> None:
    assert printed_gains() == 8  # Airfoil, NO2, Echo, RCF-MNIST, Crime and DTI, and the worst domains of the last two


def test_every_difference_is_counted_once() -> None:
    rows = [one for one in published_statements() if one.ours and one.direction != IDLE and not one.last_epoch]
    _, _, *lines = count_parts()["results/README.md"]["outcomes"].splitlines()
    counted = sum(int(cell) for line in lines for cell in line.split("|")[5:-1])
    assert counted == len({one.key for one in rows}) == len(rows) > 20
