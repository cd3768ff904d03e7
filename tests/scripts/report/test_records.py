from __future__ import annotations

import json
import os
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import pytest
import torch

from cmixup.errors import InputError
from cmixup.files import write_atomically
from scripts.driver.runs import begin_run, environment, finish_run, is_done, load_reports
from scripts.report import records
from scripts.report.records import COLUMNS, KEY, check_unique, read_csv, rows, to_csv


def report(**changes: Any) -> dict[str, Any]:
    return {
        "experiment": "table1", "dataset": "airfoil", "model": "fcn3", "method": "cmixup", "preset": "paper",
        "layer": "hidden", "bandwidth": 1.75, "alpha": None, "options": {"train.lr": 0.1, "method.bandwidth": 1.75},
        "seed": 3, "run": "table1/airfoil/seed=3", "scores": {"val": {"rmse": 2.5, "r": 0.9}, "test": {"rmse": 1 / 3}},
        "facts": {"effective_fraction": 0.27}, "seconds": 1.5, "best_epoch": 80, **changes,
    }  # fmt: skip


def write_run(folder: Path, **changes: Any) -> None:
    begin_run(folder, "config: 1\n")
    finish_run(folder, report(**changes), [{"epoch": 1, "val_rmse": 2.0}], {"w": torch.ones(2)})


# ---- writing


@pytest.mark.parametrize("content", ["text ä\n", b"\x00bytes"])
def test_writing_makes_folders_and_replaces(tmp_path: Path, content: str | bytes) -> None:
    path = tmp_path / "a" / "b" / "file"
    write_atomically(path, "before")
    write_atomically(path, content)
    assert path.read_bytes() == (content.encode() if isinstance(content, str) else content)
    assert path.stat().st_mode & 0o777 == 0o644
    assert os.listdir(path.parent) == ["file"]  # noqa: PTH208 - hidden files, too


