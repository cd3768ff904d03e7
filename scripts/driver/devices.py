"""Which device a command uses."""

from __future__ import annotations

import os

import torch

from cmixup.errors import InputError, check_choice, format_value


def pick_device(name: str) -> torch.device:
    """Return the device called `name`: "auto" is CUDA, if any; each process of `torchrun` has its own GPU."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    if name == "cuda" and "LOCAL_RANK" in os.environ:
        name = f"cuda:{os.environ['LOCAL_RANK']}"
    try:
        device = torch.device(name)
        check_choice("device", device.type, ("cpu", "cuda"))
    except (RuntimeError, InputError):
        raise InputError(f"device must be auto, cpu, cuda or cuda:<n>, got {format_value(name)}") from None
    if device.type == "cuda" and (not torch.cuda.is_available() or (device.index or 0) >= torch.cuda.device_count()):
        raise InputError(f"device is {name!r}, but this machine offers {torch.cuda.device_count()} CUDA devices")
    return device
