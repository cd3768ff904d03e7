"""Separate seeded random streams for everything that is drawn: of a run, a step, an adapter, and code without streams.

Each stream is seeded by a seed and its own name, so a method that draws more from one does not change the others: two
methods with the same seed see the same batches, and with the same pairing and lambda the same mixed data.
"""

import contextlib
import contextvars
import functools
import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.data import get_worker_info

from cmixup.errors import check_count

GENERATORS = ("order", "partners", "lam", "mixing", "views")


def seed_sequence(name: str, *keys: int) -> np.random.SeedSequence:
    """Return the seed of the stream that belongs to a name and some whole numbers (a seed, an epoch)."""
    return np.random.SeedSequence(keys, spawn_key=(zlib.crc32(name.encode()),))


def stream(name: str, *keys: int) -> np.random.Generator:
    """Return the generator that belongs to a name and some whole numbers, apart from all others."""
    return np.random.default_rng(seed_sequence(name, *keys))


class Streams:
    """The named random streams of one run, by its seed, a whole number, 0 or more.

    Attributes:
        order, partners, lam: generators for the order of the rows, for their partners, and for mixing weights.
        mixing: generator for other draws of a mixing, such as boxes, masks and layers.
        views: generator for the view of every input that has several.
        init, training: seeds for `torch_seed` while a model is initialised, and while it trains (dropout).
    """

    def __init__(self, seed: int):
        self.seed = check_count("seed", seed)
        self.order, self.partners, self.lam, self.mixing, self.views = (stream(name, seed) for name in GENERATORS)
        self.init, self.training = (
            int(seed_sequence(name, seed).generate_state(1, np.uint64)[0] >> np.uint64(1))
            for name in ("init", "training")
        )

    def state_dict(self) -> dict[str, str]:
        """Return the state of every generator, as JSON, by its name."""
        return {name: json.dumps(getattr(self, name).bit_generator.state) for name in GENERATORS}

    def load_state_dict(self, state: Mapping[str, str]) -> None:
        """Put the generators back into the state of `state_dict`."""
        for name, value in state.items():
            getattr(self, name).bit_generator.state = json.loads(value)


class StepRandom:
    """Random numbers of one step whose shape the step alone knows, such as noise on a hidden layer.

    Each run of a stack has a seed, and so a generator on `device`, of its own: it gets the numbers that it draws alone.
    """

    def __init__(self, seeds: Sequence[int], device: torch.device | str = "cpu"):
        self._generators = [torch.Generator(device).manual_seed(seed) for seed in seeds]

    def normal(self, like: Tensor) -> Tensor:
        """Return standard normal numbers of the shape and dtype of `like`, `(B, ...)`, or `(E, B, ...)` for E runs."""
        options: dict[str, Any] = {"dtype": like.dtype, "device": like.device}
        if len(self._generators) == 1:
            return torch.randn(like.shape, generator=self._generators[0], **options)
        return torch.stack([torch.randn(like.shape[1:], generator=rng, **options) for rng in self._generators])


_ATEN = torch.ops.aten
#: The operations by which PyTorch itself fills an empty tensor, for those that draw numbers of a tensor's shape.
FILLS: dict[Any, Callable[..., Tensor]] = {
    _ATEN.rand_like: Tensor.uniform_, _ATEN.randn_like: Tensor.normal_, _ATEN.randint_like: Tensor.random_,
}  # fmt: skip


