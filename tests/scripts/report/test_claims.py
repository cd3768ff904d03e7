"""What decides the paper's claims in words, what three seeds would show, and every specification."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

from scripts.records.run_tables import frame_of
from scripts.report.evidence import Evidence, published_evidence, sample_of
from scripts.report.paper import statements
from scripts.report.paper.claims import Claim, Comparison, comparisons, judge, percent_gain
from scripts.report.paper.specifications import choices_of, specifications
from scripts.report.paper.verdicts import Finding
from scripts.stats.best_of import drawn_gains, gain_over_best
from scripts.stats.intervals import Difference, Interval
from tests.scripts.reports import report


def compared(*sides: int, first: str = "a") -> list[Comparison]:
    return [(first, side, Interval(0.0, 0.0, 0.0, 2)) for side in sides]


@pytest.mark.parametrize(
    ("rule", "sides", "verdict"),
    [("every", (1, 1), "holds"), ("every", (1, 0), "inconclusive"), ("every", (1, 1, -1), "fails"),
     ("every", (), "inconclusive"), ("most", (1, 1, 0), "holds"), ("most", (1, 1, 0, 0), "inconclusive"),
     ("most", (-1, -1, 1), "fails"), ("none", (1, 1), "fails"), ("none", (1, -1), "holds"),
     ("none", (0, 1), "inconclusive")],
)  # fmt: skip
def test_a_rule_judges_as_the_head_of_its_file_says(rule, sides, verdict):
    assert judge(rule, compared(*sides)) == verdict


def test_no_method_is_better_everywhere_only_where_each_is_worse_somewhere():
    assert judge("none", [*compared(1, -1), *compared(0, 0, first="c")]) == "inconclusive"
    assert judge("none", [*compared(1, -1), *compared(1, 1, first="c")]) == "fails"


def evidence(scores, *, experiment="table1", dataset="airfoil", validation=None, facts=None):
    """Records of methods whose test and validation RMSE are given by seed."""
    rows = [
        report(experiment=experiment, dataset=dataset, method=method, preset="paper", seed=seed, options={},
               scores={"test": {"rmse": value}, "val": {"rmse": (validation or scores)[method][seed]}},
               facts=facts or {}, run=f"{dataset}/{method}/seed={seed}")
        for method, values in scores.items() for seed, value in enumerate(values)
    ]  # fmt: skip
    return Evidence(frame_of(rows))


GAIN = Claim("", "", "gain", ["airfoil"], ["rmse"], experiment="table1", priors=["erm", "mixup"])


def test_the_gain_is_over_the_best_prior_by_test_or_by_validation():
    wave = np.array([0.0, 0.1, -0.1, 0.05, -0.05, 0.0])
    scores = {"cmixup": list(1.0 + wave), "erm": list(2.0 + wave), "mixup": list(4.0 + wave)}
    e = evidence(scores, validation={"cmixup": [1.0] * 6, "erm": [3.0] * 6, "mixup": [2.0] * 6})
    by_test, by_val = (percent_gain(GAIN, "paper", e, choose=choose) for choose in ("test", "val"))
    assert (by_test["priors"], by_val["priors"]) == ("airfoil: erm", "airfoil: mixup")
    assert by_test["gain"] == pytest.approx(50.0)
    assert by_val["gain"] == pytest.approx(75.0)
    assert by_test["low"] < 50.0 < by_test["high"]


def test_seeds_count_that_some_priors_lack() -> None:
    scores = {"cmixup": [1.0, 2.0, 3.0, 2.0], "erm": [2.0, 2.0, 4.0, 2.0], "mixup": [1.5, 2.5]}
    gain = percent_gain(GAIN, "paper", evidence(scores))["gain"]
    assert gain == pytest.approx(100 * 0.5 / 2.5)  # 0.5 worse over the two seeds of both, like ERM's over all


@pytest.mark.parametrize(("better", "noise"), [(0.0, 1.0), (0.06, 1.0), (0.01, 8.0)])
def test_the_interval_holds_the_gain_whether_priors_are_equal_or_one_is_best(better: float, noise: float) -> None:
    """The best may vary most. Either end may miss it with a chance of 0.025; percentiles miss equal priors mostly."""
    rng, missed = np.random.default_rng(0), np.zeros((150, 2))
    for trial in missed:
        parts = []
        for _ in range(2):
            scores = 1 + 0.05 * rng.normal(size=(30, 6))
            scores[:, 3] += (noise - 1) * (scores[:, 3] - 1) - better
            parts.append(drawn_gains(scores, None, rng, draws=200)[1:])
        truth = -100 * better / (1 - better)
        _, low, high = gain_over_best(parts)
        trial[:] = low > truth, high < truth
    assert missed.mean(axis=0).max() <= 0.06


def test_a_run_that_equals_erm_is_in_no_comparison() -> None:
    claim = Claim("", "", "every", ["airfoil"], ["rmse"], pairs=[["cmixup", "erm"]], experiment="table1")
    scores = {"cmixup": [1.0, 1.1, 1.2], "erm": [2.0, 2.2, 2.1]}
    for share, sides in ((0.5, [1]), (0.999, [])):
        e = evidence(scores, facts={"self_probability": share})
        assert [side for _, side, _ in comparisons(claim, "paper", e)] == sides


def finding(first, second, paper=-0.5):
    samples = tuple(sample_of(dict(enumerate(values)), "seeds of airfoil") for values in (first, second))
    return Finding("", "", "Airfoil", n=len(first), metric="rmse", samples=samples, paper=Difference(paper))


def test_shares_of_triples_are_those_of_all_triples():
    rng = np.random.default_rng(1)
    one, other = rng.normal(size=(2, 12))
    shares = statements.triple_shares(finding(one, other))
    gaps = [np.mean([other[k] - one[k] for k in triple]) for triple in itertools.combinations(range(12), 3)]
    firsts, seconds = ([v[list(t)].mean() for t in itertools.combinations(range(12), 3)] for v in (one, other))
    unpaired = np.subtract.outer(seconds, firsts)
    for name, every in (("paired", np.array(gaps)), ("unpaired", unpaired)):
        assert shares[f"favour_{name}"] == pytest.approx((every > 0).mean(), abs=0.005)
        assert shares[f"as_large_{name}"] == pytest.approx((every >= 0.5).mean(), abs=0.005)
    assert statements.triple_shares(replace(finding(one, other), n=9)) == {}


def test_a_specification_has_an_erm_with_all_else_equal():
    every = specifications("airfoil")
    assert len(every) > 30
    assert len({(one.method, one.preset, one.layer, tuple(one.options.items())) for one in every}) == len(every)
    e = published_evidence()
    (scaled,) = (one for one in every if one.options == {"train.label_scaling": "standard"} and one.preset == "paper")
    assert scaled.difference == e.gain(
        "ladder", "airfoil", "paper", "cmixup", options={"train.label_scaling": "standard"}
    )
    choices = choices_of(every)
    assert sum(choices["labels scaled"]) == sum("train.label_scaling" in one.options for one in every)
    assert all(0 < sum(held) < len(every) for held in choices.values())
