"""Who trains what: a small file for each piece of work, which is made by one process and by no second one."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Clock = Callable[[], float]  # seconds since 1970, as `time.time`


@dataclass(frozen=True)
class Taken:
    """A piece of work that this process has taken.

    Attributes:
        path: its file.
    """

    path: Path

    def give_back(self) -> None:
        """Let others take it."""
        self.path.unlink(missing_ok=True)

    def give_up(self, why: str) -> None:
        """Say that it failed: nobody takes it again until the file is removed."""
        self.path.write_text(json.dumps({"failed": why}))


def take(folder: Path, name: str, until: float, clock: Clock) -> Taken | None:
    """Take a piece of work, or return None where another process has it or it has failed.

    What was taken by a process of this machine that is no more, or up to a time that has passed, is free.

    Args:
        folder: where the files are; made if it is not there.
        name: of the work, a file's name.
        until: when this process will have given it back, in seconds since 1970.
        clock: tells the time.
    """
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.json"
    mine = json.dumps({"host": socket.gethostname(), "process": os.getpid(), "until": until})
    if _make(path, mine):
        return Taken(path)
    old = _read(path)
    if old is None or not _is_free(old, clock()):
        return None
    # Of several that see this, one renames the file that they saw; another may meet the new file, and puts it back.
    aside = folder / f".{name}.{socket.gethostname()}.{os.getpid()}"
    try:
        path.rename(aside)
    except FileNotFoundError:
        return None
    found = _read(aside)
    if found != old:
        with contextlib.suppress(FileExistsError):
            path.hardlink_to(aside)
    aside.unlink(missing_ok=True)
    return Taken(path) if found == old and _make(path, mine) else None


def is_free(folder: Path, name: str, clock: Clock) -> bool:
    """Return whether `take` would give a piece of work now."""
    path = folder / f"{name}.json"
    old = _read(path)
    return not path.exists() if old is None else _is_free(old, clock())


def _make(path: Path, text: str) -> bool:
    """Make a file with this text, if there is none; it appears whole."""
    beside = path.with_name(f".{path.name}.{socket.gethostname()}.{os.getpid()}.new")
    beside.write_text(text)
    try:
        path.hardlink_to(beside)
    except FileExistsError:
        return False
    finally:
        beside.unlink(missing_ok=True)
    return True


def _read(path: Path) -> dict[str, Any] | None:
    try:
        found = json.loads(path.read_text())
    except (OSError, ValueError):
        return None
    return found if isinstance(found, dict) else None


def _is_free(old: dict[str, Any], now: float) -> bool:
    if "failed" in old:
        return False
    if old.get("until", 0) < now:
        return True
    return old.get("host") == socket.gethostname() and not _is_alive(int(old.get("process", 0)))


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
