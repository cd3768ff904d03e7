"""Folders of runs: whole or absent, and what they say of the code and the machine."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from cmixup.files import write_atomically
from scripts.driver import predictions, runs
from scripts.driver.compose import compose_train
from scripts.driver.job import execute
from scripts.driver.plan import plan
from scripts.driver.predictions import Scored
from scripts.driver.runs import CODE, begin_run, environment, is_done, load_reports, mark_done, recorded_config
from scripts.report.published import cell_of, published_reports, report_files
from tests.scripts.jobs import FILES
from tests.scripts.reports import report

PREDICTED = {"test": Scored({"": np.ones((3, 1), np.float32)}, np.zeros((3, 1), np.float32), np.arange(3))}


def finish(folder: Path, **changes: Any) -> None:
    history = [{"epoch": 1, "val_rmse": 2.0}, {"epoch": 2, "val_rmse": 1.0}]
    texts = {"model.json": "{}", "preprocessing.json": "{}"}
    runs.write_run(folder, report(**changes), history, {"w": torch.ones(2)}, PREDICTED, extras=texts)
    mark_done(folder)


def write_run(folder: Path, **changes: Any) -> None:
    begin_run(folder, "config: 1\n")
    finish(folder, **changes)


def test_a_run_is_done_when_all_of_it_is_there(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    assert not is_done(folder)
    begin_run(folder, "seed: 3\n")
    assert not is_done(folder)
    finish(folder)
    assert is_done(folder)
    assert sorted(path.name for path in folder.iterdir()) == FILES
    assert (folder / "config.yaml").read_text() == "seed: 3\n"
    assert (folder / "history.csv").read_text() == "epoch,val_rmse\n1,2.0\n2,1.0\n"
    assert torch.load(folder / "checkpoint.pt", weights_only=True)["w"].tolist() == [1, 1]
    begin_run(folder, "seed: 3\n")
    assert not is_done(folder)


def test_done_is_written_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    written: list[str] = []
    for module in (runs, predictions):
        monkeypatch.setattr(module, "write_atomically", lambda path, _: written.append(path.name))
    finish(tmp_path)
    assert written[-1] == "DONE"
    assert sorted([*written, "config.yaml"]) == FILES


@pytest.mark.parametrize("fails", ["checkpoint.pt", "history.csv", "predictions.h5", "report.json"])
def test_a_run_whose_writing_fails_is_not_done(tmp_path: Path, fails: str, monkeypatch: pytest.MonkeyPatch) -> None:
    write = write_atomically

    def full(path: Path, content: str | bytes) -> None:
        if path.name == fails:
            raise OSError(28, "No space left on device")
        write(path, content)

    begin_run(tmp_path, "")
    for module in (runs, predictions):
        monkeypatch.setattr(module, "write_atomically", full)
    with pytest.raises(OSError, match="No space left"):
        finish(tmp_path)
    assert not is_done(tmp_path)


def test_a_folder_that_cannot_be_made_is_an_oserror(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        begin_run(tmp_path / "file" / "run", "")


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


def test_the_environment_says_what_is_needed_to_repeat_a_run() -> None:
    found = environment(torch.device("cpu"))
    assert found["commit"] == git(CODE, "rev-parse", "HEAD")
    assert found["versions"]["torch"] == metadata.version("torch")
    assert found["versions"]["python"] == sys.version.split()[0]
    assert {"torch", "numpy"} <= set(found["versions"])
    assert found["device"].startswith("cpu: ")
    assert len(found["device"]) > 5
    assert found["threads"] == torch.get_num_threads()
    json.dumps(found)


def test_the_environment_without_git(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert environment(torch.device("cpu"), tmp_path)["commit"] == ""


def git(folder: Path, *command: str) -> str:
    identity = ("-c", "user.name=nobody", "-c", "user.email=nobody@localhost")
    done = subprocess.run(["git", "-C", str(folder), *identity, *command], capture_output=True, text=True, check=True)
    return done.stdout.strip()


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A scratch repository with one committed file in a code folder, and one elsewhere."""
    code = tmp_path / "checkout"
    for name in ("cmixup/mix.py", "docs/page.md", ".gitignore"):
        (code / name).parent.mkdir(parents=True, exist_ok=True)
        (code / name).write_text("__pycache__/\n")
    git(tmp_path, "init", "--quiet", str(code))
    git(code, "add", ".")
    git(code, "commit", "--quiet", "--message", "all")
    return code


def test_a_clean_checkout_is_not_dirty(checkout: Path) -> None:
    (checkout / "notes.txt").write_text("untracked, but no code")
    (checkout / "outputs").mkdir()
    (checkout / "outputs" / "run.json").write_text("{}")
    (checkout / "cmixup" / "__pycache__").mkdir()
    (checkout / "cmixup" / "__pycache__" / "mix.pyc").write_text("ignored")
    found = environment(torch.device("cpu"), checkout)
    assert (found["commit"], found["dirty"]) == (git(checkout, "rev-parse", "HEAD"), False)


