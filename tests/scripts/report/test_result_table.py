"""Tables from a small stored sweep: numbers, differences, bold, and the three formats."""

import csv
import io
import math

import pandas as pd
import pytest

from scripts.records.run_tables import frame_of
from scripts.report.result_table import ResultTable, block_rows, make_block, table_page, to_table_csv
from scripts.stats.intervals import Summary
from tests.scripts.reports import report

PAPER = [
    {"dataset": "airfoil", "method": "erm", "metric": "rmse", "mean": "2.90", "std": "0.10"},
    {"dataset": "airfoil", "method": "cmixup", "metric": "rmse", "mean": "2.70", "std": ""},
    {"dataset": "no2", "method": "cmixup", "metric": "rmse", "mean": "9.99", "std": ""},
]
VALUES = {("erm", 0): 3.0, ("erm", 1): 3.2, ("cmixup", 0): 2.8, ("cmixup", 1): 2.6, ("cmixup", 2): 9.0}


def records(*metrics: str, more: dict[tuple[str, int], float] = VALUES) -> pd.DataFrame:
    return frame_of(report(method=m, seed=s, scores={"test": dict.fromkeys(metrics or ("rmse",), v)})
                    for (m, s), v in {**VALUES, **more}.items())  # fmt: skip


def block(runs: pd.DataFrame, metrics: tuple[str, ...] = ("rmse",)):
    methods = ("erm", "mixup", "cmixup")
    return make_block(runs, PAPER, dataset="airfoil", methods=methods, metrics=metrics, compare="cmixup")


def test_cells_hold_mean_std_n_and_the_papers_number():
    cells = block(records()).cells
    erm = cells["erm"]["rmse"]
    assert erm.ours.mean == pytest.approx(3.1)
    assert erm.ours.std == pytest.approx(0.02**0.5)
    assert (erm.ours.n, erm.paper, erm.decimals) == (2, Summary(2.9, 0.1, 3), 2)
    assert erm.difference == pytest.approx(0.2)
    assert cells["cmixup"]["rmse"].paper.mean == 2.7
    assert cells["mixup"]["rmse"].ours is None
    assert all(c["rmse"].ours is None for c in block(records("mae")).cells.values())


def test_a_metric_that_the_paper_does_not_have_gets_no_columns_for_it():
    both = block(records("rmse", "mean_rmse"), ("rmse", "mean_rmse"))
    head, body = block_rows(both)
    assert head == ["method", "n", "RMSE ours", "paper", "ours - paper", "mean RMSE over domains ours"]
    assert body[0] == ["ERM", "2", "3.10 ± 0.14", "2.90 ± 0.10", "+0.20 [-0.40, +0.80]", "3.100 ± 0.141"]
    head, body = block_rows(both, short=True)
    assert (head[-1], len(body[0])) == ("ours - paper", 5)


def test_the_best_has_the_most_seeds_and_the_width_of_an_interval_is_no_score_to_win_by():
    third = {("erm", 2): 9.9}  # ERM's mean over three is higher
    for metric, more, best in (("rmse", {}, "cmixup"), ("mse_ci95", {}, ""), ("rmse", third, "cmixup"),
                               ("r", third, "erm"), ("r", {**third, ("erm", 2): math.inf}, "cmixup")):  # fmt: skip
        cells = block(records(metric, more=more), (metric,)).cells
        assert [method for method in cells if cells[method][metric].best] == ([best] if best else [])


def test_intervals_pair_shared_seeds():
    rows = records(more={("erm", 2): 9.7, ("cmixup", 3): 2.5})
    interval = block(rows).cells["erm"]["rmse"].pair
    assert interval.mean == pytest.approx(((2.8 - 3.0) + (2.6 - 3.2) + (9.0 - 9.7)) / 3)
    assert interval.n == 3
    assert block(rows).cells["cmixup"]["rmse"].pair is None
    page = table_page(ResultTable("Title", [block(rows)]))
    assert "| C-Mixup minus it, n = 3 |" in page
    (line,) = (line for line in page.splitlines() if line.startswith("| ERM |"))
    assert " | -0.50 [" in line


def test_two_seeds_mark_no_method_and_print_no_interval():
    rows = records().query("seed != 2")
    assert not any(cell["rmse"].pair for cell in block(records()).cells.values())  # two are shared
    assert not any(cell["rmse"].best for cell in block(rows).cells.values())
    assert "no interval over them" in table_page(ResultTable("Title", [block(rows)]))
    assert "no interval over them" not in table_page(ResultTable("Title", [block(records())]))


def test_a_page_has_sections_of_presets_and_leads_from_methods_with_runs_to_their_records():
    one, other = (ResultTable("Title", [block(records())], ["Echo: no licence"], preset=p) for p in ("paper", "cpu"))
    page = table_page(one, other, linked=True)
    assert [line for line in page.splitlines() if line[:1] == "#"] == [
        "# Title", "## Preset paper", "### Airfoil", "## Preset cpu", "### Airfoil", "### Not in this table",
    ]  # fmt: skip
    assert "| method | n | RMSE ours | paper | ours - paper |" in page
    assert "| [ERM](../runs/table1/airfoil.csv) | 2 | 3.10 ± 0.14 | 2.90 ± 0.10 | +0.20 [-0.40, +0.80] |" in page
    assert "Not trained: mixup." in page
    assert "| mixup |" not in page
    assert "| mixup | — | — | — | — |" in table_page(one)
    assert "| 3 | **4.80 ± 3.64** | 2.70 | +2.10 |" in page  # no spread is known of the paper's
    assert "- Echo: no licence" in page
    assert "| ERM | 2 | 3.10" in table_page(one)


def test_csv_holds_unrounded_numbers():
    (erm, mixup, _) = csv.DictReader(io.StringIO(to_table_csv(ResultTable("T", [block(records())]))))
    assert float(erm["mean"]) == pytest.approx(3.1, abs=1e-12)
    assert float(erm["difference"]) == pytest.approx(0.2, abs=1e-12)
    assert (mixup["mean"], mixup["n"], mixup["compare"]) == ("", "0", "")
    assert (float(erm["difference_low"]), float(erm["difference_high"])) == pytest.approx((-0.40, 0.80), abs=5e-3)
    more = block(records(more={("erm", 2): 9.7}))
    (erm, *_) = csv.DictReader(io.StringIO(to_table_csv(ResultTable("T", [more]))))
    assert (erm["compare"], erm["minus_it_n"]) == ("cmixup", "3")
    assert float(erm["minus_it"]) == pytest.approx(-0.5)
    assert float(erm["minus_it_low"]) < -0.5 < float(erm["minus_it_high"])
