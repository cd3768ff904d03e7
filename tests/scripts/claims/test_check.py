"""Sentences over records whose statistics are computed by hand."""

import math
import re
import shutil
from pathlib import Path

import pandas as pd
import pytest
import yaml

from cmixup.errors import InputError
from scripts import render as command
from scripts.claims.check import Verdict, check_all, check_claim, count_intervals, load_claims
from scripts.claims.evidence import Evidence, sample_difference, sample_of
from scripts.claims.paper_verdict import authors_table, means_agree
from scripts.claims.prose import claim_sentence, splice_page
from scripts.claims.statistic import Number, evaluate_statistic, rule_holds
from scripts.records.experiment import RESULTS, load_experiment
from scripts.records.published import published_records
from scripts.records.stats import Summary

QUERY = {"experiment": "e", "dataset": "airfoil", "preset": "paper", "metric": "rmse"}
SCORES = {"erm": (1.0, 2.0, 3.0), "mixup": (2.0, 4.0, 3.0), "cmixup": (1.0, 1.5, 2.5)}


def frame(scores: dict[str, tuple[float, ...]] = SCORES, **changes: object) -> pd.DataFrame:
    base = {"experiment": "e", "dataset": "airfoil", "preset": "paper", "options": {}, "split": "test",
            "metric": "rmse", "bandwidth": None, "model": "fcn3", "layer": ""} | changes  # fmt: skip
    rows = [{**base, "method": m, "seed": i, "value": v} for m, values in scores.items() for i, v in enumerate(values)]
    return pd.DataFrame(rows, dtype=object)


def take(node: dict, records: pd.DataFrame | None = None, results: Path = RESULTS, **query: object) -> Number:
    return evaluate_statistic(node, QUERY | query, Evidence(frame() if records is None else records, results), {})


def test_a_seed_that_comes_twice_is_refused() -> None:
    with pytest.raises(InputError, match=r"records hold seed 0 twice for .*'cmixup'.*: runs that differ"):
        Evidence(pd.concat([frame(), frame({"cmixup": (9.0,)})]))


def test_mean_and_std_are_over_seeds() -> None:
    found = take({"mean": "erm"})
    assert (found.mean, found.std, found.n) == (2.0, 1.0, 3)
    assert take({"std": "mixup"}).mean == 1.0
    assert f"{found:.2f}" == "2.00"


def test_a_difference_is_paired_by_seed() -> None:
    # Differences 0, -0.5, -0.5: mean -1/3, standard error 0.2887 / sqrt(3) = 1/6, t of 2 degrees of freedom 4.3027.
    found = take({"difference": ["cmixup", "erm"]})
    assert (found.mean, found.n) == (pytest.approx(-1 / 3), 3)
    assert (found.low, found.high) == (pytest.approx(-1 / 3 - 4.30265 / 6, abs=1e-4), pytest.approx(0.38378, abs=1e-4))
    assert f"{found:.2f}" == "-0.33 [-1.05, +0.38]"


def test_a_p_value_is_that_of_the_paired_t_test_times_how_many_there_are() -> None:
    # t = -2 of 2 degrees of freedom: p = 1 - 2 / sqrt(6), as its distribution has a closed form.
    found = take({"p": ["cmixup", "erm"]})
    assert (found.mean, found.n) == (pytest.approx(1 - 2 / math.sqrt(6)), 3)
    assert take({"p": ["cmixup", "erm"], "tests": 3}).mean == pytest.approx(3 - math.sqrt(6))
    assert take({"p": ["cmixup", "erm"], "tests": 48}).mean == 1
    with pytest.raises(InputError, match="p value must be of two sides with the same seeds"):
        take({"p": ["cmixup", {"from": "paper", "experiment": "table1", "method": "erm"}]})