def test_code_that_is_carried_without_git_keeps_its_commit_until_it_changes(checkout: Path) -> None:
    head, cpu = git(checkout, "rev-parse", "HEAD"), torch.device("cpu")
    runs.note_commit(checkout)
    (checkout / ".git").rename(checkout / "elsewhere")
    found = environment(cpu, checkout)
    assert (found["commit"], found["dirty"]) == (head, False)
    (checkout / "cmixup/new.py").write_text("")
    found = environment(cpu, checkout)
    assert (found["commit"], found["dirty"]) == ("", True)


def test_the_commit_of_dirty_code_is_not_noted(checkout: Path) -> None:
    (checkout / "cmixup/mix.py").write_text("changed")
    runs.note_commit(checkout)
    assert not (checkout / runs.CARRIED).exists()


@pytest.mark.parametrize("name", ["cmixup/mix.py", "docs/page.md"])
def test_a_changed_tracked_file_makes_a_run_dirty(checkout: Path, name: str) -> None:
    (checkout / name).write_text("changed")
    assert environment(torch.device("cpu"), checkout)["dirty"]
    git(checkout, "add", ".")
    assert environment(torch.device("cpu"), checkout)["dirty"]


@pytest.mark.parametrize("folder", ["cmixup/methods", "configs/method", "datasets", "models", "scripts/driver"])
def test_an_untracked_file_of_the_code_makes_a_run_dirty(checkout: Path, folder: str) -> None:
    (checkout / folder).mkdir(parents=True, exist_ok=True)
    (checkout / folder / "mine.py").write_text("a method that nobody committed")
    assert environment(torch.device("cpu"), checkout)["dirty"]


def test_the_repository_asked_is_that_of_the_code(
    checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs are started from anywhere, and the current directory may be another repository."""
    head = environment(torch.device("cpu"))["commit"]
    monkeypatch.chdir(checkout)
    assert environment(torch.device("cpu"))["commit"] == head != git(checkout, "rev-parse", "HEAD")
    assert (CODE / "scripts/driver/runs.py").is_file()


def test_commit_and_dirty_follow_the_code_and_nothing_else_changes(
    checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir("/")
    first = environment(torch.device("cpu"), checkout)
    assert (first["commit"], first["dirty"]) == (git(checkout, "rev-parse", "HEAD"), False)
    (checkout / "cmixup" / "mix.py").write_text("changed")
    assert environment(torch.device("cpu"), checkout) == {**first, "dirty": True}
    git(checkout, "commit", "--quiet", "--all", "--message", "second")
    second = environment(torch.device("cpu"), checkout)
    assert second == {**first, "commit": git(checkout, "rev-parse", "HEAD")} != first


# ---- what is recorded


def test_folders_of_the_machine_are_not_recorded() -> None:
    plain = {"out": "/somewhere/outputs", "seed": 3, "train": {"lr": 0.1}}
    assert recorded_config(plain) == {"seed": 3, "train": {"lr": 0.1}}
    assert plain["out"] == "/somewhere/outputs"


def test_a_finished_run_records_its_stack_and_no_folder(tmp_path: Path) -> None:
    words = ["dataset=airfoil", "method=erm", "debug=tiny", "device=cpu", f"out={tmp_path}"]
    for seeds in ("[4,2]", "[4,2,7]"):  # 4 and 2 are done, so 7 trains alone
        execute(plan(compose_train([*words, f"seeds={seeds}"])))
    reports = {r["seed"]: r for r in load_reports(tmp_path)}
    assert {seed: r["stack_seeds"] for seed, r in reports.items()} == {4: [2, 4], 2: [2, 4], 7: [7]}
    assert {seed: r["stack"] for seed, r in reports.items()} == {4: 2, 2: 2, 7: 1}
    assert all(str(tmp_path) not in json.dumps(r) for r in reports.values())


def test_published_records_name_no_folder_of_a_machine() -> None:
    folders = re.compile(r'"/(?:work|root|home|tmp|mnt|data)\b')
    texts = [path.read_text() for path in report_files(CODE / "results")]
    assert len(texts) > 100
    assert not [text for text in texts if folders.search(text)]


def test_the_stacks_of_published_records_are_known() -> None:
    """Records without `stack_seeds` are of stacks of ten, which hold seeds 0 to 9, or of single models."""
    cells: dict[str, list[dict[str, Any]]] = {}
    for r in published_reports(CODE / "results"):
        cells.setdefault(cell_of(r), []).append(r)
    for folder, reports in cells.items():
        for r in reports:
            if "stack_seeds" in r:
                cells = r.get("stack_cells", [{"options": r["options"], "seeds": r["stack_seeds"]}])
                assert sum(len(c["seeds"]) for c in cells) == r["stack"], folder
                assert {"options": r["options"], "seeds": r["stack_seeds"]} in cells, folder
                assert r["seed"] in r["stack_seeds"], folder
            else:
                assert r["stack"] in (1, 10), folder
        if any(r["stack"] == 10 and "stack_seeds" not in r for r in reports):
            assert sorted(r["seed"] for r in reports) == list(range(10)), folder
