"""Anybody's sweep is averaged by the value of one option; what cannot be is one line."""

import csv
import io
import math
from pathlib import Path
from typing import Any

import pytest

from cmixup.errors import InputError
from scripts.collect import best_point, collect_sweeps, collected_page, find_runs, main, narrowed_runs, to_rows
from scripts.driver.runs import RunFolder
from scripts.records.run_tables import frame_of
from scripts.report.sweep import Sweep
from tests.scripts.sweeps import report

T2 = 12.706204736432095  # 97.5 % quantile of Student's t with 1 degree of freedom
SWEEP = [report(seed, score, b) for b, scores in {0.1: (1.0, 3.0), 10.0: (2.0, 4.0), 1.75: (0.5, 2.5)}.items()
         for seed, score in enumerate(scores)]  # fmt: skip


def collected(reports: list[Any], *options: str, **more: str) -> tuple[list[Sweep], list[str]]:
    return collect_sweeps(frame_of(reports), *options, **more)


def test_means_and_t_intervals_by_value_and_the_best() -> None:
    (group,), left_out = collected(SWEEP, "method.bandwidth")
    assert left_out == []
    assert (group.title, group.metric) == ("airfoil cmixup paper", "rmse")
    assert [p.value for p in group.points] == [0.1, 1.75, 10.0]
    assert [p.interval.mean for p in group.points] == [2.0, 1.5, 3.0]
    interval = group.points[1].interval
    assert (interval.low, interval.high) == pytest.approx((1.5 - T2, 1.5 + T2), rel=1e-9)  # std sqrt(2), error 1
    assert [p.on_val for p in group.points] == [3.0, 2.5, 4.0]
    text = collected_page([group])
    assert "| **1.75** | 2 | **1.500 ± 1.414** | — | 2.500 |" in text
    assert "| 0.1 | 2 | 2.000 ± 1.414 | +0.500 [+0.500, +0.500] | 3.000 |" in text  # both seeds differ by 0.5
    assert "Best on test: method.bandwidth=1.75. Best on validation," in text


def test_of_a_score_that_grows_the_largest_is_best_and_nan_never() -> None:
    (group,), _ = collected(SWEEP, "method.bandwidth", "r")
    assert best_point(group) == group.points[1]  # r is 1 - rmse
    broken = [report(0, math.nan, 0.1), report(0, 2.0, 0.2)]
    (group,), _ = collected(broken, "method.bandwidth")
    assert best_point(group) == group.points[1]
    assert "Best on test: method.bandwidth=0.2." in collected_page([group])
    (group,), _ = collected([report(0, math.nan, b) for b in (0.1, 0.2)], "method.bandwidth")
    assert "No value has a finite mean." in collected_page([group])


ERM = [report(seed, score, method="erm") for seed, score in enumerate((1.5, 3.0))]


def test_the_difference_from_erm_is_paired_and_of_the_same_options() -> None:
    """ERM has no bandwidth, so that it stands beside each value; of another rate it stands beside that rate alone."""
    fast = {"method.bandwidth": 10.0, "train.lr": 0.1}
    other = [report(seed, 9.0 + seed, 10.0, options=fast) for seed in (0, 1)]
    third = report(0, 9.0, 3.0, options={**fast, "method.bandwidth": 3.0})
    single = report(0, 1.0, 3.0, options={"method.bandwidth": 3.0, "train.lr": 0.5})
    (group, alone), left_out = collected([*SWEEP, *other, *ERM, third, single], "method.bandwidth")
    assert [g.title for g in (group, alone)] == ["train.lr as the preset", "train.lr=0.1"]
    assert left_out == ["train.lr=0.5: method.bandwidth has one value, 3, in 1 runs"]
    assert [p.erm for p in group.points] == [{0: 1.5, 1: 3.0}] * 3
    assert group.lines == {"erm": {0: 1.5, 1: 3.0}}
    assert (alone.lines, [p.erm for p in alone.points]) == ({}, [{}, {}])
    page = collected_page([group])
    low, high = -0.25 - T2 * 0.25, -0.25 + T2 * 0.25
    assert f"| 0.1 | 2 | 2.000 ± 1.414 | -0.250 [{low:.3f}, {high:+.3f}] | 3.000 |" in page
    assert "minus ERM" in page
    rows = list(csv.DictReader(to_rows([group]).splitlines()))
    assert [float(row["minus_erm"]) for row in rows] == [-0.25, -0.75, 0.75]


def test_erm_is_compared_with_at_the_same_value_of_an_option_that_it_has() -> None:
    rates = [report(seed, score + 0.5 * seed, method=method, options={"train.lr": lr})
             for lr, scores in {0.1: (1.0, 2.0), 0.2: (5.0, 3.0)}.items()
             for method, score in zip(("cmixup", "erm"), scores, strict=True) for seed in (0, 1)]  # fmt: skip
    (group,), _ = collected(rates, "train.lr", method="cmixup")
    assert [p.erm for p in group.points] == [{0: 2.0, 1: 2.5}, {0: 3.0, 1: 3.5}]
    assert group.lines == {}
    (group,), _ = collected([r for r in rates if r["options"] == {"train.lr": 0.1}], "method")
    assert "| cmixup | 2 | 1.250 ± 0.354 | -1.000 [-1.000, -1.000] |" in collected_page([group]).replace("*", "")


