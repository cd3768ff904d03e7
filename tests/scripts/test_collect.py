"""Anybody's sweep is averaged by the value of one option; what cannot be is one line."""

import csv
import math
from pathlib import Path
from typing import Any

import pytest

from cmixup.errors import InputError
from scripts.collect import best_on_val, collect_sweeps, collected_page, main, narrowed_runs, to_rows
from scripts.driver.runs import RunFolder
from scripts.records.run_tables import frame_of
from scripts.report.sweep import Sweep
from tests.scripts.sweeps import report

T2 = 12.706204736432095  # 97.5 % quantile of Student's t with 1 degree of freedom
SWEEP = [report(seed, score, b) for b, scores in {0.1: (1.0, 3.0), 10.0: (2.0, 4.0), 1.75: (0.5, 2.5)}.items()
         for seed, score in enumerate(scores)]  # fmt: skip


def collected(reports: list[Any], *options: str, **more: str) -> list[Sweep]:
    return collect_sweeps(frame_of(reports), *options, **more)


def test_means_and_t_intervals_by_value_and_the_best() -> None:
    (group,) = collected(SWEEP, "method.bandwidth")
    assert (group.title, group.metric) == ("airfoil cmixup paper", "rmse")
    assert [p.value for p in group.points] == [0.1, 1.75, 10.0]
    assert [p.interval.mean for p in group.points] == [2.0, 1.5, 3.0]
    interval = group.points[1].interval
    assert (interval.low, interval.high) == pytest.approx((1.5 - T2, 1.5 + T2), rel=1e-9)  # std sqrt(2), error 1
    assert [p.on_val for p in group.points] == [3.0, 2.5, 4.0]
    text = collected_page([group])
    assert "| **1.75** | 2 | **1.500 ± 1.414** | — | 2.500 |" in text
    assert "| 0.1 | 2 | 2.000 ± 1.414 | — | 3.000 |" in text


def test_of_a_score_that_grows_the_largest_is_best_and_nan_never() -> None:
    made = [report(0, rmse, b, scores={"val": {"r": r}, "test": {"r": r}})
            for b, rmse, r in ((0.1, 1.0, math.inf), (0.2, 1.0, 0.5), (0.3, 1.0, 0.7))]  # fmt: skip
    (group,) = collected(made, "method.bandwidth", "r")
    assert best_on_val(group) == group.points[2]
    (group,) = collected([report(0, math.inf, b) for b in (0.1, 0.2)], "method.bandwidth")
    assert best_on_val(group) is None
    assert "**" not in collected_page([group])


ERM = [report(seed, score, method="erm") for seed, score in enumerate((1.5, 3.0))]


def test_the_difference_from_erm_is_paired_and_of_the_same_options() -> None:
    """ERM has no bandwidth, so that it stands beside each value; of another rate it stands beside that rate alone."""
    fast = {"method.bandwidth": 10.0, "train.lr": 0.1}
    other = [report(seed, 9.0 + seed, 10.0, options=fast) for seed in (0, 1)]
    third = report(0, 9.0, 3.0, options={**fast, "method.bandwidth": 3.0})
    single = report(0, 1.0, 3.0, options={"method.bandwidth": 3.0, "train.lr": 0.5})
    group, alone, one = collected([*SWEEP, *other, *ERM, third, single], "method.bandwidth")
    assert [g.title for g in (group, alone, one)] == ["train.lr as the preset", "train.lr=0.1", "train.lr=0.5"]
    assert [p.erm for p in group.points] == [{0: 1.5, 1: 3.0}] * 3
    assert group.lines == {"erm": {0: 1.5, 1: 3.0}}
    assert (alone.lines, [p.erm for p in alone.points]) == ({}, [{}, {}])
    page = collected_page([group])
    low, high = -0.25 - T2 * 0.25, -0.25 + T2 * 0.25
    assert f"| 0.1 | 2 | 2.000 ± 1.414 | -0.250 [{low:.3f}, {high:+.3f}] | 3.000 |" in page
    rows = list(csv.DictReader(to_rows([group]).splitlines()))
    assert [float(row["minus_erm"]) for row in rows] == [-0.25, -0.75, 0.75]


def test_erm_is_compared_with_at_the_same_value_of_an_option_that_it_has() -> None:
    rates = [report(seed, score + 0.5 * seed, method=method, options={"train.lr": lr})
             for lr, scores in {0.1: (1.0, 2.0), 0.2: (5.0, 3.0)}.items()
             for method, score in zip(("cmixup", "erm"), scores, strict=True) for seed in (0, 1)]  # fmt: skip
    (group,) = collected(rates, "train.lr", method="cmixup")
    assert [p.erm for p in group.points] == [{0: 2.0, 1: 2.5}, {0: 3.0, 1: 3.5}]
    assert group.lines == {}
    (group,) = collected([r for r in rates if r["options"] == {"train.lr": 0.1}], "method")
    assert "| cmixup | 2 | 1.250 ± 0.354 | -1.000 [-1.000, -1.000] |" in collected_page([group]).replace("*", "")


@pytest.mark.parametrize(
    ("reports", "option", "metric", "named"),
    [
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


def test_the_command_prints_and_writes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for made in [*SWEEP, report(0, 1.0, "a|b", dataset="no2")]:
        put(tmp_path / "runs", made)
    (tmp_path / "runs" / "broken").mkdir()
    (tmp_path / "runs" / "broken" / "config.yaml").write_text("")
    main([str(tmp_path / "runs"), "over=method.bandwidth", "dataset=airfoil", f"out={tmp_path}"])
    printed = capsys.readouterr()
    assert "| **1.75** | 2 | **1.500 ± 1.414** |" in printed.out
    stem, out = "airfoil-method.bandwidth", tmp_path / "collected"
    assert (out / f"{stem}.md").read_text() in printed.out
    assert (out / f"{stem}.png").read_bytes().startswith(b"\x89PNG")
    rows = list(csv.DictReader((out / f"{stem}.csv").open()))
    assert [(r["value"], r["n"]) for r in rows] == [("0.1", "2"), ("1.75", "2"), ("10", "2")]
    assert [float(r["mean"]) for r in rows] == [2.0, 1.5, 3.0]
    assert float(rows[1]["high"]) == pytest.approx(1.5 + T2, rel=1e-9)
    main(["over=method.bandwidth", "dataset=no2", f"out={tmp_path}"])
    assert r"| **a\|b** | 1 |" in capsys.readouterr().out


def test_what_is_not_there_is_named() -> None:
    with pytest.raises(InputError, match="dataset must be one of airfoil, got 'crime'"):
        narrowed_runs(frame_of(SWEEP), "dataset", "crime")
