"""Who works on what: a lock is a file that names its process, and a dead process holds nothing.

A process that has been killed is known to be dead where its number can be looked up, on its own machine. Of one
elsewhere the file's time is read, which its owner renews every `BEAT` seconds: after `SILENCE` it counts as dead. Times
are compared on the file system that holds the locks, so clocks may differ. A lock is made by `link`, which is atomic on
network file systems, too; several are taken at once, so that two commands train what one after the other would.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import platform
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cmixup.processes import began, is_alive, place

LOCKS = ".locks"  # of the out folder; gone when nobody works there
BEAT, SILENCE = 15.0, 120.0  # seconds
LOCK = ".lock"  # ends the name of a lock
WAIT = 0.3  # seconds between two looks at a lock that another process holds


@dataclass(frozen=True)
class Owner:
    """The process that a lock names."""

    host: str
    place: str
    pid: int
    began: str
    token: str

    def __str__(self) -> str:
        return f"process {self.pid} on {self.host}"


@contextlib.contextmanager
def holding(folder: Path, names: Sequence[str]) -> Iterator[list[str]]:
    """Take the locks of these names, those that are free; they are given back at the end.

    Args:
        folder: that holds the locks.
        names: of what is worked on.

    Yields:
        The names taken.

    Raises:
        OSError: the folder cannot be written.
    """
    token = uuid.uuid4().hex
    paths = {name: path_of(folder, name) for name in names}
    taken: list[str] = []
    done = threading.Event()
    try:
        with _guarded(folder):
            _clean(folder)
            taken.extend(name for name, path in paths.items() if _take(path, token, name))
        beat = threading.Thread(target=_keep, args=([paths[name] for name in taken], done), daemon=True)
        beat.start()
        yield taken
    finally:
        done.set()
        if taken:
            with contextlib.suppress(OSError), _guarded(folder):
                for name in taken:
                    if (owner := owner_of(paths[name])) and owner.token == token:
                        paths[name].unlink(missing_ok=True)
        with contextlib.suppress(OSError), _guarded(folder):
            folder.rmdir()  # refuses while others hold locks


def clean(folder: Path) -> None:
    """Remove the locks of processes that were killed when their work was done, and the folder if no other is held."""
    if folder.is_dir():
        with contextlib.suppress(OSError), _guarded(folder):
            _clean(folder)
            folder.rmdir()


@contextlib.contextmanager
def alone(folder: Path, name: str) -> Iterator[None]:
    """Take the lock of this name, and wait for whoever holds it."""
    while True:
        with holding(folder, [name]) as taken:
            if taken:
                yield
                return
        wait_for(folder, [name])


def path_of(folder: Path, name: str) -> Path:
    """Return the file of a lock."""
    return folder / f"{hashlib.sha256(name.encode()).hexdigest()[:24]}{LOCK}"


def owner_of(path: Path) -> Owner | None:
    """Return whom a lock names, or None where it is free, or being given back."""
    try:
        found = json.loads(path.read_text())
        return Owner(**{key: found[key] for key in ("host", "place", "pid", "began", "token")})
    except (OSError, ValueError, KeyError, TypeError):
        return None


def wait_for(folder: Path, names: Sequence[str]) -> None:
    """Wait until one of these locks is free; say in a line who holds it."""
    said = set[str]()
    while True:
        time.sleep(WAIT)
        for name in names:
            path = path_of(folder, name)
            owner = owner_of(path)
            if owner is None or not _holds(path, owner, time.time):
                return
            if owner.token not in said:
                said.add(owner.token)
                print(f"{name} is being made by {owner}: waiting for it", file=sys.stderr)


def _take(path: Path, token: str, name: str) -> bool:
    """Make a lock; one whose owner is dead is taken away first."""
    mine = path.with_suffix(f".{token}")
    owner = Owner(platform.node(), place(), os.getpid(), began(os.getpid()), token)
    try:
        mine.write_text(json.dumps({**vars(owner), "what": name}))
        for _ in range(3):
            try:
                os.link(mine, path)
            except FileExistsError:
                found = owner_of(path)
                if found and _holds(path, found, lambda: mine.stat().st_mtime):
                    return False
                _take_away(path, found)
            else:
                return True
        return False
    finally:
        mine.unlink(missing_ok=True)


def _take_away(path: Path, seen: Owner | None) -> None:
    """Remove the lock of a dead owner; where it has changed hands since it was seen, put it back."""
    aside = path.with_suffix(f".{uuid.uuid4().hex}")
    with contextlib.suppress(FileNotFoundError):
        path.rename(aside)
        if owner_of(aside) != seen:
            with contextlib.suppress(FileExistsError):
                os.link(aside, path)
        aside.unlink()


def _holds(path: Path, owner: Owner, now: Callable[[], float]) -> bool:
    """Return whether the owner of a lock lives; `now` is the time of the file system."""
    if owner.place == place():
        return is_alive(owner.pid, owner.began)
    try:
        return now() - path.stat().st_mtime < SILENCE
    except FileNotFoundError:
        return False


def _keep(paths: Sequence[Path], done: threading.Event) -> None:
    """Renew the times of locks until `done`."""
    while not done.wait(BEAT):
        for path in paths:
            with contextlib.suppress(OSError):
                os.utime(path)


@contextlib.contextmanager
def _guarded(folder: Path) -> Iterator[None]:
    """Let one process at a time look at the locks of a folder, where the file system can lock; else the links do."""
    handle = _open(folder)
    try:
        yield
    finally:
        os.close(handle)


def _open(folder: Path) -> int:
    """Make and lock a folder; its last user may just have removed it, which makes another folder of the next one."""
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            handle = os.open(folder, os.O_RDONLY)
            with contextlib.suppress(OSError):
                fcntl.flock(handle, fcntl.LOCK_EX)
            with contextlib.suppress(FileNotFoundError):
                if os.fstat(handle).st_ino == folder.stat().st_ino:
                    return handle
            os.close(handle)


def _clean(folder: Path) -> None:
    """Remove the locks of the dead, and what processes left that were killed while they took one."""
    for path in folder.iterdir():
        owner = owner_of(path)
        with contextlib.suppress(OSError):
            if not _holds(path, owner, time.time) if owner else time.time() - path.stat().st_mtime > SILENCE:
                _take_away(path, owner)
