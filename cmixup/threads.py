"""How inputs that take long to read share the processor's cores."""

import os
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from torch.utils.data import get_worker_info


def core_count() -> int:
    """Return how many cores this process may use; macOS and Windows only tell how many there are."""
    allowed = getattr(os, "sched_getaffinity", None)
    return len(allowed(0)) if allowed else os.cpu_count() or 1


N_CORES = min(8, core_count())
WORKERS = N_CORES if N_CORES > 1 else 0  # processes that read ahead for training, see `cmixup.training.loader`


def in_threads(function: Callable[[Any], Any], items: Iterable[Any]) -> list[Any]:
    """Return `function` of each item, computed by several threads where nothing else keeps the cores busy.

    Unpacking an image lets other threads run. This is for those who read outside of training's batches, such as
    measures of distance between inputs; a worker process of a `DataLoader` has its own core and reads in one thread.
    """
    if N_CORES == 1 or get_worker_info() is not None:
        return [function(item) for item in items]
    with ThreadPoolExecutor(N_CORES) as pool:
        return list(pool.map(function, items))
