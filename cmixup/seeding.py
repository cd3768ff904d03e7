"""Separate seeded random streams for everything that is drawn during a run.

Each stream is keyed by its name, so a method that draws more from one of them leaves the others as they were:
two methods with the same seed see the same batches, and with the same pairing and lambda the same mixed data.
"""

from __future__ import annotations

import contextlib
import json
import zlib
from collections.abc import Iterator, Mapping

import numpy as np
import torch

from cmixup.errors import InputError

GENERATORS = ("order", "partners", "lam", "mixing", "views")
NAMES = (*GENERATORS, "init", "training")


class Streams:
    """The named random streams of one run.

    Args:
        seed: whole number, 0 or more.

    Attributes:
        order, partners, lam, mixing, views: `numpy.random.Generator`s for the order of the rows, the partners,
            lambda, what a mixing draws besides (boxes, masks, layers), and the view of every input that has several.
        init, training: whole-number seeds for PyTorch's own generator, used with `torch_seed` while a model is
            initialised and while it trains (dropout).
    """

    def __init__(self, seed: int):
        if isinstance(seed, bool) or not isinstance(seed, (int, np.integer)) or seed < 0:
            raise InputError(f"seed must be a whole number, 0 or more, got {seed!r}")
        self.seed = int(seed)
        sequences = {n: np.random.SeedSequence(self.seed, spawn_key=(zlib.crc32(n.encode()),)) for n in NAMES}
        self.order = np.random.default_rng(sequences["order"])
        self.partners = np.random.default_rng(sequences["partners"])
        self.lam = np.random.default_rng(sequences["lam"])
        self.mixing = np.random.default_rng(sequences["mixing"])
        self.views = np.random.default_rng(sequences["views"])
        self.init = int(sequences["init"].generate_state(1, np.uint64)[0] >> np.uint64(1))
        self.training = int(sequences["training"].generate_state(1, np.uint64)[0] >> np.uint64(1))

    def state_dict(self) -> dict[str, str]:
        """Return the state of every generator, as JSON, by its name."""
        return {name: json.dumps(getattr(self, name).bit_generator.state) for name in GENERATORS}

    def load_state_dict(self, state: Mapping[str, str]) -> None:
        """Put the generators back into what `state_dict` returned."""
        for name, value in state.items():
            getattr(self, name).bit_generator.state = json.loads(value)


@contextlib.contextmanager
def torch_seed(seed: int, device: torch.device | str = "cpu") -> Iterator[None]:
    """Seed PyTorch's generators inside the block and put their states back after it.

    For code that takes no generator: the initialisation of any `nn.Module`, and dropout.
    """
    device = torch.device(device)
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield
