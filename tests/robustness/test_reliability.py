"""The trials of the project's promises, a few of each, and their page."""

import importlib
import json
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cmixup.processes import is_alive
from tests.robustness import page, provenance
from tests.robustness.base import Trial, note_progress, one


def tried(name: str, count: int, folder: Path) -> Trial:
    """What a trial found."""
    return importlib.import_module(f"tests.robustness.{name}").run(count, 0, folder)


@pytest.mark.parametrize(("name", "count"), [("crash_points", 1), pytest.param("races", 1, marks=pytest.mark.slow)])
@pytest.mark.timeout(300)
def test_a_few(name: str, count: int, tmp_path: Path) -> None:
    found = tried(name, count, tmp_path)
    assert (found.tried, found.held, found.failures) == (count, count, ())


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "count"),
    [
        ("kills", 20),
        ("crash_points", 1000),
        ("races", 16),
        ("disk_full", 4),
        ("environments", 82),
        ("nth_call", 60),
        ("bit_rot", 80),
        ("chain", 100),
        ("tampering", 10),
        ("provenance", 24),
    ],
)
@pytest.mark.timeout(1800)
def test_more(name: str, count: int, tmp_path: Path) -> None:
    found = tried(name, count, tmp_path)
    assert found.failures == ()
    assert found.held == found.tried
    assert found.tried >= min(count, 50) or "not tried" in found.notes


@pytest.mark.parametrize("way", ["a replaced commit", "clean, in a hook"])
def test_a_checkout_that_lies_is_seen(way: str, tmp_path: Path) -> None:
    assert provenance.attempt(way, tmp_path / "way") == ""


def test_a_trial_ends_with_the_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def run(_count: int, _seed: int, folder: Path) -> Trial:
        note_progress(folder, os.getpid(), 0)
        time.sleep(60)
        raise AssertionError

    monkeypatch.setitem(sys.modules, "tests.robustness.asleep", SimpleNamespace(run=run))
    context = multiprocessing.get_context("fork")
    command = os.fork()
    if not command:
        context.Process(target=one, args=("asleep", 1, 0, tmp_path, context.Pipe()[1])).start()
        signal.pause()
    until = time.monotonic() + 10
    while not (said := tmp_path / "progress").exists() or not said.read_text():
        assert time.monotonic() < until
        time.sleep(0.01)
    os.kill(command, signal.SIGKILL)
    os.waitpid(command, 0)
    trial = int(said.read_text().partition("/")[0])
    while is_alive(trial) and time.monotonic() < until:
        time.sleep(0.01)
    assert not is_alive(trial)


@pytest.mark.parametrize(
    ("name", "words", "said"),
    [
        ("robustness.__main__", "kills=0", "kills must be a whole number, 1 or more, got 0"),
        ("robustness.__main__", "only=kill", "only must be among"),
        ("robustness.mutants", "only=zzz", "only must be part of a mutant's file, text or reason, got 'zzz'"),
        ("robustness.wheel_check", "link=1 pythons=python9", "pythons must be left out with link=1"),
        ("tests_of", "file=cmixup/pairing/lable.py", "did you mean cmixup/pairing/label.py?"),
    ],
)
def test_commands_say_what_they_take_and_refuse_the_rest(
    name: str, words: str, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("CMIXUP_TRACEBACK", raising=False)
    module = importlib.import_module(f"tests.{name}")
    for given, code in ((["--help"], 0), (words.split(), 2)):
        with pytest.raises(SystemExit) as stop:
            module.main(given)
        assert stop.value.code == code
    printed = capsys.readouterr()
    assert "Example: python -m tests." in " ".join(printed.out.split())
    assert said in printed.err


def record(name: str, **changes: Any) -> dict[str, Any]:
    """A record of a trial."""
    base = {"name": name, "what": f"{name} are held", "tried": 1000, "held": 1000, "failures": [], "seconds": 61.0,
            "notes": "", "count": 1000, "date": "2026-11-22", "commit": "a" * 40, "dirty": False, "seed": 0,
            "device": "cpu: X", "versions": {"python": "3.11", "torch": "2.13"}}  # fmt: skip
    return {**base, **changes}


def test_the_page_says_what_did_not_hold(tmp_path: Path) -> None:
    failures = ["stacked, series 3: half a file"]
    records = [record("kills"), record("races", tried=100, held=99, failures=failures, notes="pairs of each kind")]
    (tmp_path / page.RECORDS).write_text("".join(json.dumps(r) + "\n" for r in records))
    text = page.write_page(tmp_path).read_text()
    assert "| kills | kills are held | 1,000 | 1,000 | 61 |" in text
    assert "| races | races are held | 100 | **99** | 61 |" in text
    assert "stacked, series 3: half a file" in text
    assert "pairs of each kind" in text
    assert all(name in text for name in ("SQLite", "Levanter", "NequIP", "DomainBed"))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("number", "code", "said"), [(signal.SIGINT, 130, "interrupted"), (signal.SIGTERM, 143, "terminated")]
)
def test_a_signal_is_one_line_and_its_exit_status(number: int, code: int, said: str, tmp_path: Path) -> None:
    """A table with two workers: the line, the status, and no process of it is left."""
    words = ["table1", "seeds=2", "datasets=no2", "methods=erm,mixup", f"out={tmp_path}"]
    command = [sys.executable, "-m", "scripts.reproduce", *words]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    while not list(tmp_path.rglob("config.yaml")):
        time.sleep(0.05)
    process.send_signal(number)
    told = process.communicate(timeout=60)[1].splitlines()
    assert process.returncode == code
    assert told[-1].startswith(f"{said}: run the same command to go on")
    assert sum("Traceback" in line for line in told) == 0
    until = time.monotonic() + 20  # Python's own tracker of resources ends a moment after the process
    while has_processes(process.pid) and time.monotonic() < until:
        time.sleep(0.05)
    assert not has_processes(process.pid)


def has_processes(group: int) -> bool:
    """Whether a process of this group is left."""
    try:
        os.killpg(group, 0)
    except ProcessLookupError:
        return False
    return True
