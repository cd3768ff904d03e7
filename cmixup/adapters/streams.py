"""Random streams of an adapter: one set in the main process, another in every worker of a `DataLoader`."""

from __future__ import annotations

import json
import zlib
from typing import Any

import numpy as np
import torch
from torch.utils.data import get_worker_info

from cmixup.errors import check_count


def distributed_place() -> tuple[int, int]:
    """Return this process's rank and the number of processes in torch.distributed: 0 and 1 where it is not in use."""
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return 0, 1


def stream(name: str, *keys: int) -> np.random.Generator:
    """Return the generator that belongs to a name and some whole numbers (a seed, an epoch), apart from all others."""
    return np.random.default_rng(np.random.SeedSequence(keys, spawn_key=(zlib.crc32(name.encode()),)))


def seed_or_random(seed: int | None) -> int:
    """Return `seed`, or for None one drawn from torch's own generator, as a `DataLoader` draws its own.

    Raises:
        InputError: `seed` is neither None nor a whole number, 0 or more.
    """
    if seed is None:
        return int(torch.randint(2**62, (), device="cpu"))
    return check_count("seed", seed)


class WorkerStreams:
    """Named generators that differ in every process.

    In the main process they are seeded by `seed` and the rank, and go on from epoch to epoch. In a worker of a
    `DataLoader` `torch.initial_seed()` is added, which PyTorch makes of the loader's generator, the epoch and the
    worker: two workers and two epochs differ, and a run that seeds torch in the same way is the same. Persistent
    workers, whose seed stays, go on with their streams.

    Args:
        seed: a whole number, 0 or more; None draws one from torch's own generator.
    """

    def __init__(self, seed: int | None) -> None:
        self.seed = seed_or_random(seed)
        self._place = distributed_place()  # a worker started by spawn cannot ask
        self._key: tuple[int, ...] | None = None
        self._generators: dict[str, np.random.Generator] = {}

    def __getitem__(self, name: str) -> np.random.Generator:
        """Return the generator of this name in this process."""
        worker = get_worker_info()
        key: tuple[int, ...] = (self.seed, self.place[0])
        if worker is not None:
            key = (*key, worker.id, torch.initial_seed())
        if key != self._key:
            self._key, self._generators = key, {}
        if name not in self._generators:
            self._generators[name] = stream(name, *key)
        return self._generators[name]

    @property
    def place(self) -> tuple[int, int]:
        """Return the rank of this process, or of the one whose worker it is, and the number of ranks."""
        return max(self._place, distributed_place())

    def state(self) -> dict[str, Any]:
        """Return the seed, and the generators of this process with their state."""
        states = {name: generator.bit_generator.state for name, generator in self._generators.items()}
        return {"seed": self.seed, "key": self._key, "generators": states}

    def restore(self, state: dict[str, Any]) -> None:
        """Go on from what `state` returned: on its rank where it was, on another with streams of its own from there."""
        self.seed = state["seed"]
        self._key, self._generators = (self.seed, self.place[0]), {}
        for name, saved in state["generators"].items():
            generator = stream(name, *self._key)
            if list(self._key) != list(state["key"]):
                generator = stream(name, *self._key, zlib.crc32(json.dumps(saved).encode()))
            else:
                generator.bit_generator.state = saved
            self._generators[name] = generator
