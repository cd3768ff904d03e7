"""The register of what is rendered: a figure, a file or the parts of a page are a function with a decorator of these.

    @draws
    def figures() -> dict[str, Figure]: ...

`scripts.report.rendering` finds every file that has one, so that a new figure is one file and edits no other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

F = TypeVar("F", bound=Callable[..., Mapping[str, Any]])
#: The functions by what they return. None takes an argument that has no default.
FIGURES: list[Callable[..., Mapping[str, Any]]] = []
FILES: list[Callable[..., Mapping[str, str]]] = []
PARTS: list[Callable[..., Mapping[str, Mapping[str, str]]]] = []


def draws(function: F) -> F:
    """Register a function that returns figures by the paths of their pictures below results/."""
    FIGURES.append(function)
    return function


def writes(function: F) -> F:
    """Register a function that returns texts by the paths of their files below results/."""
    FILES.append(function)
    return function


def fills(function: F) -> F:
    """Register a function that returns texts by page and place: `{"README.md": {"study": ...}}`."""
    PARTS.append(function)
    return function
