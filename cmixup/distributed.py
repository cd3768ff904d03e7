"""One run over several processes, as `torchrun` starts them: the place of this one among them, and averages."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor


def distributed_place() -> tuple[int, int]:
    """Return this process's rank and the number of processes in torch.distributed: 0 and 1 where it is not in use."""
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return 0, 1


def average(tensors: Iterable[Tensor | None]) -> None:
    """Put in the place of each tensor its mean over all processes, which must have the same ones; None is left out."""
    _, world = distributed_place()
    if world == 1:
        return
    for tensor in tensors:
        if tensor is not None:
            torch.distributed.all_reduce(tensor)
            tensor.div_(world)
