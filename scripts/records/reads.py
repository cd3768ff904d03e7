"""Which files a piece of work reads, and what is read once for all pieces of one rendering."""

from __future__ import annotations

import contextlib
import functools
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_watchers: list[set[Path]] = []
_memory: dict[Any, tuple[Any, set[Path]]] | None = None


def note_read(path: Path | str) -> None:
    """Say that a file is read, where Python does not: HDF5 opens its files itself, and a cache opens none."""
    if _watchers:
        _watchers[-1].add(Path(path).absolute())


@functools.cache
def _listen_once() -> None:
    """Hear of every file that Python opens to read; an audit hook stays until the process ends."""

    def hear(event: str, about: tuple[Any, ...]) -> None:
        if not _watchers or event != "open" or not isinstance(about[0], str | Path):
            return
        if set(str(about[1] or "r")) <= set("rbt"):
            note_read(about[0])

    sys.addaudithook(hear)


@contextlib.contextmanager
def watch_reads() -> Iterator[set[Path]]:
    """Yield a set that fills with the files that the block reads; an outer block hears of them too."""
    _listen_once()
    found: set[Path] = set()
    _watchers.append(found)
    try:
        yield found
    finally:
        _watchers.pop()
        if _watchers:
            _watchers[-1].update(found)


@contextlib.contextmanager
def read_once() -> Iterator[None]:
    """Within the block every function with `@remembered` computes each value once, since no file changes meanwhile."""
    global _memory  # noqa: PLW0603 - one rendering a process
    before, _memory = _memory, {}
    try:
        yield
    finally:
        _memory = before


def remember_reads(function: Callable[P, T]) -> Callable[P, T]:
    """Keep what a function returns within `read_once`, and note what it read each time that it is asked.

    What it returns is shared and must not be changed.
    """

    @functools.wraps(function)
    def ask(*args: P.args, **more: P.kwargs) -> T:
        if _memory is None:
            return function(*args, **more)
        key = function, args, tuple(sorted(more.items()))
        if key not in _memory:
            with watch_reads() as read:
                value = function(*args, **more)
            _memory[key] = value, read
        value, read = _memory[key]
        for path in read:
            note_read(path)
        return value

    return ask
