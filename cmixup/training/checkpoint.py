"""Training that survives an interruption: everything a run needs to go on, in one file."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from cmixup.errors import InputError
from cmixup.files import write_atomically

RESUME_FILE = "resume.pt"
FORMAT = 3  # of that file; one of another format is not gone on from


@dataclass(frozen=True)
class Checkpoints:
    """Where and how often a run's state is saved.

    Args:
        folder: gives the folder of a seed; a stack of seeds uses that of its first.
        every: epochs between two savings, 1 or more.
        key: what identifies the run; a file with another key is not gone on from.
    """

    folder: Callable[[int], Path]
    every: int
    key: str

    def __post_init__(self) -> None:
        if self.every < 1:
            raise InputError(f"checkpoint_every must be 1 or more to save anything, got {self.every!r}")

    def path(self, seeds: Sequence[int]) -> Path:
        """Return the file of a stack."""
        return self.folder(seeds[0]) / RESUME_FILE

    def save(self, seeds: Sequence[int], state: dict[str, Any]) -> None:
        """Write a stack's state, whole or not at all."""
        buffer = io.BytesIO()
        torch.save({**state, "format": FORMAT, "key": self.key, "seeds": list(seeds)}, buffer)
        write_atomically(self.path(seeds), buffer.getvalue())

    def load(self, seeds: Sequence[int]) -> dict[str, Any] | None:
        """Return the state of this stack on the CPU, or None where there is none to go on from."""
        path = self.path(seeds)
        if not path.is_file():
            return None
        state = torch.load(path, map_location="cpu", weights_only=True)
        found = tuple(state.get(name) for name in ("format", "key", "seeds"))
        return state if found == (FORMAT, self.key, list(seeds)) else None


def random_state(device: torch.device) -> dict[str, torch.Tensor]:
    """Return the states of PyTorch's generators: the CPU's, and that of the device that is trained on."""
    state = {"cpu": torch.get_rng_state()}
    return state | (
        {} if device.type == "cpu" else {device.type: torch.get_device_module(device).get_rng_state(device)}
    )


def set_random_state(state: dict[str, torch.Tensor], device: torch.device) -> None:
    """Put the states of PyTorch's generators back; a run that goes on on another kind of device has none for it."""
    torch.set_rng_state(state["cpu"])
    if device.type != "cpu" and device.type in state:
        torch.get_device_module(device).set_rng_state(state[device.type], device)
