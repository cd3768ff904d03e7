"""The register of what is rendered: a figure, file or part of a page is a function with one of these decorators.

    @draws("results/runs")
    def figures() -> dict[str, Figure]: ...

A decorator takes the files, folders or patterns that the function reads, below the repository; configs/ needs no word.
`scripts.report.rendering` finds every file that has one, so that a new figure is one file and edits no other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

FIGURES, FILES, PARTS = "figures", "files", "parts"


@dataclass(frozen=True)
class Entry:
    """One function that renders something.

    Attributes:
        kind: what it returns: `FIGURES` and `FILES` are pictures and texts by their paths below results/, and `PARTS`
            are texts by the page, a path below the repository, and by the place in it.
        reads: what it may read, below the repository.
        make: the function; it takes no argument that has no default.
    """

    kind: str
    reads: tuple[str, ...]
    make: Callable[..., Mapping[str, Any]]


F = TypeVar("F", bound=Callable[..., Mapping[str, Any]])
ENTRIES: dict[str, list[Entry]] = {}  # by module


def _enter_function(kind: str, reads: tuple[str, ...]) -> Callable[[F], F]:
    def add(function: F) -> F:
        ENTRIES.setdefault(function.__module__, []).append(Entry(kind, reads, function))
        return function

    return add


def draws(*reads: str) -> Callable[[F], F]:
    """Register a function that returns figures by the paths of their pictures below results/."""
    return _enter_function(FIGURES, reads)


def writes(*reads: str) -> Callable[[F], F]:
    """Register a function that returns texts by the paths of their files below results/."""
    return _enter_function(FILES, reads)


def fills(*reads: str) -> Callable[[F], F]:
    """Register a function that returns texts by page and place: `{"README.md": {"study": ...}}`."""
    return _enter_function(PARTS, reads)
