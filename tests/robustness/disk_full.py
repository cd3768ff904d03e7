"""The disk is full in the middle of a command: it says so, and ends as if nothing had been once there is room."""

import contextlib
import ctypes
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tests.robustness.base import MOST, Trial, note_progress
from tests.robustness.commands import Command, content, differences, finished, half_files, import_all, tail, words
from tests.robustness.scenes import STACK

WHAT = (
    "a stack of three seeds whose disk is full at a random moment says so in one line and leaves no half file; with "
    "room again it ends as if nothing had been"
)
SIZE = 4 * 2**20  # bytes of the disk


def run(count: int, seed: int, folder: Path) -> Trial:
    """Fill a small disk `count` times, to different degrees."""
    began, rng, failures = time.perf_counter(), np.random.default_rng(seed), list[str]()
    import_all()
    folder.mkdir(parents=True, exist_ok=True)
    disk = folder / "disk"
    try:
        with mounted(disk):
            pass
    except OSError as error:
        why = f"not tried: a small disk cannot be mounted here ({error.strerror}; it takes root)"
        return Trial("disk_full", WHAT, 0, 0, (), time.perf_counter() - began, why)
    with mounted(disk):
        if code := _command(disk / "out").run(folder / "log"):
            raise RuntimeError(f"the undisturbed command ended with {code}: {tail(folder / 'log')}")
        reference = content(disk / "out")
        needed = sum(4096 * -(-path.stat().st_size // 4096) for path in (disk / "out").rglob("*"))
    for k in range(count):
        room, wrong, log = int(rng.uniform(0.0, 1.0) * needed), list[str](), folder / f"log {k}"
        with mounted(disk):
            (disk / "filler").write_bytes(b"x" * (SIZE - 8192 - room))
            code = _command(disk / "out").run(log)
            said = [line for line in log.read_text().splitlines() if "No space left" in line]
            if code and (code != 2 or len(said) != 1 or "Traceback" in log.read_text()):
                wrong.append(f"ended with {code}: {tail(log)}")
            wrong += [f"half a file: {path}" for path in half_files(disk / "out")]
            before = finished(disk / "out")
            (disk / "filler").unlink()
            if code := _command(disk / "out").run(log):
                wrong.append(f"ended with {code} though there was room: {tail(log)}")
            now = finished(disk / "out")
            wrong += [f"trained again: {name}" for name, state in before.items() if now.get(name) != state]
            wrong += [f"not as undisturbed: {name}" for name in differences(content(disk / "out"), reference)]
        if wrong:
            failures.append(f"with room for {room} of {needed} bytes: {'; '.join(wrong)}")
        note_progress(folder, k + 1, count)
    notes = f"a tmpfs of {SIZE // 2**20} MB"
    return Trial("disk_full", WHAT, count, count - len(failures), tuple(failures[:MOST]),
                 time.perf_counter() - began, notes)  # fmt: skip


def _command(out: Path) -> Command:
    return Command("scripts.train", words(*STACK, "train.epochs=4", "checkpoint_every=2", out=out))


@contextlib.contextmanager
def mounted(folder: Path) -> Iterator[None]:
    """Mount an empty tmpfs of `SIZE` bytes at a folder.

    Raises:
        OSError: this process may not.
    """
    folder.mkdir(exist_ok=True)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"tmpfs", str(folder).encode(), b"tmpfs", 0, f"size={SIZE}".encode()):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    try:
        yield
    finally:
        libc.umount2(str(folder).encode(), 2)  # lazily: whoever still looks at it may go on
        shutil.rmtree(folder, ignore_errors=True)
