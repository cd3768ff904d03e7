"""Locks where the kernel has no `flock`, by the library filelock; `scripts.machine.locks` calls these there.

On Windows the kernel holds them, and gives them back when a process ends. A lock that nobody holds may stay as an empty
file; `clean_locks` removes it. Who holds one stands in a file beside it, since Windows lets nobody read a locked file.
"""

from __future__ import annotations

import contextlib
import os
import platform
from collections.abc import Iterator, Mapping
from pathlib import Path

from filelock import FileLock, Timeout

OWNER = ".owner"  # ends the name of the file that says who holds a lock


@contextlib.contextmanager
def holding_locks(paths: Mapping[str, Path]) -> Iterator[list[str]]:
    """Take the locks that are free, and give them back at the end; yield their names."""
    taken: dict[str, FileLock] = {}
    try:
        for name, path in paths.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            lock = FileLock(path, is_singleton=False, thread_local=False)
            with contextlib.suppress(Timeout):
                lock.acquire(blocking=False)
                taken[name] = lock
                owner_path(path).write_bytes(os.fsencode(own_name()))
        yield list(taken)
    finally:
        for name, lock in taken.items():
            owner_path(paths[name]).unlink(missing_ok=True)
            lock.release()
        for folder in {path.parent for path in paths.values()}:
            clean_locks(folder)


def lock_free(path: Path) -> int | None:
    """Return 0 if nobody holds a lock, else None."""
    lock = FileLock(path, is_singleton=False, thread_local=False)
    try:
        lock.acquire(blocking=False)
    except Timeout:
        return None
    lock.release()
    return 0


def clean_locks(folder: Path) -> None:
    """Remove the locks that nobody holds, and the folder if there are no others."""
    with contextlib.suppress(OSError):
        for path in folder.glob("*.lock"):
            with contextlib.suppress(OSError):
                if lock_free(path) is not None:
                    path.unlink(missing_ok=True)
                    owner_path(path).unlink(missing_ok=True)
        folder.rmdir()


def owner_path(path: Path) -> Path:
    """Return the file that says who holds a lock."""
    return path.with_name(path.name + OWNER)


def own_name() -> str:
    """Return the words that name this process to others."""
    return f"process {os.getpid()} on {platform.node()}"