@pytest.mark.parametrize("existing", [None, "before"])
def test_a_failed_write_leaves_nothing_behind(
    tmp_path: Path, existing: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    if existing:
        path.write_text(existing)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    with pytest.raises(OSError, match="No space left"):
        write_atomically(path, "after")
    assert os.listdir(tmp_path) == (["file"] if existing else [])  # noqa: PTH208
    if existing:
        assert path.read_text() == existing


def test_an_interrupted_write_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(records.os, "fdopen", interrupt)
    with pytest.raises(KeyboardInterrupt):
        write_atomically(tmp_path / "file", "after")
    assert os.listdir(tmp_path) == []  # noqa: PTH208


def test_a_run_is_done_when_all_of_it_is_there(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assert not is_done(folder)
    begin_run(folder, "seed: 3\n")
    assert not is_done(folder)
    finish_run(folder, report(), [{"epoch": 1, "val_rmse": 2.0}, {"epoch": 2, "val_rmse": 1.0}], {"w": torch.ones(2)})
    assert is_done(folder)
    assert sorted(os.listdir(folder)) == ["DONE", "checkpoint.pt", "config.yaml", "history.csv", "report.json"]  # noqa: PTH208
    assert (folder / "config.yaml").read_text() == "seed: 3\n"
    assert (folder / "history.csv").read_text() == "epoch,val_rmse\n1,2.0\n2,1.0\n"
    assert torch.load(folder / "checkpoint.pt", weights_only=True)["w"].tolist() == [1, 1]
    begin_run(folder, "seed: 3\n")
    assert not is_done(folder)


def test_done_is_written_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    monkeypatch.setattr(records, "write_atomically", lambda path, _: written.append(path.name))
    finish_run(tmp_path, report(), [{"epoch": 1}], {})
    assert written[-1] == "DONE"
    assert sorted(written) == ["DONE", "checkpoint.pt", "history.csv", "report.json"]


@pytest.mark.parametrize("fails", ["checkpoint.pt", "history.csv", "report.json"])
def test_a_run_whose_writing_fails_is_not_done(tmp_path: Path, fails: str, monkeypatch: pytest.MonkeyPatch) -> None:
    write = write_atomically

    def full(path: Path, content: str | bytes) -> None:
        if path.name == fails:
            raise OSError(28, "No space left on device")
        write(path, content)

    begin_run(tmp_path, "")
    monkeypatch.setattr(records, "write_atomically", full)
    with pytest.raises(OSError, match="No space left"):
        finish_run(tmp_path, report(), [{"epoch": 1}], {})
    assert not is_done(tmp_path)


def test_a_folder_that_cannot_be_made_is_an_oserror(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        begin_run(tmp_path / "file" / "run", "")


# ---- reading


def test_reports_of_finished_runs_only_in_order(tmp_path: Path) -> None:
    for name, seed in (("b", 2), ("a", 1), ("c", 3)):
        write_run(tmp_path / "exp" / name, seed=seed)
    (tmp_path / "exp" / "c" / "DONE").unlink()
    begin_run(tmp_path / "exp" / "d", "")
    assert [r["seed"] for r in load_reports(tmp_path)] == [1, 2]
    assert load_reports(tmp_path / "nowhere") == []


def test_a_report_reads_back_as_written(tmp_path: Path) -> None:
    write_run(tmp_path / "run")
    (back,) = load_reports(tmp_path)
    assert back == report()


# ---- tidy rows


def test_rows_of_a_report() -> None:
    tidy = rows(report())
    assert all(set(row) == set(COLUMNS) for row in tidy)
    values = {(row["split"], row["metric"]): row["value"] for row in tidy}
    assert values == {
        ("val", "rmse"): 2.5, ("val", "r"): 0.9, ("test", "rmse"): 1 / 3, ("train", "effective_fraction"): 0.27,
        ("train", "seconds"): 1.5, ("train", "best_epoch"): 80,
    }  # fmt: skip
    assert {row["options"] for row in tidy} == {"method.bandwidth=1.75 train.lr=0.1"}
    assert {(row["seed"], row["layer"], row["run"]) for row in tidy} == {(3, "hidden", "table1/airfoil/seed=3")}


def test_the_key_is_every_column_but_value_and_run() -> None:
    issue = ("experiment", "dataset", "model", "method", "preset", "layer", "bandwidth", "alpha", "seed", "split",
             "metric", "value", "run")  # fmt: skip
    assert set(issue) <= set(COLUMNS)
    assert set(COLUMNS) - set(KEY) == {"value", "run"}


def test_csv_round_trip(tmp_path: Path) -> None:
    tidy = rows(report(options={}, preset="paper, as printed")) + rows(report(seed=4, run='a "quoted"\nrun'))
    (tmp_path / "records.csv").write_text(to_csv(tidy, COLUMNS))
    back = read_csv(tmp_path / "records.csv")
    assert len(back) == len(tidy)
    for ours, theirs in zip(tidy, back, strict=True):
        assert list(theirs) == list(COLUMNS)
        assert float(theirs["value"]) == ours["value"]
        assert theirs["alpha"] == ""
        for name in ("preset", "run", "metric", "options"):
            assert theirs[name] == ours[name]


def test_csv_leaves_out_other_keys() -> None:
    assert to_csv([{"a": 1, "b": None, "c": 3}], ["b", "a"]) == "b,a\n,1\n"


def test_records_that_differ_pass() -> None:
    check_unique([*rows(report()), *rows(report(seed=4)), *rows(report(options={"train.lr": 1.0}))])


@pytest.mark.parametrize("changes", [{}, {"run": "table1_again"}, {"scores": {"test": {"rmse": 9.0}}}])
def test_records_that_share_all_but_value_and_run_are_refused(changes: dict[str, Any]) -> None:
    again = report(**{"run": "elsewhere", **changes})
    with pytest.raises(InputError, match=f"runs table1/airfoil/seed=3 and {again['run']} are the same"):
        check_unique([*rows(report()), *rows(again)])


# ---- the environment


def test_the_environment_says_what_is_needed_to_repeat_a_run() -> None:
    found = environment(torch.device("cpu"))
    head = subprocess.run(["git", "rev-parse", "HEAD"], capture_output=True, text=True, check=False)
    assert found["commit"] == head.stdout.strip()
    assert found["versions"]["torch"] == metadata.version("torch")
    assert found["versions"]["python"] == sys.version.split()[0]
    assert {"torch", "numpy"} <= set(found["versions"])
    assert found["device"].startswith("cpu: ")
    assert len(found["device"]) > 5
    assert found["threads"] == torch.get_num_threads()
    json.dumps(found)


def test_the_environment_without_git(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert environment(torch.device("cpu"))["commit"] == ""
