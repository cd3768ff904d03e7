"""What the benchmarks do with what they measure; speed itself is no test's."""

from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from scripts.bench import clock, estimators, partners, partners_case
from scripts.bench.sampling import as_csv, report_page, sampling_figures
from scripts.config.arguments import parse_args
from scripts.records.experiment import RESULTS
from scripts.records.records import read_csv
from scripts.records.seal import broken_files, read_seal, seal_files
from tests.robustness.pictures import faults_of

MEASURED = RESULTS / "benchmarks" / "sampling.csv"


def test_ways_take_turns_and_the_first_round_is_not_counted() -> None:
    called: list[str] = []
    taken = clock.in_turn({name: lambda name=name: called.append(name) for name in "ab"}, 2)
    assert called == ["a", "b"] * 3
    assert {name: len(seconds) for name, seconds in taken.items()} == {"a": 2, "b": 2}


def test_the_committed_measurements_are_read_and_drawn() -> None:
    rows = read_csv(MEASURED)
    drawn = sampling_figures(rows)
    assert list(drawn) == ["sampling.png", "sampling_distance.png"]
    assert faults_of(drawn) == []
    assert as_csv(rows) == MEASURED.read_text()


def test_the_report_has_the_lines_of_the_committed_page() -> None:
    text = {"case", "kind", "curve", "used", "method", "budget"}
    rows = [{k: v if k in text else int(v) if k == "n" else float(v) for k, v in r.items()} for r in read_csv(MEASURED)]
    (table,) = [part for part in report_page(rows) if isinstance(part, list)]
    body = table[2:]
    assert len(body) == len(rows)
    assert set(body) <= set(MEASURED.with_suffix(".md").read_text().splitlines())


def test_a_short_try_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(clock, "RESULTS", tmp_path)
    clock.put_page(parse_args(["short=1"], clock.SHORT, ""), "train_gpu", "Steps", [["| a |"]])
    assert "# Steps\n\n| a |\n\nMeasured by `python -m scripts.bench train`." in capsys.readouterr().out
    assert not list(tmp_path.iterdir())
    clock.put_page(parse_args([], clock.SHORT, ""), "train_gpu", "Steps", [["| a |"]])
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
    (line,) = estimators.report_table(rows)[2:]
    half = 4.303 * float(np.std([3, -1.5, -5], ddof=1)) / np.sqrt(3)
    mean = np.mean([3, -1.5, -5])
    assert (
        line
        == f"| reserved, 3 tables: cmixup | {mean:+.1f} [{mean - half:+.1f}, {mean + half:+.1f}] | 2 | 10.0 | 10.0 |  |"
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
    assert "\n".join(estimators.report_table(rows)) in path.with_suffix(".md").read_text()


def row(method: str, seconds: float, of: str = "grid", **changes: object) -> dict[str, object]:
    case = {"of": of, "law": "normal", "n": 1000, "d": 2, "bandwidth": 0.42, "method": method, "used": method}
    return {**case, "setup": 0.0, "seconds": seconds, **changes}


def test_the_choice_is_compared_with_the_best_that_was_asked_for_by_name() -> None:
    grid = [row("auto", 3.0, used="kd"), row("kd", 2.0), row("uniform", 1.25)]
    grid += [row("auto", 0.5, n=10_000), row("kd", 1.0, n=10_000)]
    assert [(cell["best"], cell["ratio"]) for cell in partners.ratios_of(grid)] == [("uniform", 2.4), ("kd", 0.5)]
    now = [row("auto", 2.0, "0123abcd"), row("auto", 0.5, "now")]
    now += [row("cmixup", 0.002, "now", law="batch"), row("dense", 0.005, "now", law="batch")]
    _, by_size, _, above, about, compared = partners.report_page(grid, now)
    assert str(about).startswith("The commit 0123abcd (before) and this one in turn.")
    assert by_size[2:] == ["| 1,000 | 1 | 2.40 | 2.40 | 1 |", "| 10,000 | 1 | 0.50 | 0.50 | 0 |"]
    assert above[2:] == ["| normal, 1,000 x 2 | 0.42 | kd | uniform | 3 | 2.40 |"]
    assert compared[2:] == [
        "| `PartnerSampler`, 1,000 x 2, 0.42 | 2 s | 0.5 s | - | 4.0 | - |",
        "| `CMixup`, a batch of 1,000 x 2 | - | 2 ms | 5 ms | - | 2.5 |",
    ]


def test_the_labels_of_a_case_are_of_their_law_and_both_ways_are_measured() -> None:
    assert len(np.unique(partners_case.make_labels("duplicates", 1000, 1))) < 100
    assert np.abs(partners_case.make_labels("heavy", 1000, 1)).max() > 10
    case = {"law": "normal", "n": 300, "d": 2, "bandwidth": 0.4, "method": "kd"}
    found = partners_case.run_sampler(case)
    assert found["used"] == "kd"
    assert 0 < found["setup"] < found["seconds"]
    assert partners_case.run_batch({"law": "batch", "n": 64, "d": 2, "method": "dense"})["seconds"] > 0


def test_figures_of_a_benchmark_are_sealed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.csv").write_text("1\n")
    seal_files(tmp_path, first=True)
    monkeypatch.setattr(clock, "RESULTS", tmp_path)
    figure = Figure()
    figure.subplots()
    clock.store_figures({"benchmarks/a.png": figure})
    assert set(read_seal(tmp_path)) == {"a.csv", "benchmarks/a.png"}
    assert broken_files(tmp_path) == []
