"""A pretended device: an accelerator called "npu" whose tensors lie in the CPU's memory and do not mix with the CPU's.

PyTorch has a place for a backend that it does not know, and lets Python take it. A tensor of this device says that it
is on `npu:0`; under it lies an ordinary tensor, which every operation is done on. So values are real, data-dependent
code works, and a run on it can be compared with one on the CPU. An operation is refused, as CUDA would, if its tensors
are not all on one device; a copy may cross. Two things are stricter than CUDA, which would copy in silence and wait: an
index on the CPU into a tensor of the device, and a CPU scalar outside elementwise arithmetic.

Register it once, in a process of its own, before the first backward: the backend stays, and the autograd engine counts
its devices when it starts.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.backend_registration import _DummyBackendModule, _setup_privateuseone_for_python_backend

NAME = "npu"
CROSSING = ("copy_", "_to_copy", "_copy_from", "set_")  # operations that may take tensors of two devices
WAITING = ("_local_scalar_dense", "nonzero", "masked_select", "equal", "is_nonzero")  # the host waits for the device
waits: Counter[str] = Counter()  # how often it waited, by operation, since this was cleared
moves: Counter[str] = Counter()  # how many tensors were copied from the host to the device, by operation


class MixedDevices(RuntimeError):
    """An operation was given tensors of two devices."""


class DeviceTensor(Tensor):
    """A tensor of the pretended device; `host` is where its values lie."""

    host: Tensor

    @staticmethod
    def __new__(cls, host: Tensor) -> DeviceTensor:
        made = Tensor._make_wrapper_subclass(
            cls, host.size(), strides=host.stride(), storage_offset=host.storage_offset(), dtype=host.dtype,
            device=torch.device(NAME, 0),
        )  # fmt: skip
        made.host = host
        return made

    __torch_function__ = torch._C._disabled_torch_function_impl

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        return run(func, args, kwargs or {})

    def numpy(self, *_: Any, **__: Any) -> Any:
        raise TypeError(f"can't convert {NAME}:0 device type tensor to numpy. Use Tensor.cpu() first")

    __array__ = numpy

    def tolist(self) -> Any:
        waits["tolist"] += 1
        return self.host.tolist()

    def __repr__(self, **_: Any) -> str:
        return f"{NAME}:0 {self.host!r}"

    def __reduce_ex__(self, protocol: Any) -> Any:
        """Save as a CPU tensor: what `torch.load(map_location="cpu")` makes of a tensor of any device."""
        return self.host.detach().__reduce_ex__(protocol)


class PretendedDevice(TorchDispatchMode):
    """While it is entered, new tensors can be made on the device, and everything is checked."""

    @classmethod
    def _should_skip_dynamo(cls) -> bool:
        return False  # else PyTorch imports its compiler at the first operation, which takes seconds

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple = (), kwargs: dict | None = None) -> Any:
        if DeviceTensor not in types and not (kwargs and "device" in kwargs):  # on the CPU alone, as most are
            return func(*args, **(kwargs or {}))
        return run(func, args, kwargs or {})


def mapped(function: Callable[[Tensor], Any], tree: Any) -> Any:
    """Return a tree with every tensor changed; PyTorch's own function takes ten times as long."""
    if isinstance(tree, Tensor):
        return function(tree)
    if isinstance(tree, (list, tuple)):
        values = [mapped(function, value) for value in tree]
        return type(tree)(*values) if hasattr(tree, "_fields") else type(tree)(values)
    return {key: mapped(function, value) for key, value in tree.items()} if isinstance(tree, dict) else tree


def run(func: Any, args: tuple, kwargs: dict) -> Any:
    """Do one operation on the host's tensors, and return what comes of it on the device that it belongs to."""
    tensors: list[Tensor] = []
    mapped(tensors.append, (args, kwargs))
    here = any(isinstance(x, DeviceTensor) for x in tensors)
    given = kwargs.get("device")
    there = torch.device(given).type == NAME if given is not None else here
    if not (here or there):
        return func(*args, **kwargs)
    name = func.overloadpacket.__name__
    check(func, name, tensors, there=there)
    if here and (name in WAITING or (given is not None and not there)):
        waits[name] += 1
    if there and name in CROSSING and not all(isinstance(x, DeviceTensor) for x in tensors):
        moves[name] += 1
    inside = mapped(_host, kwargs) | ({"device": torch.device("cpu")} if given is not None else {})
    with private_numbers(func, inside) if there else contextlib.nullcontext():
        out = func(*mapped(_host, args), **inside)
    if torch.Tag.inplace_view in func.tags:  # the shape of the outer tensor changes as that of the inner one did
        with torch._C._DisableTorchDispatch():
            func(*args, **kwargs)
        return args[0]
    known = {id(x.host): x for x in tensors if isinstance(x, DeviceTensor)} | {id(x): x for x in tensors}
    result = mapped(lambda x: known.get(id(x)) if id(x) in known else _on(x, there=there), out)
    for x in tensors:
        assert not isinstance(x, DeviceTensor) or x.shape == x.host.shape, f"{func} changed a shape in place"
    return result


