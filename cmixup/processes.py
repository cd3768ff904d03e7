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
    try:  # of other users nothing may be shown there (hidepid)
        os.kill(pid, 0)
    except (ProcessLookupError, OverflowError):
        return False
    except PermissionError:
        return True
    return True
