"""Arguments that the estimators share, checked."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from cmixup.errors import InputError, check_count
from cmixup.sampling.inputs import MAX_LABEL, Floats

#: What sets the random numbers of an estimator.
RandomState = int | np.random.RandomState | np.random.Generator | None


def seed_of(random_state: RandomState) -> int:
    """Return a seed: the number itself, one drawn from a generator, or for None one from the operating system.

    NumPy's and torch's global generators are neither read nor seeded.

    Raises:
        InputError: `random_state` is none of these.
    """
    if random_state is None:
        return int(np.random.default_rng().integers(2**62))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**31 - 1))
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**62))
    return check_count("random_state", random_state, what="None, a NumPy generator or a whole number")


def device_of(device: Any) -> torch.device:
    """Return a device: "auto" is the GPU where there is one.

    Raises:
        InputError: there is no such device here.
    """
    if isinstance(device, str) and device == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        found = torch.device(device)
    except (RuntimeError, TypeError):
        found = torch.device("meta")
    if found.type not in ("cpu", "cuda"):
        raise InputError(f'device must be "cpu", "cuda" or "auto", got {device!r}')
    if found.type == "cuda" and (found.index or 0) >= torch.cuda.device_count():
        raise InputError(f"device must be one of this machine's {torch.cuda.device_count()} GPUs, got {device!r}")
    return found


def check_size(name: str, values: Floats) -> Floats:
    """Return values if their squares are finite, NaN aside, else raise `InputError`."""
    largest = float(np.fmax.reduce(np.abs(values), axis=None, initial=0.0))
    if largest > MAX_LABEL:
        raise InputError(f"{name} must be within +-{MAX_LABEL:g}, got {largest!r}")
    return values
