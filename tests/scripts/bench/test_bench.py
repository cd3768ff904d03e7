"""What the benchmarks do with what they measure; speed itself is no test's."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from scripts.bench import clock, estimators
from scripts.bench.sampling import as_csv, figures, report
from scripts.driver.arguments import parse_args
from scripts.records.experiment import RESULTS
from scripts.records.records import read_csv
from tests.robustness.pictures import faults_of

MEASURED = RESULTS / "benchmarks" / "sampling.csv"


def test_ways_take_turns_and_the_first_round_is_not_counted() -> None:
    called: list[str] = []
    taken = clock.in_turn({name: lambda name=name: called.append(name) for name in "ab"}, 2)
    assert called == ["a", "b"] * 3
    assert {name: len(seconds) for name, seconds in taken.items()} == {"a": 2, "b": 2}


def test_the_committed_measurements_are_read_and_drawn() -> None:
    rows = read_csv(MEASURED)
    drawn = figures(rows)
    assert list(drawn) == ["sampling.png", "sampling_distance.png"]
    assert faults_of(drawn) == []
    assert as_csv(rows) == MEASURED.read_text()


def test_the_report_has_the_lines_of_the_committed_page() -> None:
    text = {"case", "kind", "curve", "used", "method", "budget"}
    rows = [{k: v if k in text else int(v) if k == "n" else float(v) for k, v in r.items()} for r in read_csv(MEASURED)]
    (table,) = [part for part in report(rows) if isinstance(part, list)]
    body = table[2:]
    assert len(body) == len(rows)
    assert set(body) <= set(MEASURED.with_suffix(".md").read_text().splitlines())


def test_a_short_try_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(clock, "RESULTS", tmp_path)
    clock.put(parse_args(["short=1"], clock.SHORT, ""), "train_gpu", "Steps", [["| a |"]])
    assert "# Steps\n\n| a |\n\nMeasured by `python -m scripts.bench train`." in capsys.readouterr().out
    assert not list(tmp_path.iterdir())
    clock.put(parse_args([], clock.SHORT, ""), "train_gpu", "Steps", [["| a |"]])
    assert [path.name for path in tmp_path.rglob("*.md")] == ["train_gpu.md"]


def test_the_tables_that_the_default_was_chosen_on_follow_from_their_names() -> None:
    reserved = "atlantic_storm_wind baseball_team_wins biomass_heating_value car_fuel_economy csf_tau diamond_prices "
    reserved += "flight_delay gilgai_soil london_exam us_wages_1988"
    assert sorted(estimators.RESERVED) == reserved.split()
    assert set(estimators.CHOSEN_ON) == set(estimators.TABLES.index) - set(reserved.split())


def test_regressors_stand_beside_the_base_table_by_table() -> None:
    gaps = {"a": (0.02, 0.04), "b": (-0.01, -0.02), "c": (-0.06, -0.04)}
    rows = [
        {"part": "reserved", "table": table, "model": "cmixup", "behind": str(gap), "seconds": str(10 + gap)}
        for table, both in gaps.items() for gap in both
    ]  # fmt: skip
    (line,) = estimators.report(rows)[2:]
    half = 4.303 * float(np.std([3, -1.5, -5], ddof=1)) / np.sqrt(3)
    mean = np.mean([3, -1.5, -5])
    assert (
        line
        == f"| reserved, 3 tables: cmixup | {mean:+.1f} [{mean - half:+.1f}, {mean + half:+.1f}] | 2 | 10.0 | 10.0 |"
    )


def test_the_page_of_regressors_is_that_of_its_record() -> None:
    path = RESULTS / "benchmarks" / "estimators.csv"
    rows = read_csv(path)
    assert {(row["part"], row["table"]) for row in rows} == {(p, t) for p, own in estimators.PARTS.items() for t in own}
    base = {(row["table"], row["split"]): float(row["log_error"]) for row in rows if row["model"] == estimators.BASE}
    for row in rows:
        assert float(row["behind"]) == pytest.approx(
            float(row["log_error"]) - base[row["table"], row["split"]], abs=2e-5
        )
    assert "\n".join(estimators.report(rows)) in path.with_suffix(".md").read_text()