def test_an_interval_of_one_sample_is_over_its_units_or_its_clusters(tmp_path: Path) -> None:
    found = take({"interval": "erm"})  # 1, 2, 3: standard error 1 / sqrt(3), t of 2 degrees of freedom 4.3027
    assert (found.mean, found.n) == (2.0, 3)
    assert (found.low, found.high) == (pytest.approx(2 - 4.30265 / 3**0.5, abs=1e-4), pytest.approx(4.48414, abs=1e-4))
    (tmp_path / "fits.csv").write_text("table,behind\na,1\na,1\nb,3\nb,3\n")
    own = {"from": "fits.csv", "column": "behind", "cluster": "table"}
    found = evaluate_statistic({"interval": "each"}, own, Evidence(frame(), tmp_path), {})
    assert (found.mean, found.n, found.high) == (2.0, 2, pytest.approx(2 + 12.7062, abs=1e-3))  # means 1 and 3
    with pytest.raises(InputError, match="two values or more for an interval"):
        take({"interval": "erm"}, frame({"erm": (3.0,)}))


def test_the_bandwidths_that_sentences_correct_for_are_as_many_as_the_figure_has() -> None:
    text, values = (RESULTS / "claims.yaml").read_text(), load_experiment("figure_bandwidth").sweep["values"]
    four = sum(len(values[dataset]) for dataset in ("airfoil", "no2", "crime", "skillcraft"))
    assert four == 48
    assert {int(n) for n in re.findall(r"tests: (\d+)", text)} == {four}


def test_a_lookup_that_finds_several_cells_refuses_and_picks_none() -> None:
    others = frame(model="resnet18"), frame(layer="hidden", experiment="f"), frame(layer="input", experiment="f")
    records = pd.concat([frame(), *others])
    for query, missing in (({"model": "fcn3"}, {}), ({"layer": "hidden"}, {"experiment": "f"})):
        with pytest.raises(InputError, match="must say model and layer"):
            take({"mean": "erm"}, records, **missing)
        assert take({"mean": "erm"}, records, **missing, **query).mean == 2.0
    with pytest.raises(InputError, match="seed 0 twice"):
        Evidence(pd.concat([frame(), frame()]))


def test_the_authors_runs_of_several_layers_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "paper").mkdir()
    head, row = "dataset,method,layer,bandwidth,seed,test_rmse", "airfoil,cmixup,{},1.75,{},2.5"
    for layers, seeds, said in ((("hidden", "input"), (0, 1), "at one layer"), (("input",) * 2, (0, 0), "seed twice")):
        lines = (row.format(*each) for each in zip(layers, seeds, strict=True))
        (tmp_path / "paper/original_rerun.csv").write_text("\n".join([head, *lines]) + "\n")
        with pytest.raises(InputError, match=said):
            Evidence(frame(), tmp_path).sample({"from": "authors", **QUERY, "method": "cmixup"})


def test_a_difference_of_single_seeds_has_no_interval() -> None:
    found = take({"difference": ["cmixup", "erm"]}, frame({"cmixup": (1.0,), "erm": (3.0,)}))
    assert (found.mean, found.n, math.isnan(found.low)) == (-2.0, 1, True)


def test_only_the_same_units_are_paired() -> None:
    a, b = {0: 1.0, 1: 2.0, 2: 3.0}, {0: 1.1, 1: 2.1, 2: 3.1}
    pairs, apart = (
        sample_difference(sample_of(a, "s"), sample_of(b, "s")),
        sample_difference(sample_of(a, "s"), sample_of(b, "t")),
    )
    assert pairs is not None
    assert apart is not None
    assert (pairs.high, apart.high) == (pytest.approx(-0.1), pytest.approx(2.167, abs=1e-3))


def test_clusters_widen_an_interval() -> None:
    values = dict(enumerate((1.0, 1.0, 3.0, 3.0)))
    groups = dict(enumerate("aabb"))
    zeros = dict.fromkeys(values, 0.0)
    alone = sample_difference(sample_of(values, "r"), sample_of(zeros, "r"))
    wide = sample_difference(sample_of(values, "r", groups), sample_of(zeros, "r", groups))
    assert alone is not None
    assert wide is not None
    assert wide.high - wide.mean == pytest.approx(12.7062, abs=1e-3)  # t of one degree of freedom, standard error 1
    assert alone.high - alone.mean < 2


