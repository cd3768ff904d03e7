"""Mixing in a hidden layer of any module (Manifold Mixup, Verma et al. 2019), by a forward hook."""

from __future__ import annotations

import difflib
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from torch import Tensor, nn

from cmixup.adapters.labels import Mix, mix_rows, no_mix, with_partners
from cmixup.errors import InputError, shown
from cmixup.tree import map_leaves


class DrawsMix(Protocol):
    """The interface of a mixing for `mixing_at`; `CMixup` has it."""

    training: bool
    return_mix: bool
    keep: tuple[str, ...]

    def draw(self, labels: Any) -> Mix:
        """Draw partners and weights for labels `(B, ...)`."""


@contextmanager
def mixing_at(model: nn.Module, layer: str | None, mixing: DrawsMix, labels: Any) -> Iterator[Any]:
    """Mix the output of a layer of `model`, in the one forward pass inside the block.

        with mixing_at(model, "layer3", mixing, y) as mixed_y:
            loss = loss_fn(model(x), mixed_y)

    The block is given the labels mixed with the same partners and lambda: it has no other labels to compare with.
    Nothing is mixed where the model or the mixing is in evaluation; then the block is given the labels as they are.

    The layer must run exactly once inside the block, on the whole batch, on its first axis:

    - `DistributedDataParallel` works, and so does `DataParallel` on one device. On several, `DataParallel` gives each
      copy a part of the batch, whose partners lie in another: that is refused.
    - Of a compiled model hooks are not seen, or are compiled in for good: that is refused. Compile a part that does not
      hold the layer inside, such as `model.layer3 = torch.compile(model.layer3)`, or mix inputs.
    - Layers inside `torch.utils.checkpoint` run twice and are refused if the backward pass stands in the block, too.

    Args:
        model: any module.
        layer: the layer's name in `model.named_modules()` ("layer3", "encoder.layer.2"), without the "module." of a
            wrapper for several devices; None mixes the model's input. Its output is a tensor, or tuples, lists
            and dictionaries of tensors; whatever is no tensor in it stays as it is.
        mixing: draws partners and lambda, such as `CMixup`.
        labels: `(B, ...)`, the labels of the batch.

    Yields:
        The mixed labels; with the mixing's `return_mix` a tuple of them and the `Mix`.

    Raises:
        InputError: there is no such layer or it is compiled, it did not run once in the block, or its output cannot be
            mixed.
    """
    if not isinstance(model, nn.Module):
        raise InputError(f"model must be a torch.nn.Module, got {type(model).__name__}")
    if not callable(getattr(mixing, "draw", None)):
        raise InputError(f"mixing must be a CMixup, got {type(mixing).__name__}")
    module = _find(model, layer)
    if not (mixing.training and model.training):
        yield (labels, no_mix(labels)) if mixing.return_mix else labels
        return
    mixed = mixing.draw(labels)
    mixed_labels = mix_rows(labels, labels, mixed, path="labels")
    name = "the input" if layer is None else f"layer {shown(layer)}"
    runs = 0

    def count() -> None:
        nonlocal runs
        runs += 1
        if runs > 1:
            raise InputError(f"{name} must run once in the block of mixing_at, got a second run")

    def mix_output(_: nn.Module, __: Any, output: Any) -> Any:
        count()
        return map_leaves(
            lambda path, leaf: with_partners(path, leaf, mixed) if isinstance(leaf, Tensor) else leaf,
            f"output of {name}",
            output,
        )

    def mix_input(_: nn.Module, args: Any, kwargs: Any) -> Any:
        count()
        return tuple(mix_rows(a, (), mixed, path="input") for a in args), mix_rows(
            kwargs, (), mixed, keep=mixing.keep, path="input"
        )

    handle = (
        module.register_forward_pre_hook(mix_input, with_kwargs=True)
        if layer is None
        else module.register_forward_hook(mix_output)
    )
    try:
        yield (mixed_labels, mixed) if mixing.return_mix else mixed_labels
    finally:
        handle.remove()
    if runs == 0:
        raise InputError(f"{name} must run once in the block of mixing_at, got no run: nothing was mixed")


def _find(model: nn.Module, layer: str | None) -> nn.Module:
    """Return the layer, or raise `InputError` if there is none or a compiled module holds it."""
    if layer is not None and not (isinstance(layer, str) and layer):
        raise InputError(f"layer must be the name of a module, or None for the input, got {shown(layer)}")
    while isinstance(model, (nn.DataParallel, nn.parallel.DistributedDataParallel)):
        model = model.module
    module, holders = model, []
    for name in layer.split(".") if layer is not None else ():
        holders.append(module)
        module = dict(_unwrapped(module).named_children()).get(name)  # type: ignore[assignment]
        if module is None:
            names = [name for name, _ in _unwrapped(model).named_modules() if name]
            near = difflib.get_close_matches(str(layer), names, 3, 0.3) or names[:3]
            raise InputError(
                f"layer must be a module of {type(model).__name__} ({', '.join(near)}, ...), got {shown(layer)}"
            )
    compiled = any(_unwrapped(holder) is not holder or _compiles_its_call(holder) for holder in holders)
    if compiled or _compiles_its_call(module):
        raise InputError(f"layer must not lie in a compiled module, which would not see its hook, got {shown(layer)}")
    return module


def _unwrapped(module: nn.Module) -> nn.Module:
    """Return the module that `torch.compile` wrapped, or the module itself."""
    inner = module._modules.get("_orig_mod")  # noqa: SLF001 - an isinstance would import the compiler
    return module if inner is None else inner


def _compiles_its_call(module: nn.Module) -> bool:
    return getattr(module, "_compiled_call_impl", None) is not None  # set by `nn.Module.compile`
