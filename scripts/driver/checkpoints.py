"""Training that survives an interruption: everything that the runs of a stack need to go on, in one file."""

import io
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from cmixup.errors import InputError, format_value
from cmixup.files import read_tensors, set_aside, write_atomically
from cmixup.tree import map_leaves

RESUME_FILE = "resume.pt"
PLAIN = (bool, int, float, complex, str, bytes, type(None))  # what such a file holds besides tensors
FORMAT = 5  # of that file; one of another format is not gone on from


@dataclass(frozen=True)
class Checkpoints:
    """Where and how often a run's state is saved."""

    folder: Callable[[int], Path]  #: of a seed; a stack of seeds uses that of its first
    every: int  #: epochs between two savings, 1 or more
    key: str  #: identity of the run; a file with another key is not gone on from
    #: Other facts that its numbers depend on, beside the data's checksums, such as the commit.
    origin: Mapping[str, str] = field(default_factory=dict)
    any_origin: bool = False  #: go on from a file of another origin, too; otherwise it is refused, and nothing is lost

    def path(self, seeds: Sequence[int]) -> Path:
        """Return the file of a stack."""
        return self.folder(seeds[0]) / RESUME_FILE

    def save(self, seeds: Sequence[int], state: dict[str, Any], data: Mapping[str, str] | None = None) -> None:
        """Write a stack's state, whole or not at all; `data` are the checksums of its training data."""
        for method in state.get("methods", ()):
            map_leaves(_check_readable, "state of the method", method)
        buffer = io.BytesIO()
        about = {"format": FORMAT, "key": self.key, "seeds": list(seeds), "origin": self._origin(data)}
        torch.save({**state, **about}, buffer)
        write_atomically(self.path(seeds), buffer.getvalue())

    def load(self, seeds: Sequence[int], data: Mapping[str, str] | None = None) -> dict[str, Any] | None:
        """Return the state of this stack on the CPU, or None where there is none to go on from.

        A file that cannot be read is set aside, and a line says so. One of another version or origin is refused.
        """
        path, state = self.path(seeds), None
        try:
            state = read_tensors(path) if path.is_file() else None
        except (MemoryError, PermissionError):
            raise
        except Exception as error:  # whatever a damaged file may raise
            reason = " ".join(str(error).split())[:100]
            set_aside(path, f"cannot be read and is not gone on from ({type(error).__name__}: {reason})")
        if state is not None and state.get("format") != FORMAT:
            raise InputError(f"{path} was saved by another version of this code: rerun=true trains from the start")
        if state is None or [state.get(name) for name in ("key", "seeds")] != [self.key, list(seeds)]:
            return None
        before, now = state.get("origin", {}), self._origin(data)
        differ = [name for name in sorted({*before, *now}) if before.get(name) != now.get(name)]
        if differ and not self.any_origin:
            words = ", ".join(f"{name} {before.get(name) or 'not recorded'}, now {now.get(name)}" for name in differ)
            raise InputError(f"{path} was saved after epoch {state['train']['epoch']} with another origin ({words}): "
                             "resume=any goes on from it, rerun=true trains from the start")  # fmt: skip
        return state

    def _origin(self, data: Mapping[str, str] | None) -> dict[str, str]:
        return {**self.origin, **{f"data {name}": checksum for name, checksum in (data or {}).items()}}


def _check_readable(place: str, value: Any) -> None:
    """Raise `InputError` unless `read_tensors` reads a leaf again: NumPy's numbers and arrays it does not."""
    if not isinstance(value, torch.Tensor) and type(value) not in PLAIN:
        raise InputError(
            f"{place} must be tensors and Python's numbers and words to be saved, got {format_value(value)}"
        )