def test_ranks_go_by_means_and_ties_share() -> None:
    among = list(SCORES)
    assert [take({"rank": m, "among": among}).mean for m in ("cmixup", "erm", "mixup")] == [1, 2, 3]
    tied = frame({"erm": (1.0,), "mixup": (1.0,), "cmixup": (2.0,)})
    assert take({"rank": "erm", "among": among}, tied).mean == 1.5
    assert take({"rank": "erm", "among": among}, frame(metric="r"), metric="r").mean == 2
    assert take({"rank": "mixup", "among": among}, frame(metric="r"), metric="r").mean == 1  # a high R is good
    both = pd.concat([frame(), frame({"erm": (1.0,), "mixup": (2.0,), "cmixup": (3.0,)}, dataset="no2")])
    assert take({"rank": "cmixup", "among": among, "dataset": ["airfoil", "no2"]}, both).mean == 2.0  # (1 + 3) / 2


def test_spread_and_count() -> None:
    assert take({"spread": ["erm", "mixup", "cmixup"]}).mean == pytest.approx(3.0 - 5 / 3)
    facts = pd.concat([frame({"erm": (0.1, 0.6, 0.2)}, split="train", metric="share_a"),
                       frame({"erm": (0.9, 0.3, 0.2)}, split="train", metric="share_b")])  # fmt: skip
    found = take({"count": "erm", "above": 0.5, "split": "train", "metric": "share_*"}, facts)
    assert (found.mean, found.n) == (2, 3)
    assert take({"count": "erm", "above": 0.5, "split": "train", "metric": "share_a"}, facts).mean == 1


def test_derived_statistics_are_of_numbers_named_before() -> None:
    evidence = Evidence(frame())
    before = {"a": Number(6.0, low=4.0, high=8.0), "b": Number(3.0, low=2.0, high=4.0)}
    found = {n: evaluate_statistic({n: ["a", "b"]}, QUERY, evidence, before).mean for n in ("minus", "ratio", "wider")}
    assert found == {"minus": 3.0, "ratio": 2.0, "wider": 2.0}
    assert evaluate_statistic({"ratio": ["a", 60]}, QUERY, evidence, before).mean == 0.1


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("d below 0", True), ("d below -1.5", False), ("d above 0", False), ("d contains -1", True),
        ("w above 0", False), ("w below 2", False), ("w above -1", True), ("w contains 0", True),
        ("d contains 0", False), ("d not contains 0", True), ("d < 0", True), ("a < b", True), ("a > b", False),
        ("a >= 1", True), ("a <= 0.9", False), ("a == b within 0.5", True), ("a == b within 0.1", False),
        ("a == 1", True), ("a agrees b", True), ("a not agrees c", True), ("nan < 0", False),
        ("nan not contains 0", False), ("a not < nan", False),
    ],
)  # fmt: skip
def test_rules(rule: str, expected: bool) -> None:
    numbers = {"d": Number(-1.0, low=-2.0, high=-0.5), "a": Number(1.0, 0.2, 4), "b": Number(1.3, 0.3, 3),
               "c": Number(1.5, 0.3, 3), "w": Number(1.0, low=-0.5, high=2.5), "nan": Number(math.nan)}  # fmt: skip
    assert rule_holds(rule, numbers) is expected


@pytest.mark.parametrize("rule", ["a", "a is 3", "a < nothing", "nothing < 3", "a below 0"])
def test_rules_that_are_none(rule: str) -> None:
    with pytest.raises(InputError, match="rule"):
        rule_holds(rule, {"a": Number(1.0)})


def test_agreement_is_two_standard_errors() -> None:
    # 2 sqrt(0.2^2 / 4 + 0.3^2 / 3) = 0.4.
    assert means_agree(Summary(1.0, 0.2, 4), Summary(1.39, 0.3, 3))
    assert not means_agree(Summary(1.0, 0.2, 4), Summary(1.41, 0.3, 3))


