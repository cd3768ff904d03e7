"""What the benchmarks make of what they measure; speed itself is not tested."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest

from cmixup.errors import InputError
from scripts.bench import clock, estimators, tables
from scripts.bench.clock import stored_rows
from scripts.config.arguments import parse_args


def test_rows_are_stored_with_their_machine_and_a_short_try_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clock, "RESULTS", tmp_path)
    folder = tmp_path / "benchmarks"
    folder.mkdir()
    (folder / "machines.json").write_text('{"sampling": "cpu: another, torch 2"}')
    rows = [{"case": "a", "seconds": "0.5"}]
    clock.store_rows(parse_args(["short=1"], clock.SHORT, ""), "train", rows, list(rows[0]))
    assert not (folder / "train.csv").exists()
    clock.store_rows(parse_args([], clock.SHORT, ""), "train", rows, list(rows[0]))
    assert stored_rows("train") == rows
    machines = json.loads((folder / "machines.json").read_text())
    assert machines["sampling"] == "cpu: another, torch 2"
    assert "torch" in machines["train"]
    assert clock.with_machine(["| a |"], "sampling").endswith(
        "\n\nMeasured by `python -m scripts.bench sampling` on [another](benchmarks/machines.json)."
    )


def test_the_tables_that_the_default_was_chosen_on_follow_from_their_names() -> None:
    reserved = "atlantic_storm_wind baseball_team_wins biomass_heating_value car_fuel_economy csf_tau diamond_prices "
    reserved += "flight_delay gilgai_soil london_exam us_wages_1988"
    assert sorted(tables.PARTS["reserved"]) == reserved.split()
    rows = stored_rows("estimators")
    old = {(part, table) for part in ("chosen_on", "reserved") for table in tables.PARTS[part]}
    assert {(r["part"], r["table"]) for r in rows} >= old


@pytest.mark.parametrize("name", tables.PARTS["fresh"])
def test_a_fresh_table_is_the_file_that_was_chosen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    row = tables.FRESH.loc[name]
    if not importlib.util.find_spec(row["package"]):
        pytest.skip(f"{row['package']} is not installed")
    x, y = tables.read_table(name)
    assert (x.shape, y.shape) == ((row["rows"], row["numeric"] + row["categorical_count"]), (row["rows"], 1))
    assert x.isna().mean().mean() == pytest.approx(float(row["missing_share"]), abs=5e-5)
    assert np.isfinite(y).all()
    monkeypatch.setattr(tables, "FRESH", tables.FRESH.assign(sha256="0" * 64))
    with pytest.raises(InputError, match="another SHA-256"):
        tables.read_table(name)


def test_regressors_are_compared_with_the_base_table_by_table() -> None:
    gaps = {"a": (0.02, 0.04), "b": (-0.01, -0.02), "c": (-0.06, -0.04)}
    cell = {"part": "reserved", "model": "tabular"}
    rows = [
        cell | {"table": table, "split": str(split), "behind": str(gap), "seconds": str(10 + gap)}
        for table, both in gaps.items()
        for split, gap in enumerate(both)
    ]
    line, _ = estimators.error_table([*rows, *(row | {"model": "catboost"} for row in rows)]).splitlines()[2:]
    mean, half = np.mean([3, -1.5, -5]), 4.303 * float(np.std([3, -1.5, -5], ddof=1)) / np.sqrt(3)
    interval = f"{mean:+.1f} [{mean - half:+.1f}, {mean + half:+.1f}]"
    assert line == f"| tabular | {interval}, 2 of 3 | 10.0 | 10.0 | 1.0 |"
    # a slow hour of the machine meets both, so a multiple is of the same table and split
    hours = [1.0, 1.0, 1.0, 5.0, 5.0]
    slow = [row | {"seconds": str(6 * hour)} for row, hour in zip(rows, hours, strict=False)]
    bases = [row | {"model": "catboost", "seconds": str(2 * hour)} for row, hour in zip(rows, hours, strict=False)]
    table = estimators.error_table([*slow, rows[5], *bases])
    assert [text.split(" | ")[4] for text in table.splitlines()[2:]] == ["3.0 |", "1.0 |"]
    base = {
        (r["table"], r["split"]): float(r["log_error"]) for r in stored_rows("estimators") if r["model"] == "catboost"
    }
    for row in stored_rows("estimators"):
        expected = float(row["log_error"]) - base[row["table"], row["split"]]
        assert float(row["behind"]) == pytest.approx(expected, abs=2e-5)


def test_coverage_and_width_are_means_over_outputs() -> None:
    y = np.array([[0.0, 0.0], [1.0, 2.0], [2.0, 4.0]])
    half = np.array([1.0, 3.0])
    ends = np.stack([y - half, y + half], axis=1)
    ends[0, :, 0] = [5.0, 7.0]
    width = (2 / y[:, 0].std() + 6 / y[:, 1].std()) / 2
    assert estimators.interval_coverage(ends, y) == (pytest.approx(5 / 6, abs=1e-4), pytest.approx(width, abs=1e-4))
    assert estimators.interval_coverage(ends[:, :, 0], y[:, :1])[0] == pytest.approx(2 / 3, abs=1e-4)
