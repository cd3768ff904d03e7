"""The register of what is rendered: a figure, file or part of a page is a function with one of these decorators.

    @draws
    def figures() -> dict[str, Figure]: ...

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
        make: the function; it takes no argument that has no default.
    """

    kind: str
    make: Callable[..., Mapping[str, Any]]


F = TypeVar("F", bound=Callable[..., Mapping[str, Any]])
ENTRIES: dict[str, list[Entry]] = {}  # by module


def _enter(kind: str, function: F) -> F:
    ENTRIES.setdefault(function.__module__, []).append(Entry(kind, function))
    return function


def draws(function: F) -> F:
    """Register a function that returns figures by the paths of their pictures below results/."""
    return _enter(FIGURES, function)


def writes(function: F) -> F:
    """Register a function that returns texts by the paths of their files below results/."""
    return _enter(FILES, function)


def fills(function: F) -> F:
    """Register a function that returns texts by page and place: `{"README.md": {"study": ...}}`."""
    return _enter(PARTS, function)