def test_sources_beside_the_records(tmp_path: Path) -> None:
    (tmp_path / "paper").mkdir()
    shutil.copy(RESULTS / "paper" / "results.csv", tmp_path / "paper")
    lines = ["dataset,method,layer,bandwidth,seed,test_rmse,test_mape_percent,test_r,worst_rmse,seconds_one_core",
             "airfoil,erm,,,0,1.5,,,,1", "airfoil,erm,,,1,2.5,,,,1", "airfoil,erm,,,2,3.5,,,,1",
             "airfoil,cmixup,hidden,1.75,0,9,,,,1", "airfoil,cmixup,hidden,3,0,7,,,,1"]  # fmt: skip
    (tmp_path / "paper" / "original_rerun.csv").write_text("\n".join(lines))
    (tmp_path / "table.csv").write_text("seed,kind,x\n0,a,1\n1,a,3\n0,b,5\n")
    (tmp_path / "curves" / "airfoil").mkdir(parents=True)
    runs = [f"p,a=1,{seed},1,9\np,a=1,{seed},2,3\np,a=1,{seed},3,{last}\n" for seed, last in ((0, 4.0), (1, 6.0))]
    twice = "q,a=1,0,1,5\nq,a=2,0,1,5\n"
    (tmp_path / "curves/airfoil/erm.csv").write_text("".join(["preset,options,seed,epoch,loss\n", *runs, twice]))

    def get(node: dict) -> Number:
        return take(node, results=tmp_path, experiment="table1")

    paper = get({"mean": {"method": "erm", "from": "paper"}})
    assert (paper.mean, paper.std, paper.n) == (2.901, 0.067, 3)
    assert get({"mean": {"method": "erm", "from": "authors"}}).mean == 2.5
    assert get({"mean": {"method": "cmixup", "from": "authors", "bandwidth": 3}}).mean == 7.0
    with pytest.raises(InputError, match="must say the bandwidth"):
        get({"mean": {"method": "cmixup", "from": "authors"}})
    # Airfoil's splits are those of the authors' seeds, so the difference is paired: 0.5 on every seed.
    ours = {"method": "erm", "experiment": "e"}
    found = get({"difference": [{"method": "erm", "from": "authors"}, ours]})
    assert (found.mean, found.low) == (0.5, pytest.approx(0.5))
    elsewhere = Evidence(frame(dataset="no2"), tmp_path)
    (tmp_path / "paper" / "original_rerun.csv").write_text("\n".join(lines).replace("airfoil", "no2"))
    other = evaluate_statistic({"difference": [{"method": "erm", "from": "authors"}, {"method": "erm"}]},
                     QUERY | {"dataset": "no2"}, elsewhere, {})  # fmt: skip
    assert (other.mean, other.low) == (0.5, pytest.approx(0.5 - 2.7764 * math.sqrt(2 / 3), abs=1e-3))
    only = Evidence(frame(), tmp_path)
    assert evaluate_statistic({"mean": {"from": "table.csv", "column": "x", "kind": "a"}}, {}, only, {}).mean == 2.0
    with pytest.raises(InputError, match="no column y"):
        evaluate_statistic({"mean": {"from": "table.csv", "column": "y"}}, {}, only, {})
    curve = {"from": "curves/{dataset}/erm.csv", "column": "loss", "dataset": "airfoil", "preset": "p"}
    means = [
        evaluate_statistic({"mean": {**curve, **at}}, {}, only, {}).mean
        for at in ({"take": "min"}, {"take": "last"}, {"epoch": 1})
    ]
    assert means == [3.0, 5.0, 9.0]
    for preset, message in (("q", "several runs of a seed"), ("r", "there is no run of")):
        with pytest.raises(InputError, match=message):
            evaluate_statistic({"mean": {**curve, "preset": preset, "take": "last"}}, {}, only, {})


def write(folder: Path, entries: dict, **others: object) -> Path:
    (folder / "claims.yaml").write_text(
        yaml.safe_dump({"lists": {"both": ["mixup", "cmixup"]}, "claims": entries, **others})
    )
    return folder


