"""What is read once for all pieces of one rendering."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Callable, Iterator
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

_memory: dict[Any, Any] | None = None


@contextlib.contextmanager
def read_once() -> Iterator[None]:
    """Within the block every function with `@remember_reads` computes each value once: no file changes meanwhile."""
    global _memory  # noqa: PLW0603 - one rendering a process
    before, _memory = _memory, {}
    try:
        yield
    finally:
        _memory = before


def remember_reads(function: Callable[P, T]) -> Callable[P, T]:
    """Keep what a function returns within `read_once`; it is shared and must not be changed."""

    @functools.wraps(function)
    def ask(*args: P.args, **more: P.kwargs) -> T:
        if _memory is None:
            return function(*args, **more)
        key = function, args, tuple(sorted(more.items()))
        if key not in _memory:
            _memory[key] = function(*args, **more)
        return _memory[key]

    return ask