class Draws(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Draws of code that takes no generator, such as the initialisation of any `nn.Module` and dropout, from own ones.

    The numbers are those that PyTorch's own generators would give after `torch.manual_seed(seed)`, but no generator of
    PyTorch's is read or set: what other threads draw, and what this one draws outside the block, stays as it is.
    Operations that no generator can be given to, fused attention and cuDNN's recurrent layers, run as they are: on the
    CPU they draw nothing; what they drop on a GPU comes from PyTorch's own.
    """

    def __init__(self, seed: int):
        super().__init__()  # type: ignore[no-untyped-call]
        self._seed, self._generators, self._state = seed, dict[torch.device, torch.Generator](), dict[str, Tensor]()

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else PyTorch imports its compiler at the first operation, which takes seconds

    def generator(self, device: torch.device) -> torch.Generator:
        """Return the generator of a device."""
        if device.type != "cpu" and device.index is None:
            device = torch.Generator(device).device
        if device not in self._generators:
            generator = self._generators[device] = torch.Generator(device).manual_seed(self._seed)
            if device.type in self._state:
                generator.set_state(self._state[device.type])
        return self._generators[device]

    def state_dict(self) -> dict[str, Tensor]:
        """Return the states of the generators that were drawn from, by the type of their device."""
        return self._state | {device.type: generator.get_state() for device, generator in self._generators.items()}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Go on from these states; on a type of device that has none the draws begin."""
        self._generators, self._state = {}, dict(state)

    @contextlib.contextmanager
    def used(self, *, everywhere: bool = True) -> Iterator[Self]:
        """Let code of this thread draw from here inside the block, at a few microseconds an operation.

        With `everywhere=False`, which costs nothing, only `dropout` does, and callers of `generator_for`.
        """
        token = _USED.set(self)
        try:
            with self if everywhere else contextlib.nullcontext():
                yield self
        finally:
            _USED.reset(token)

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Do an operation, with a generator if it draws."""
        kwargs = kwargs or {}
        if torch.Tag.nondeterministic_seeded not in func.tags or kwargs.get("generator") is not None:
            return func(*args, **kwargs)
        device = kwargs.get("device") or next((x.device for x in args if isinstance(x, Tensor)), "cpu")
        if (device := torch.device(device)).type == "meta":
            return func(*args, **kwargs)
        if func.overloadpacket is torch.ops.aten.native_dropout:  # the one that takes no generator
            x, p, _ = args
            if device.type == "cuda":  # by the same kernel
                dropped, mask = torch._fused_dropout(x, 1 - p, self.generator(device))  # noqa: SLF001
                return dropped, mask.bool()
            mask = torch.empty_like(x).bernoulli_(1 - p, generator=self.generator(device))
            return x * mask / (1 - p), mask.bool()
        if (fill := FILLS.get(func.overloadpacket)) is not None:  # below PyTorch 2.11 it takes no generator
            like, *limits = args
            return fill(torch.empty_like(like, **kwargs), *map(int, limits), generator=self.generator(device))
        generator = {"generator": self.generator(device)} if _takes_generator(func.overloadpacket) else {}
        return func.overloadpacket(*args, **kwargs, **generator)


@functools.cache
def _takes_generator(packet: Any) -> bool:
    return any("Generator" in str(getattr(packet, name)._schema) for name in packet.overloads())  # noqa: SLF001


_USED: contextvars.ContextVar[Draws | None] = contextvars.ContextVar("draws of this thread", default=None)


def torch_seed(seed: int) -> contextlib.AbstractContextManager[Draws]:
    """Return a context in which code of this thread that takes no generator draws from ones with this seed."""
    return Draws(seed).used()


def generator_for(device: torch.device) -> torch.Generator | None:
    """Return the generator that this thread draws from now, None for PyTorch's own."""
    draws = _USED.get()
    return None if draws is None else draws.generator(device)


def dropout(x: Tensor, p: float, training: bool) -> Tensor:
    """Return `x` with a random share p of it zero and the rest divided by 1 - p; as it is where not `training`."""
    if not training or p == 0:
        return x
    return x * torch.empty_like(x).bernoulli_(1 - p, generator=generator_for(x.device)).div_(1 - p)


def has_dropout(module: nn.Module) -> bool:
    """Return whether a module is one of PyTorch's that draw in training, by itself and not by those inside it."""
    drawing_classes = (nn.modules.dropout._DropoutNd, nn.RReLU, nn.FractionalMaxPool2d, nn.FractionalMaxPool3d)  # noqa: SLF001
    rate = getattr(module, "dropout", 0) if isinstance(module, nn.RNNBase | nn.MultiheadAttention) else 0
    return isinstance(module, drawing_classes) or rate > 0


def may_draw(model: nn.Module) -> bool:
    """Return whether a model in training may draw from PyTorch's generators without asking for one.

    PyTorch's modules with dropout do. A class of others may, unless it says `draws = False`, as those do here that have
    no dropout or that of this file.
    """
    model_class = type(model)
    if "draws" in vars(model_class):  # an inherited value need not hold for its own code
        return bool(vars(model_class)["draws"])
    foreign = not model_class.__module__.startswith(("torch.nn.", "torch._dynamo.", "cmixup."))
    return foreign or has_dropout(model) or any(map(may_draw, model.children()))


def distributed_place() -> tuple[int, int]:
    """Return this process's rank and the number of processes in torch.distributed: 0 and 1 where it is not in use."""
    distributed = torch.distributed
    if distributed.is_available() and distributed.is_initialized():
        return distributed.get_rank(), distributed.get_world_size()
    return 0, 1


def seed_or_random(seed: int | None) -> int:
    """Return a seed, checked, or for None one drawn from torch's own generator, as a `DataLoader` draws its own."""
    if seed is None:
        return int(torch.randint(2**62, (), device="cpu"))
    return check_count("seed", seed)


class WorkerStreams:
    """Named generators of an adapter that differ in every process.

    In the main process they are seeded by `seed` and the rank, and go on from epoch to epoch. In a worker of a
    `DataLoader` `torch.initial_seed()` is added, which PyTorch makes of the loader's generator, the epoch and the
    worker: two workers and two epochs differ, and a run that seeds torch in the same way is the same. Persistent
    workers, whose seed stays, go on with their streams. A seed of None is drawn from torch's own generator.
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