def verdict(folder: Path, entry: dict, records: pd.DataFrame | None = None) -> Verdict:
    write(folder, {"one": entry})
    return check_all(Evidence(frame() if records is None else records, folder))[0]


BETTER = {"text": "mixup minus ERM is {d:.3f}, n = {d.n}.", "of": QUERY, "d": {"difference": ["mixup", "erm"]},
          "holds": "d > 0"}  # fmt: skip


def test_a_claim_holds_and_prints_its_numbers(tmp_path: Path) -> None:
    found = verdict(tmp_path, BETTER)
    assert found.holds
    assert found.text == "mixup minus ERM is +1.000 [-1.484, +3.484], n = 3."
    assert found.lines()[0] == "HOLDS one"
    assert count_intervals([found]) == 1


def test_a_claim_reversed_fails_and_leaves_the_page(tmp_path: Path) -> None:
    found = verdict(tmp_path, {**BETTER, "holds": "d < 0"})
    assert not found.holds
    assert "FAILS one" in found.lines()
    page = splice_page('Here: <span id="one">what it said</span> and more.\n', {"one": claim_sentence(found)})
    assert "what it said" not in page
    assert "[one: the records no longer support this sentence" in page


def test_a_record_changed_by_a_thousandth_changes_the_page(tmp_path: Path) -> None:
    better = {**BETTER, "text": "{d:.4f}"}
    before = splice_page('<span id="one"></span>\n', {"one": claim_sentence(verdict(tmp_path, better))})
    changed = frame({**SCORES, "mixup": (2.001, 4.0, 3.0)})
    assert splice_page(before, {"one": claim_sentence(verdict(tmp_path, better, changed))}) != before
    assert splice_page(before, {"one": claim_sentence(verdict(tmp_path, better))}) == before


def test_the_command_prints_all_and_its_status_says_if_one_fails(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(command, "RESULTS", tmp_path)
    columns = {"layer": "", "model": "", "alpha": None, "run": ""}
    monkeypatch.setattr(command, "filled_records", lambda: frame().assign(**columns))
    write(tmp_path, {"good": BETTER})
    command.main(["claims"])
    assert "HOLDS good" in capsys.readouterr().out
    write(tmp_path, {"good": BETTER, "bad": {**BETTER, "holds": "d below 0"}})
    with pytest.raises(SystemExit) as stopped:
        command.main(["claims", "failing=1"])
    printed = capsys.readouterr().out
    assert stopped.value.code == 1
    assert "FAILS bad" in printed
    assert "no: d = +1.0000 [-1.4841, +3.4841]" in printed
    assert "HOLDS good" not in printed
    assert "1 of 2 claims hold" in printed


def test_for_each_counts_and_lists(tmp_path: Path) -> None:
    entry = {"text": "{d.held} of {d.compared}: {d.where}; {d:.1f}; {d.least:.1f} to {d.most:.1f}", "of": QUERY,
             "each": {"method": "$both"}, "d": {"mean": "each"}, "holds": "d > 2", "times": "== 1"}  # fmt: skip
    found = verdict(tmp_path, entry)
    assert (found.holds, found.text) == (True, "1 of 2: mixup; mixup 3.0; 3.0 to 3.0")
    assert not verdict(tmp_path, {**entry, "times": ">= 2"}).holds
    assert not verdict(tmp_path, {k: v for k, v in entry.items() if k != "times"}).holds
    assert verdict(tmp_path, {**entry, "holds": "d > 9", "times": "any", "text": "{d.where}"}).text == "none"


def test_names_are_put_in_and_several_products_are_joined(tmp_path: Path) -> None:
    entry = {"text": "{d:.2f}", "of": QUERY, "each": [{"$pair": [["mixup", "erm"]]}, {"$pair": [["erm", "cmixup"]]}],
             "d": {"difference": "$pair"}, "holds": "d > 0"}  # fmt: skip
    found = verdict(tmp_path, entry)
    assert found.holds
    assert found.text.startswith("mixup and ERM +1.00 [")
    assert " and ERM and C-Mixup +0.33 [" in found.text


def test_what_cannot_be_checked_does_not_hold(tmp_path: Path) -> None:
    absent = verdict(tmp_path, {**BETTER, "d": {"difference": ["mixup", "fish"]}})
    assert not absent.holds
    assert "no records of" in absent.error
    diverged = frame({**SCORES, "mixup": (None, 4.0, 3.0)})  # type: ignore[dict-item]
    assert "is not finite" in verdict(tmp_path, BETTER, diverged).error


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"of": QUERY}, "must have a text"),
        ({**BETTER, "text": "ERM has 2.5"}, "numbers come from statistics"),
        ({**BETTER, "text": "95 % of them"}, "numbers come from statistics"),
        ({**BETTER, "e": "erm"}, "must be a mapping"),
        ({**BETTER, "checks": []}, "must stand in one of them"),
    ],
)
def test_entries_that_are_refused(tmp_path: Path, entry: dict, message: str) -> None:
    with pytest.raises(InputError, match=message):
        load_claims(write(tmp_path, {"one": entry}) / "claims.yaml")


