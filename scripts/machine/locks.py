"""Who works on what: a lock is a file that a process has locked, which the kernel gives back when the process ends.

Locks are `flock`'s, which see processes in other containers and, through NFS, on other machines. Several are taken at
once, so that two commands train what one after the other would. A file system that cannot lock keeps nobody apart, and
a line says so. Where there is no `flock` (Windows), `scripts.machine.portable_locks` keeps them.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from scripts.machine import portable_locks

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

LOCKS = ".locks"  # of the out folder; gone when nobody works there
PUBLISHING = "published runs"  # the lock of whoever writes records and the seal of results/
WAIT = 0.3  # seconds between two looks at a lock that another process holds


@contextlib.contextmanager
def holding_locks(folder: Path, names: Sequence[str]) -> Iterator[list[str]]:
    """Take the locks of these names, those that are free; they are given back at the end.

    Args:
        folder: that holds the locks.
        names: of what is worked on.

    Yields:
        The names taken.

    Raises:
        OSError: the folder cannot be written.
    """
    if fcntl is None:
        with portable_locks.holding_locks({name: path_of(folder, name) for name in names}) as mine:
            yield mine
        return
    taken: dict[str, int] = {}
    try:
        with _guarded_folder(folder):
            _clean_dead(folder)
            for name in names:
                if (handle := _open_locked(path_of(folder, name))) is not None:
                    taken[name] = handle
                    os.ftruncate(handle, 0)
                    os.write(handle, os.fsencode(portable_locks.own_name()))
        yield list(taken)
    finally:
        with contextlib.suppress(OSError), _guarded_folder(folder):
            for name, handle in taken.items():
                path_of(folder, name).unlink(missing_ok=True)
                _release_lock(handle)
            folder.rmdir()  # refuses while others hold locks


def clean_locks(folder: Path) -> None:
    """Remove the locks of processes that were killed when their work was done, and the folder if no other is held."""
    if fcntl is None:
        portable_locks.clean_locks(folder)
    elif folder.is_dir():
        with contextlib.suppress(OSError), _guarded_folder(folder):
            _clean_dead(folder)
            folder.rmdir()


@contextlib.contextmanager
def holding_alone(folder: Path, name: str) -> Iterator[None]:
    """Take the lock of this name, and wait for whoever holds it."""
    while True:
        with holding_locks(folder, [name]) as taken:
            if taken:
                yield
                return
        wait_for(folder, [name])


def path_of(folder: Path, name: str) -> Path:
    """Return the file of a lock."""
    return folder / f"{hashlib.sha256(name.encode()).hexdigest()[:24]}.lock"


def wait_for(folder: Path, names: Sequence[str]) -> None:
    """Wait until one of these locks is free; say in a line who holds it."""
    said = set[str]()
    while True:
        time.sleep(WAIT)
        for name in names:
            path = path_of(folder, name)
            with contextlib.suppress(OSError):
                handle = _open_locked(path, os.O_RDWR) if fcntl else portable_locks.lock_free(path)
                if handle is None:
                    owner = owner_of(path)
                    if owner not in said:
                        said.add(owner)
                        print(f"{name} is being made by {owner}: waiting for it", file=sys.stderr)
                    continue
                if fcntl:
                    _release_lock(handle)
            return


def owner_of(path: Path) -> str:
    """Return what the holder of a lock has written of itself."""
    return (path if fcntl else portable_locks.owner_path(path)).read_text(errors="backslashreplace")


def _open_locked(path: Path, flags: int = os.O_RDWR | os.O_CREAT) -> int | None:
    """Open and lock a file; None where another process has it."""
    handle = os.open(path, flags, 0o666)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        return None
    except OSError as error:
        print(f"{path}: {error.strerror}; other commands may do the same work", file=sys.stderr)
    return handle


def _release_lock(handle: int) -> None:
    """Give a lock back; a process that was forked meanwhile holds it no longer, either."""
    with contextlib.suppress(OSError):
        fcntl.flock(handle, fcntl.LOCK_UN)
    os.close(handle)


@contextlib.contextmanager
def _guarded_folder(folder: Path) -> Iterator[None]:
    """Let one process at a time make and remove the locks of a folder, which is made if it is not there."""
    while True:
        folder.mkdir(parents=True, exist_ok=True)
        with contextlib.suppress(FileNotFoundError):
            handle = os.open(folder, os.O_RDONLY)
            with contextlib.suppress(OSError):
                fcntl.flock(handle, fcntl.LOCK_EX)
            # Its last user may just have removed it, which makes another folder of the next one.
            with contextlib.suppress(FileNotFoundError):
                if os.fstat(handle).st_ino == folder.stat().st_ino:
                    break
            os.close(handle)
    try:
        yield
    finally:
        os.close(handle)


def _clean_dead(folder: Path) -> None:
    """Remove the locks of the dead."""
    for path in folder.iterdir():
        with contextlib.suppress(OSError):
            if (handle := _open_locked(path)) is not None:
                path.unlink()
                _release_lock(handle)
