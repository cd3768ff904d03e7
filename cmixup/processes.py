"""Processes by their numbers, and whether they still live: the owners of locks and temporary files."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import platform
from pathlib import Path


@functools.cache
def place() -> str:
    """Return the space of process numbers that this process is in, as eight hexadecimal digits: host and container."""
    space = ""
    with contextlib.suppress(OSError):
        space = os.readlink("/proc/self/ns/pid")  # noqa: PTH115 - no path, but `pid:[number]`
    return hashlib.sha256(f"{platform.node()} {space}".encode()).hexdigest()[:8]


def began(pid: int) -> str:
    """Return when a process of this place began, in the kernel's ticks: its number may be given again to another.

    Nothing if there is no such process, it has ended and waits to be reaped, or the system does not say.
    """
    with contextlib.suppress(OSError, IndexError):
        state, *fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
        return "" if state in "ZX" else fields[18]
    return ""


def is_alive(pid: int, since: str = "") -> bool:
    """Return whether a process of this place lives; `since` is its result of `began`, if known."""
    if Path("/proc/self/stat").exists():
        now = began(pid)
        return bool(now) and (not since or now == since)
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