def test_unknown_statistics_and_queries_are_errors(tmp_path: Path) -> None:
    assert "must name one statistic" in verdict(tmp_path, {**BETTER, "d": {"median": "erm"}}).error
    assert "must not say datset" in verdict(tmp_path, {**BETTER, "of": {**QUERY, "datset": "x"}}).error
    assert "must say experiment" in verdict(tmp_path, {**BETTER, "of": {"method": "erm", "metric": "rmse"}}).error


def test_a_page_keeps_what_is_written_by_hand() -> None:
    page = (
        '# Title\n\nBy hand,\nin two lines.\n\n```bash\n- code\n```\n\n- An item <span id="one">old\nwords</span> and '
        "its end.\n- Another\n  item.\n\n<!-- t:begin (python -m scripts.render) -->\n| a | b |\n<!-- t:end -->\n"
    )
    parts = {"one": "new " + "words " * 30 + "end", "t": "| c |"}
    found = splice_page(page, parts)
    assert [line for line in found.splitlines() if len(line) > 120] == []
    head, tail = page.split("- An item")
    assert found.startswith(head + '- An item <span id="one">new words')
    assert found.endswith(tail.partition("its end.")[2].replace("| a | b |", "| c |"))
    assert splice_page(found, parts) == found
    for wrong in ({"one": ""}, {"t": ""}, {**parts, "u": ""}):
        with pytest.raises(InputError, match="every part a place: not so"):
            splice_page(page, wrong)


def test_the_committed_claims_fail_when_a_cell_changes() -> None:
    """Airfoil's C-Mixup made as good as the paper's: the sentence on its lead must fall."""
    claim = next(c for c in load_claims(RESULTS / "claims.yaml") if c.name == "airfoil_cmixup")
    records = published_records()
    records = records[(records["experiment"] == "table1") & (records["dataset"] == "airfoil")]
    assert check_claim(claim, Evidence(records)).holds
    mine = (records["method"] == "cmixup") & (records["metric"] == "rmse")
    lower = records.assign(value=records["value"].where(~mine, "1.0"))
    found = check_claim(claim, Evidence(lower))
    assert not found.holds
    assert not found.error


def test_ours_beside_the_authors_code() -> None:
    experiment = load_experiment("table3")
    evidence = Evidence(pd.DataFrame([], columns=frame().columns))
    theirs = evidence.sample({"from": "authors", "dataset": "crime", "method": "erm", "metric": "rmse"}).values
    shifted = tuple(theirs[s] + 1 for s in range(10))
    records = frame({"erm": shifted}, experiment="table3", dataset="crime", preset="released")
    text = authors_table(experiment, ["crime"], Evidence(records))
    assert "So it does in 1 of 1 comparisons." in text
    assert "| **+1.000 [+1.000, +1.000]** | unexplained |" in text
