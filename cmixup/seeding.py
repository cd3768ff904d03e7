"""Separate seeded random streams for everything that is drawn during a run.

Each stream is seeded by the run's seed and its own name, so a method that draws more from one stream does not change
the others: two methods with the same seed see the same batches, and with the same pairing and lambda the same mixed
data.
"""

from __future__ import annotations

import contextlib
import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
import torch

from cmixup.errors import check_count

GENERATORS = ("order", "partners", "lam", "mixing", "views")
NAMES = (*GENERATORS, "init", "training")
SHARED = ("order", "init")  # by all processes that train one run; the other streams are each one's own


def sequence(seed: int, name: str, rank: int = 0) -> np.random.SeedSequence:
    """Return the seed of the random stream `name` of the run with seed `seed`, a whole number, 0 or more, on a rank."""
    of_rank = (rank,) if rank else ()
    return np.random.SeedSequence(check_count("seed", seed), spawn_key=(zlib.crc32(name.encode()), *of_rank))


class Streams:
    """The named random streams of one run.

    Args:
        seed: a whole number, 0 or more.
        rank: of the process, where several train one run; their streams differ but for those of `SHARED`.

    Attributes:
        order: `numpy.random.Generator` for the order of the rows.
        partners: generator for the partners that rows are mixed with.
        lam: generator for the mixing weights lambda.
        mixing: generator for other draws of a mixing, such as boxes, masks and layers.
        views: generator for the view of every input that has several.
        init: a whole-number seed for PyTorch's own generator, used with `torch_seed` while a model is initialised.
        training: the same while a model trains (dropout).

    Raises:
        InputError: `seed` is no whole number, 0 or more.
    """

    def __init__(self, seed: int, rank: int = 0):
        self.seed = check_count("seed", seed)
        sequences = {name: sequence(self.seed, name, 0 if name in SHARED else rank) for name in NAMES}
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
        """Put the generators back into the state of `state_dict`."""
        for name, value in state.items():
            getattr(self, name).bit_generator.state = json.loads(value)


class StepRandom:
    """Random numbers of one step whose shape the step alone knows, such as noise on a hidden layer.

    Each run of a stack has a generator of its own and gets the numbers that it would draw alone.

    Args:
        seeds: one a run.
        device: where the numbers are made.
    """

    def __init__(self, seeds: Sequence[int], device: torch.device | str = "cpu"):
        self._generators = [torch.Generator(device).manual_seed(seed) for seed in seeds]

    def normal(self, like: torch.Tensor) -> torch.Tensor:
        """Return standard normal numbers of the shape and dtype of `like`, `(B, ...)`, or `(E, B, ...)` for E runs."""
        return self._each(torch.randn, like)

    def uniform(self, like: torch.Tensor) -> torch.Tensor:
        """Return uniform numbers in [0, 1) of the shape and dtype of `like`, as `normal` does."""
        return self._each(torch.rand, like)

    def _each(self, draw: Callable[..., torch.Tensor], like: torch.Tensor) -> torch.Tensor:
        how = {"dtype": like.dtype, "device": like.device}
        if len(self._generators) == 1:
            return draw(like.shape, generator=self._generators[0], **how)
        return torch.stack([draw(like.shape[1:], generator=generator, **how) for generator in self._generators])


def forked_torch(device: torch.device) -> contextlib.AbstractContextManager[None]:
    """Return a context after which PyTorch's generators, the CPU's and the device's, are as they were before it."""
    return torch.random.fork_rng(devices=[] if device.type == "cpu" else [device], device_type=device.type)


@contextlib.contextmanager
def torch_seed(seed: int, device: torch.device | str = "cpu") -> Iterator[None]:
    """Seed PyTorch's generators inside the block and put their states back after it.

    This is for code that takes no generator: the initialisation of any `nn.Module`, and dropout.
    """
    device = torch.device(device)
    with forked_torch(device):
        # `torch.manual_seed` would seed every device, those that are not put back too.
        torch.default_generator.manual_seed(seed)
        if device.type != "cpu":
            module = torch.get_device_module(device)
            with module.device(device):
                module.manual_seed(seed)
        yield
