"""Processes by their numbers: whether they live (owners of locks and temporary files), and how many cores they use."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import platform
import sys
from pathlib import Path
from typing import Any


@functools.cache
def place() -> str:
    """Return the space of process numbers that this process is in, as eight hexadecimal digits: machine and container.

    Two machines may have one name, and the first container of each one number; no two starts of a machine have one id.
    """
    space = started = ""
    with contextlib.suppress(OSError):
        space = os.readlink("/proc/self/ns/pid")  # noqa: PTH115 - no path, but `pid:[number]`
        started = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    named = os.fsencode(platform.node())  # a name need not be text
    return hashlib.sha256(named + f" {space} {started}".encode()).hexdigest()[:8]


def is_alive(pid: int) -> bool:
    """Return whether a process of this place lives; one that has ended and waits to be reaped does not."""
    with contextlib.suppress(OSError, IndexError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    if sys.platform == "win32":  # where signal 0 is Ctrl-C
        return _is_alive_on_windows(pid)
    try:  # of other users nothing may be shown there (hidepid)
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True


def core_count() -> int:
    """Return how many cores this process may use; macOS and Windows only tell how many there are."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1


def _is_alive_on_windows(pid: int) -> bool:
    """Return whether Windows has such a process that has not ended."""
    import ctypes

    windows: Any = ctypes
    kernel, synchronize, timeout = windows.windll.kernel32, 0x00100000, 0x102
    if not (handle := kernel.OpenProcess(synchronize, False, pid)):
        return bool(kernel.GetLastError() == 5)  # access denied: another user's
    try:
        return bool(kernel.WaitForSingleObject(handle, 0) == timeout)
    finally:
        kernel.CloseHandle(handle)