def test_runs_of_a_table_before_and_after_it_changed_are_not_compared() -> None:
    old, new = {"t.csv": "a" * 64}, {"t.csv": "b" * 64}
    runs = [
        report(s, 1.0, method=m, checksums=c) for m, c in (("cmixup", old), ("erm", old), ("erm", new)) for s in (0, 1)
    ]
    with pytest.raises(
        InputError, match=r"method has one value, cmixup, in 2 runs; data=\w{8}: method has one value, erm"
    ):
        collected([*runs[:2], *runs[4:]], "method")
    (group,), left_out = collected(runs[:4] + [{**r, "seed": r["seed"] + 2} for r in runs[4:]], "method")
    assert ([p.value for p in group.points], len(left_out)) == (["cmixup", "erm"], 1)


@pytest.mark.parametrize(
    ("reports", "option", "metric", "named"),
    [
        (SWEEP[:2], "method.bandwidth", "",
         "no sweep over method.bandwidth here; airfoil cmixup paper: method.bandwidth has one value, 0.1, in 2 runs"),
        ([*SWEEP, report(5, 1.0, method="mixup")], "method.bandwidth", "",
         "several methods, cmixup, mixup: say which with method="),
        (SWEEP, "method.bandwith", "",
         "option 'method.bandwith' is not in the configuration of figure_bandwidth/cmixup/"),
        (SWEEP, "seed", "", "scores are averaged over seeds"),
        (SWEEP, "method.bandwidth", "mse", "metric must be one of rmse, r for airfoil, got 'mse'"),
        ([*SWEEP, report(0, 9.0, 0.1)], "method.bandwidth", "", "seed 0 is there twice with the same options"),
    ],
)  # fmt: skip
def test_what_is_no_sweep_is_one_line(reports: list[Any], option: str, metric: str, named: str) -> None:
    with pytest.raises(InputError) as error:
        collected(reports, option, metric)
    assert named in str(error.value)
    assert "\n" not in str(error.value)


def put(folder: Path, made: dict[str, Any]) -> None:
    run = folder / f"{made['dataset']}-{made['config']['method']['bandwidth']}-{made['seed']}"
    run.mkdir(parents=True)
    (run / "config.yaml").write_text("")
    RunFolder(run).write({}, made, [{"epoch": k, "val_rmse": 2.0 / k} for k in (1, 2)], state={}, predictions={})
    RunFolder(run).finish()


@pytest.fixture
def runs(tmp_path: Path) -> Path:
    """The sweep as folders in two places, a run of another dataset, and one that is not finished."""
    for made in SWEEP:
        put(tmp_path / "runs" / ("one" if made["seed"] else "two"), made)
    put(tmp_path / "runs" / "one", report(0, 1.0, dataset="no2"))
    (tmp_path / "runs" / "one" / "broken").mkdir()
    (tmp_path / "runs" / "one" / "broken" / "config.yaml").write_text("")
    return tmp_path / "runs"


def test_the_command_prints_and_writes(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    folders = ",".join([str(runs / "one"), str(runs / "two"), str(runs)])  # what lies below two of them counts once
    main([folders, "over=method.bandwidth", "dataset=airfoil", f"out={out}"])
    printed = capsys.readouterr()
    assert "| **1.75** | 2 | **1.500 ± 1.414** |" in printed.out
    assert printed.err == "left out: 1 runs that are not finished\n"
    stem, out = "airfoil-cmixup-method.bandwidth", out / "collected"
    assert (out / f"{stem}.md").read_text() in printed.out
    assert (out / f"{stem}.png").read_bytes().startswith(b"\x89PNG")
    rows = list(csv.DictReader((out / f"{stem}.csv").open()))
    assert [(r["value"], r["n"], r["best"]) for r in rows] == [
        ("0.1", "2", "False"), ("1.75", "2", "True"), ("10", "2", "False"),
    ]  # fmt: skip
    assert [float(r["mean"]) for r in rows] == [2.0, 1.5, 3.0]
    assert float(rows[1]["high"]) == pytest.approx(1.5 + T2, rel=1e-9)


def test_values_stay_cells_and_text(tmp_path: Path) -> None:
    hostile = ('=cmd|"/C calc"!A0', "<img src=x onerror=alert(1)>", "a|b\nc", -0.5)
    made = [report(seed, 1.0 + seed, value) for value in hostile for seed in (0, 1)]
    groups, _ = collected(made, "method.bandwidth")
    page, values = collected_page(groups), [r["value"] for r in csv.DictReader(io.StringIO(to_rows(groups)))]
    assert "<img src=x" not in page
    assert r"a\|b c" in page
    rows = [line.replace(r"\|", "") for line in page.splitlines() if line.startswith("|")]
    assert {row.count("|") for row in rows} == {6}
    assert sorted(values) == sorted(["'" + hostile[0], hostile[1], hostile[2], "-0.5"])


def test_what_is_not_there_is_named(runs: Path) -> None:
    with pytest.raises(InputError, match=f"no finished run below {runs}/one/broken; 1 are not finished"):
        find_runs([runs / "one" / "broken"])
    with pytest.raises(InputError, match="dataset must be one of airfoil, no2 in these runs, got 'crime'"):
        narrowed_runs(find_runs([runs])[0], {"dataset": "crime"})
