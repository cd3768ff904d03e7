"""A seed is worked on by one process at a time, and a dead one holds nothing."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

import pytest

from cmixup import processes
from scripts.driver import locks
from scripts.driver.locks import Owner, alone, clean, holding, owner_of, path_of, wait_for


def test_what_is_held_is_not_taken_and_nothing_stays(tmp_path: Path) -> None:
    folder = tmp_path / "out" / ".locks"
    with holding(folder, ["a", "b"]) as mine, holding(folder, ["b", "c"]) as yours:
        assert (mine, yours) == (["a", "b"], ["c"])
        owner = owner_of(path_of(folder, "b"))
        assert owner is not None
        assert (owner.pid, owner.place) == (os.getpid(), processes.place())
        assert str(owner).startswith(f"process {os.getpid()} on ")
    assert not folder.exists()


def held_by(folder: Path, name: str, **changes: object) -> Path:
    """A lock of this process, but for `changes`."""
    path = path_of(folder, name)
    path.parent.mkdir(parents=True, exist_ok=True)
    mine = {"host": "here", "place": processes.place(), "pid": os.getpid(), "began": processes.began(os.getpid())}
    path.write_text(json.dumps({**mine, "token": "theirs", **changes}))
    return path


def dead_child() -> int:
    """The number of a process that has ended and waits to be reaped."""
    child = os.fork()
    if not child:
        os._exit(0)
    os.waitid(os.P_PID, child, os.WEXITED | os.WNOWAIT)
    return child


def test_the_lock_of_a_dead_process_is_free(tmp_path: Path) -> None:
    child = dead_child()
    held_by(tmp_path, "zombie", pid=child, began="")
    held_by(tmp_path, "number given again", began="1")
    held_by(tmp_path, "alive")
    path_of(tmp_path, "empty").write_text("")
    with holding(tmp_path, ["zombie", "number given again", "alive", "empty"]) as mine:
        assert mine == ["zombie", "number given again", "empty"]
    os.waitpid(child, 0)
    assert [path.name for path in tmp_path.iterdir()] == [path_of(tmp_path, "alive").name]


def test_of_another_machine_the_beat_counts(tmp_path: Path) -> None:
    """A process number says nothing there; the lock's time is renewed while its owner lives."""
    path = held_by(tmp_path, "a", place="elsewhere", pid=1)
    with holding(tmp_path, ["a"]) as mine:
        assert mine == []
    old = time.time() - locks.SILENCE - 1
    os.utime(path, (old, old))
    with holding(tmp_path, ["a"]) as mine:
        assert mine == ["a"]


def test_a_lock_beats(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "BEAT", 0.01)
    with holding(tmp_path / "locks", ["a"]):
        path = path_of(tmp_path / "locks", "a")
        os.utime(path, (1, 1))
        until = time.monotonic() + 5
        while path.stat().st_mtime < 2 and time.monotonic() < until:
            time.sleep(0.01)
        assert path.stat().st_mtime > 2


def test_a_lock_that_changed_hands_since_it_was_seen_stays(tmp_path: Path) -> None:
    path = held_by(tmp_path, "a")
    locks._take_away(path, Owner("here", "there", 1, "", "of a dead process"))
    assert [found.token for found in [owner_of(path)] if found] == ["theirs"]
    assert list(tmp_path.iterdir()) == [path]


def test_a_lock_that_another_one_took_over_is_not_given_back(tmp_path: Path) -> None:
    """To a process elsewhere a silent owner is dead; it may come to life again, and end."""
    with holding(tmp_path, ["a", "b"]):
        path = held_by(tmp_path, "a")
    assert [found.token for found in [owner_of(path)] if found] == ["theirs"]
    assert list(tmp_path.iterdir()) == [path]


def test_what_a_killed_process_left_of_taking_a_lock_goes(tmp_path: Path) -> None:
    held_by(tmp_path, "a", began="1").rename(tmp_path / "x.token")
    with holding(tmp_path, ["b"]):
        pass
    assert not tmp_path.exists()


def test_the_locks_of_the_dead_are_cleaned(tmp_path: Path) -> None:
    """Of a process that was killed when its work was done, so that nobody takes them."""
    held_by(tmp_path / "locks", "a", began="1")
    clean(tmp_path / "locks")
    assert not (tmp_path / "locks").exists()
    held_by(tmp_path / "locks", "b")
    clean(tmp_path / "locks")
    assert owner_of(path_of(tmp_path / "locks", "b")) is not None


def test_waiting_says_for_whom_and_ends(tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch) -> None:
    path = held_by(tmp_path, "seed 3")
    monkeypatch.setattr(locks.time, "sleep", lambda _: path.unlink() if capsys_seen(capsys) else None)
    wait_for(tmp_path, ["seed 3"])


def capsys_seen(capsys: pytest.CaptureFixture[str]) -> bool:
    """Whether a line about the owner has been printed."""
    return f"seed 3 is being made by process {os.getpid()} on here: waiting for it" in capsys.readouterr().err


def test_alone_waits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = held_by(tmp_path, "results")
    monkeypatch.setattr(locks.time, "sleep", lambda _: path.unlink(missing_ok=True))
    with alone(tmp_path, "results"):
        assert owner_of(path) != Owner("here", processes.place(), os.getpid(), "", "theirs")
