"""Numbers come from the right rows."""

import math
import shutil
from pathlib import Path

import pandas as pd
import pytest

from cmixup.errors import InputError
from scripts.records.experiment import RESULTS
from scripts.records.run_tables import frame_of
from scripts.report.evidence import Evidence, Unsupported, minus, sample_of
from scripts.report.paper import findings
from scripts.stats.intervals import Interval
from tests.scripts.reports import report

AUTHORS = ("dataset,method,layer,bandwidth,seed,test_rmse,test_mape_percent,test_r,worst_rmse,seconds_one_core,change",
           "airfoil,erm,,,0,1.5,,,,1,", "airfoil,erm,,,1,2.5,,,,1,", "airfoil,erm,,,2,3.5,,,,1,",
           "airfoil,cmixup,hidden,1.75,0,9,,,,1,", "airfoil,cmixup,hidden,3,0,7,,,,1,",
           "airfoil,erm,,,0,0.5,,,,1,need_shuffle=True")  # fmt: skip


def frame(values: tuple[float, ...] = (1.0, 2.0, 3.0), metric: str = "rmse", **changes: object) -> pd.DataFrame:
    base = {"method": "erm", "options": {}, "layer": "", **changes}
    return frame_of(report(**{"seed": seed, "scores": {"test": {metric: value}}, "run": str(seed), **base})
                    for seed, value in enumerate(values))  # fmt: skip


def test_a_cell_is_selected_by_all_of_its_keys() -> None:
    options = {"train.lr": 0.1, "method.alpha": 2.0}
    e = Evidence(pd.concat([frame(), frame((9.0,), options=options), frame((8.0,), metric="mape")]))
    assert e.runs("table1", "airfoil", "paper", "erm").values == {0: 1.0, 1: 2.0, 2: 3.0}
    assert e.runs("table1", "airfoil", "paper", "erm", dict(reversed(options.items()))).mean == 9.0
    assert e.sample({"experiment": "table1", "dataset": "airfoil", "preset": "paper", "method": "erm",
                     "metric": "mape"}).mean == 8.0  # fmt: skip
    with pytest.raises(Unsupported, match="no records of table1 airfoil paper cmixup"):
        e.runs("table1", "airfoil", "paper", "cmixup")


def test_runs_of_several_models_with_one_seed_twice_or_not_finite_are_refused() -> None:
    for second, message in ((frame(model="resnet18"), "2 records of"), (frame(), "seed 0 is there twice"),
                            (frame((math.nan,), seed=9), "9 is not finite")):  # fmt: skip
        with pytest.raises(InputError, match=message):
            Evidence(pd.concat([frame(), second])).runs("table1", "airfoil", "paper", "erm")


def test_sources_beside_the_records(tmp_path: Path) -> None:
    (tmp_path / "paper").mkdir()
    shutil.copy(RESULTS / "paper" / "results.csv", tmp_path / "paper")
    (tmp_path / "paper" / "original_rerun.csv").write_text("\n".join(AUTHORS))
    (tmp_path / "table.csv").write_text("seed,kind,x,y\n0,a,1,2\n1,a,3,4\n0,b,5,6\n")
    e = Evidence(frame(), tmp_path)
    paper = e.paper("table1", "airfoil", "erm").summary
    assert (paper.mean, paper.std, paper.n) == (2.901, 0.067, 3)
    assert e.authors("airfoil", "cmixup", bandwidth=3).mean == 7.0
    assert (e.authors("airfoil", "erm").mean, e.authors("airfoil", "erm", change="need_shuffle=True").mean) == (
        2.5,
        0.5,
    )
    with pytest.raises(InputError, match="name the bandwidth"):
        e.authors("airfoil", "cmixup")
    # Airfoil's splits are those of the authors' seeds, so the difference is paired: 0.5 on every seed.
    difference = minus(e.authors("airfoil", "erm"), e.runs("table1", "airfoil", "paper", "erm"))
    assert (difference.mean, difference.low) == pytest.approx((0.5, 0.5))
    assert e.rows("table.csv", "x", kind="a").values == {0: 1.0, 1: 3.0}
    assert minus(e.rows("table.csv", "y"), e.rows("table.csv", "x")).n == 3  # paired by the row
    with pytest.raises(Unsupported, match=r"table.csv has no x of kind=c"):
        e.rows("table.csv", "x", kind="c")


def test_only_the_same_units_are_paired_and_clusters_widen_an_interval() -> None:
    a, b = {0: 1.0, 1: 2.0, 2: 3.0}, {0: 1.1, 1: 2.1, 2: 3.1}
    assert minus(sample_of(a, "s"), sample_of(b, "s")).high == pytest.approx(-0.1)
    assert minus(sample_of(a, "s"), sample_of(b, "t")).high == pytest.approx(2.167, abs=1e-3)
    with pytest.raises(Unsupported, match="fewer than two values are shared"):
        minus(sample_of({0: 1.0}, "s"), sample_of(b, "s"))
    values, zeros = dict(enumerate((1.0, 1.0, 3.0, 3.0))), dict.fromkeys(range(4), 0.0)
    wide = minus(sample_of(values, "r", dict(enumerate("aabb"))), sample_of(zeros, "r"))
    assert wide.high - wide.mean == pytest.approx(12.7062, abs=1e-3)  # t of one degree of freedom, standard error 1


def test_intervals_that_exclude_0_are_bold_and_print_no_end_as_0() -> None:
    differences = [Interval(-1, -2, -0.1, 5), Interval(1, 0.1, 2, 5), Interval(0, -1, 1, 5)]
    near = ("d", Interval(0.0036, 0.00003, 0.0072, 5), 3)  # 0 is not printed for an end that is none
    rows = [("a", differences[0], 2), ("b", differences[1], 3), ("c", differences[2], 1), near]
    lines = findings.difference_lines(rows)
    assert lines.splitlines()[2:] == [
        "| a | 5 | **-1.00 [-2.00, -0.10]** |", "| b | 5 | **+1.000 [+0.100, +2.000]** |",
        "| c | 5 | 0.0 [-1.0, +1.0] |", "| d | 5 | **+0.00360 [+0.00003, +0.00720]** |",
    ]  # fmt: skip
