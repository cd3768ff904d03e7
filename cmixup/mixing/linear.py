"""Linear mixing, lam * a + (1 - lam) * b (Zhang et al. 2018, "mixup: Beyond Empirical Risk Minimization")."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cmixup.errors import InputError, check_between, not_dense
from cmixup.mixing.base import Mixing
from cmixup.tree import map_leaves

#: A mixing weight as callers may give it: one number for all examples, or one an example.
Lambda = float | np.ndarray | Tensor


def in_32_bits(device: torch.device) -> AbstractContextManager[Any]:
    """Return a block whose products keep 32 bits, also within a step in bfloat16."""
    device_type = device.type
    return torch.autocast(device_type, enabled=False) if torch.is_autocast_enabled(device_type) else nullcontext()


def mix(first: Any, second: Any, lam: Lambda) -> Any:
    """Return `lam * first + (1 - lam) * second`.

    The result has the dtype of the states, whatever the dtype of lambda; half and bfloat16 states are mixed in float32
    and rounded once, so hidden states under autocast mix as they come. Whole numbers and booleans are refused: what
    lies between two of them is none.

    Args:
        first: tensor `(..., B, *features)` of a floating dtype, or tuples, lists and dictionaries of such tensors,
            nested in any way. `None` stays `None`. Where the dtype cannot hold `first - second` the result is
            infinite or NaN.
        second: the same in form, shapes and dtypes.
        lam: `(..., B)` tensor or array of floats in [0, 1], one weight an example, broadcast over the features; or one
            number for all. The range of a tensor that is not on the CPU is not checked: that would wait for the device.

    Raises:
        InputError: `first` and `second` differ in form, shape, dtype or device (nothing is broadcast); lambda is no
            float in [0, 1] or has not the leading shape of every state.
    """
    weight = check_lam(lam)

    def mix_leaf(path: str, a: Any, b: Any) -> Any:
        if a is None and b is None:
            return None
        check_floating(path, a)
        check_floating(path.replace("first", "second", 1), b)
        if a.shape != b.shape or a.dtype != b.dtype or a.device != b.device:
            raise InputError(f"second must be like {path}, {_describe(a)}, got {_describe(b)}")
        if isinstance(weight, Tensor) and weight.ndim > 0 and weight.shape != a.shape[: weight.ndim]:
            raise InputError(f"lam must have the leading shape of {path} {tuple(a.shape)}, got {tuple(weight.shape)}")
        if isinstance(weight, Tensor) and weight.is_meta and not a.is_meta:
            raise InputError(f"lam must have values as {path} has, got {_describe(weight)}")
        return interpolate(a, b, weight)

    return map_leaves(mix_leaf, "first", first, second)


def interpolate(first: Any, second: Any, lam: Tensor | float) -> Any:
    """Return `lam * first + (1 - lam) * second` as `mix` does, of tensors or tuples of tensors, without its checks."""
    if isinstance(first, tuple):
        return tuple(interpolate(a, b, lam) for a, b in zip(first, second, strict=True))
    if not isinstance(lam, Tensor):
        return torch.lerp(second, first, lam)
    weight = lam.reshape((*lam.shape, *(1,) * (first.ndim - lam.ndim)))
    if weight.dtype == first.dtype and weight.device == first.device:
        return torch.lerp(second, first, weight)  # exact at 0 and 1
    dtype = torch.promote_types(first.dtype, torch.float32)
    return torch.lerp(second.to(dtype), first.to(dtype), weight.to(first.device, dtype)).to(first.dtype)


def check_lam(lam: Lambda) -> Tensor | float:
    """Return a mixing weight as a number or a tensor, or raise `InputError` if it is not in [0, 1]."""
    if isinstance(lam, np.ndarray):
        if lam.dtype.kind != "f":
            raise InputError(f"lam must hold floats, got an array of dtype {lam.dtype}")
        lam = torch.from_numpy(np.array(lam))
    if not isinstance(lam, Tensor):
        return check_between("lam", lam, 0, 1)
    check_floating("lam", lam)
    if lam.device.type != "cpu" or torch.compiler.is_compiling():  # a compiled or vectorised weight has no values yet
        return lam
    if not torch._C._functorch.is_functorch_wrapped_tensor(lam):  # noqa: SLF001 - PyTorch has no public name for it
        inside = (lam >= 0) & (lam <= 1)  # NaN is neither
        if not bool(inside.all()):
            raise InputError(f"lam must lie in [0, 1], got {float(lam[~inside].reshape(-1)[0])!r}")
    return lam


def check_floating(name: str, value: Any) -> Tensor:
    """Return `value` if it is a dense tensor of a floating dtype, else raise `InputError`."""
    if not isinstance(value, Tensor):
        raise InputError(f"{name} must be a tensor, got {type(value).__name__}")
    if not value.is_floating_point():
        expected = "of a floating dtype to be mixed (convert it with .float())"
        raise InputError(f"{name} must be {expected}, got {value.dtype}")
    if not value.is_meta and (form := not_dense(value)):
        raise InputError(f"{name} must be a dense tensor, got {form}")
    return value


def _describe(tensor: Tensor) -> str:
    return f"{tuple(tensor.shape)} {tensor.dtype} on {tensor.device}"


class Linear(Mixing):
    """Interpolates inputs or hidden states; the label weight is lambda itself."""

    def forward(self, first: Any, second: Any, draws: Mapping[str, Tensor]) -> tuple[Any, Tensor]:
        return interpolate(first, second, draws["lam"]), draws["lam"]
