"""A seed is worked on by one process at a time, and a dead one holds nothing."""

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from scripts.machine import locks, portable_locks
from scripts.machine.locks import clean_locks, holding_alone, holding_locks, path_of, wait_for


def test_what_is_held_is_not_taken_and_nothing_stays(tmp_path: Path) -> None:
    folder = tmp_path / "out" / ".locks"
    with holding_locks(folder, ["a", "b"]) as mine, holding_locks(folder, ["b", "c"]) as yours:
        assert (mine, yours) == (["a", "b"], ["c"])
        assert path_of(folder, "b").read_text().startswith(f"process {os.getpid()} on ")
        assert len(list(folder.iterdir())) == 3
    assert not folder.exists()


def held_by(folder: Path, name: str) -> Callable[[], None]:
    """Lock a name as another process does; returns what gives it back."""
    folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(path_of(folder, name), os.O_RDWR | os.O_CREAT)
    fcntl.flock(handle, fcntl.LOCK_EX)
    os.write(handle, b"process 1 on there")
    given_back: list[bool] = []

    def give_back() -> None:
        if not given_back:
            given_back.append(True)
            os.close(handle)

    return give_back


def killed_while_holding(folder: Path, *names: str) -> None:
    """Let another process take locks, and kill it."""
    code = (
        "import sys, time; from pathlib import Path; from scripts.machine.locks import holding_locks\n"
        f"with holding_locks(Path({str(folder)!r}), {list(names)}) as mine:\n"
        "    print(mine, flush=True); time.sleep(60)"
    )
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == f"{list(names)}\n"
        with holding_locks(folder, [*names, "free"]) as mine:
            assert mine == ["free"]
        process.send_signal(signal.SIGKILL)


def test_the_lock_of_a_killed_process_is_free_and_cleaned(tmp_path: Path) -> None:
    folder = tmp_path / "locks"
    killed_while_holding(folder, "a", "b")
    give_back = held_by(folder, "alive")
    with holding_locks(folder, ["a", "alive"]) as mine:
        assert mine == ["a"]
    assert [path.name for path in folder.iterdir()] == [path_of(folder, "alive").name]
    give_back()
    clean_locks(folder)
    assert not folder.exists()


def test_a_forked_process_does_not_keep_a_lock(tmp_path: Path) -> None:
    """Such as one that reads data ahead and outlives the work."""
    with holding_locks(tmp_path / "locks", ["a"]):
        child = os.fork()
        if not child:
            signal.pause()
    with holding_locks(tmp_path / "locks", ["a"]) as mine:
        assert mine == ["a"]
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)


def test_a_file_system_that_cannot_lock_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(locks.fcntl, "flock", refuse)
    with holding_locks(tmp_path / "locks", ["a"]) as mine:
        assert mine == ["a"]
    assert "Operation not supported; other commands may do the same work" in capsys.readouterr().err


def test_waiting_says_for_whom_and_ends(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    give_back = held_by(tmp_path, "seed 3")
    line, heard = "seed 3 is being made by process 1 on there: waiting for it\n", list[str]()

    def sleep(_: float) -> None:
        heard.append(capsys.readouterr().err)
        if line in heard:
            give_back()

    monkeypatch.setattr(locks.time, "sleep", sleep)
    wait_for(tmp_path, ["seed 3"])
    assert [text for text in heard if text] == [line]


def test_alone_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    give_back = held_by(tmp_path, "results")
    waited: list[float] = []
    monkeypatch.setattr(locks.time, "sleep", lambda seconds: (waited.append(seconds), give_back()))
    with holding_alone(tmp_path, "results"):
        assert path_of(tmp_path, "results").read_text().startswith(f"process {os.getpid()} ")
    assert waited == [locks.WAIT]


def test_without_flock_locks_are_kept_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "fcntl", None)
    folder = tmp_path / "out" / ".locks"
    with holding_locks(folder, ["a", "b"]) as mine, holding_locks(folder, ["b", "c"]) as yours:
        assert (mine, yours) == (["a", "b"], ["c"])
        assert locks.owner_of(path_of(folder, "b")).startswith(f"process {os.getpid()} on ")
        assert portable_locks.lock_free(path_of(folder, "b")) is None
        clean_locks(folder)
        assert portable_locks.lock_free(path_of(folder, "a")) is None
    assert not folder.exists()
    with holding_locks(folder, ["a"]):
        monkeypatch.setattr(locks.time, "sleep", lambda _: None)
        wait_for(folder, ["a", "free"])
