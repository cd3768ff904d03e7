"""Locks: those of the library filelock, which the system gives back when the process that holds them ends.

They keep processes in other containers and, through NFS, on other machines apart as well.
"""

import contextlib
import hashlib
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from filelock import FileLock, Timeout

LOCKS = ".locks"  # of a folder that is worked in; its empty files stay
PUBLISHING = "published runs"  # the lock of whoever writes records


@contextlib.contextmanager
def holding_locks(folder: Path, names: Sequence[str], *, wait: bool = False) -> Iterator[list[str]]:
    """Take the locks of `names` in a folder, those that are free, and yield these; they are given back at the end.

    Several are taken at once, so that two commands train what one after the other would. With `wait` the first of them
    is waited for where another process holds it, which a line says.
    """
    locks = folder / LOCKS
    locks.mkdir(parents=True, exist_ok=True)
    taken = list[str]()
    with contextlib.ExitStack() as stack:
        for name in names:
            lock = FileLock(locks / f"{hashlib.sha256(name.encode()).hexdigest()[:24]}.lock", thread_local=False)
            try:
                lock.acquire(blocking=False)
            except Timeout:
                if not wait or taken or name != names[0]:
                    continue
                print(f"{name} is being made by another process: waiting for it", file=sys.stderr)
                lock.acquire()
            stack.callback(lock.release)
            taken.append(name)
        yield taken