def check(func: Any, name: str, tensors: list[Tensor], *, there: bool) -> None:
    """Raise `MixedDevices` if an operation would not be done on a device."""
    if name in CROSSING:
        return
    scalars = torch.Tag.pointwise in func.tags or name in ("index_put_", "index_put", "_index_put_impl_", "fill_")
    for x in tensors:
        if not isinstance(x, DeviceTensor) and there and not (scalars and x.ndim == 0):
            raise MixedDevices(f"{func} got tensors of {NAME} and a {x.dtype} {tuple(x.shape)} of {x.device}")


@contextlib.contextmanager
def private_numbers(func: Any, inside: dict) -> Iterator[None]:
    """Let an operation draw from the device's generator where it was given none."""
    if torch.Tag.nondeterministic_seeded not in func.tags or inside.get("generator") is not None:
        yield
        return
    before = torch.get_rng_state()
    torch.set_rng_state(device_generator.get_state())
    try:
        yield
    finally:
        device_generator.set_state(torch.get_rng_state())
        torch.set_rng_state(before)


def _host(x: Any) -> Any:
    return x.host if isinstance(x, DeviceTensor) else x


def _on(x: Any, *, there: bool) -> Any:
    return DeviceTensor(x) if there and isinstance(x, Tensor) else x


HostGenerator = torch.Generator


class DeviceGenerator(torch.Generator):
    """A generator that says that it is the device's."""

    def __new__(cls, device: Any = "cpu") -> Any:
        return super().__new__(cls) if torch.device(device).type == NAME else HostGenerator()

    @property
    def device(self) -> torch.device:
        return torch.device(NAME, 0)

    def manual_seed(self, seed: int) -> DeviceGenerator:
        super().manual_seed(seed)
        return self


class Backend(_DummyBackendModule):
    """What `torch.npu` offers: the state of its generator, as `torch.cuda` does."""

    def get_rng_state(self, device: Any = 0) -> Tensor:
        return device_generator.get_state()

    def set_rng_state(self, state: Tensor, device: Any = 0) -> None:
        device_generator.set_state(state)

    def manual_seed(self, seed: int) -> None:
        device_generator.manual_seed(seed)

    def device(self, device: Any) -> contextlib.nullcontext[None]:
        return contextlib.nullcontext()

    def synchronize(self, device: Any = 0) -> None:
        pass


device_generator: Any = None  # made by `register`, after which PyTorch knows the name


def register() -> torch.device:
    """Make the device known to PyTorch, in this process for good, and return it."""
    global device_generator  # noqa: PLW0603
    _setup_privateuseone_for_python_backend(NAME, backend_module=Backend())
    device_generator = DeviceGenerator(NAME)
    # Where PyTorch itself moves a tensor (`torch.tensor(..., device=...)`) it does not ask Python, but the backend.
    library.impl("empty_strided", _empty_strided, "PrivateUse1")
    library.impl("empty.memory_format", _empty, "PrivateUse1")
    library.impl("_copy_from", _copy_from, "PrivateUse1")
    return torch.device(NAME, 0)


library = torch.library.Library("aten", "IMPL")


def _empty_strided(size: Any, stride: Any, dtype: Any = None, **_: Any) -> Tensor:
    return DeviceTensor(torch.empty_strided(size, stride, dtype=dtype))


def _empty(size: Any, dtype: Any = None, **_: Any) -> Tensor:
    return DeviceTensor(torch.empty(size, dtype=dtype))


def _copy_from(source: Tensor, target: Tensor, non_blocking: bool = False) -> Tensor:
    moves["tensor"] += isinstance(target, DeviceTensor) and not isinstance(source, DeviceTensor)
    _host(target).copy_(_host(source))
    return target
