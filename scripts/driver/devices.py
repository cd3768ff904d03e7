"""Which device a command uses, and with which other processes: by `torchrun` the first writes, the rest train along."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence

import torch

from cmixup.distributed import distributed_place
from cmixup.errors import InputError, check_choice, format_value
from cmixup.training.share import broadcast


def pick_device(name: str) -> torch.device:
    """Return the device called `name`; "auto" is CUDA where there is one."""
    if name == "auto":
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
    try:
        device = torch.device(name)
        check_choice("device", device.type, ("cpu", "cuda"))
    except (RuntimeError, InputError):
        raise InputError(f"device must be auto, cpu, cuda or cuda:<n>, got {format_value(name)}") from None
    if device.type == "cuda" and (not torch.cuda.is_available() or (device.index or 0) >= torch.cuda.device_count()):
        raise InputError(f"device is {name!r}, but this machine offers {torch.cuda.device_count()} CUDA devices")
    return device


def launched_processes() -> int:
    """Return how many processes `torchrun` has started of this command; 1 without it."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def device_word(device: str) -> str:
    """Return the device of this process: its own GPU where the command asks for any."""
    any_gpu = device == "cuda" or (device == "auto" and torch.cuda.is_available())
    return f"cuda:{os.environ.get('LOCAL_RANK', '0')}" if launched_processes() > 1 and any_gpu else device


@contextlib.contextmanager
def joined_processes(device: str) -> Iterator[int]:
    """Join the processes of this command for as long as the block lasts; gives the rank, 0 for a process alone."""
    if launched_processes() == 1:
        yield 0
        return
    if device.startswith("cuda"):
        torch.cuda.set_device(device)
    torch.distributed.init_process_group("nccl" if device.startswith("cuda") else "gloo")
    try:
        yield distributed_place()[0]
    finally:
        torch.distributed.destroy_process_group()


def send_seeds(seeds: Sequence[int] | None) -> None:
    """Send the other processes the seeds that are trained next; None ends them."""
    if distributed_place()[1] > 1:
        broadcast(None if seeds is None else list(seeds))


def follow_first(train_seeds: Callable[[list[int]], object]) -> None:
    """Train the seeds that the first process sends, until it sends None."""
    while isinstance(seeds := broadcast(None), list):
        train_seeds(seeds)
