"""Which device a command uses, and with which other processes: by `torchrun` the first writes, the rest train along."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

import torch

from cmixup.distributed import distributed_place
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


@contextlib.contextmanager
def joined_processes(device: torch.device) -> Iterator[int]:
    """Join the processes of this command for as long as the block lasts; gives the rank."""
    if device.type == "cuda":
        torch.cuda.set_device(device)
    torch.distributed.init_process_group("nccl" if device.type == "cuda" else "gloo")
    try:
        yield distributed_place()[0]
    finally:
        torch.distributed.destroy_process_group()
