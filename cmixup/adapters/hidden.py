"""Mixing in a hidden layer of any module (Manifold Mixup, Verma et al. 2019), by a forward hook."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from traceback import walk_stack
from typing import Any

import torch
from torch import Tensor, nn

from cmixup.adapters.batch import CMixup
from cmixup.adapters.labels import Mix, mix_rows, no_mix, refuse_packed, with_partners
from cmixup.errors import InputError, format_value, nearest, not_dense
from cmixup.tree import Entry, leaves, map_leaves


@contextmanager
def mixing_at(
    model: nn.Module, layer: str | None, mixing: CMixup, labels: Any, *, mask: Tensor | None = None
) -> Iterator[Any]:
    """Mix the output of a layer of `model`, in the one forward pass inside the block.

        with mixing_at(model, "layer3", mixing, y) as mixed_y:
            loss = loss_fn(model(x), mixed_y)

    The block is given the labels mixed with the same partners and lambda. A model sees the mixed ones, too, if it is
    given the very tensors of `labels` under a keyword for labels (labels=, target=, y=, as Hugging Face's models), or
    that of `mask` under any keyword.

    Nothing is mixed where the model or the mixing is in evaluation; then the block is given the labels as they are.

    The layer must run exactly once inside the block, on the whole batch, on its first axis, and in no compiled module;
    anything else is refused. What this means for several devices, `torch.compile` and `torch.utils.checkpoint` is in
    docs/recipes.md, "What is refused".

    Args:
        layer: the layer's name in `model.named_modules()` ("layer3", "encoder.layer.2"), without the "module." of a
            wrapper for several devices; None mixes the model's input. Its output is a tensor, or tuples, lists
            and dictionaries of tensors; whatever is no tensor in it stays as it is.
        mixing: draws partners and lambda, such as `CMixup`.
        labels: `(B, ...)`, the labels of the batch.
        mask: `(B, ...)` of any real dtype, larger where a position is used (an attention mask of 1 and 0, or of 0 and
            minus infinity). Mixed, a position is used that the row or its partner uses.

    Yields:
        The mixed labels; where a mask is given, or with the mixing's `return_mix`, a tuple of them, the mixed mask and
        the `Mix`, each if it was asked for.
    """
    if not isinstance(model, nn.Module):
        raise InputError(f"model must be a torch.nn.Module, got {type(model).__name__}")
    if not callable(getattr(mixing, "draw", None)):
        raise InputError(f"mixing must be a CMixup, got {type(mixing).__name__}")
    module = _find_layer(model, layer)
    if not (mixing.training and model.training):
        yield _block_value(mixing, labels, mask, no_mix(labels) if mixing.return_mix else None)
        return
    mixed = mixing.draw(labels)
    mixed_labels = mix_rows(labels, labels, mixed, path="labels")
    mixed_mask = None if mask is None else _union_mask(mask, mixed)
    hooks = _Hooks("the input" if layer is None else f"layer {format_value(layer)}", mixed, mixing.keep, mask)
    for leaf, new in zip(leaves((labels, mask)), leaves((mixed_labels, mixed_mask)), strict=True):
        hooks.swaps |= {id(leaf): new, id(new): new}
    with ExitStack() as handles:
        if layer is None:
            handles.enter_context(module.register_forward_pre_hook(hooks.mix_input, with_kwargs=True))
        else:
            handles.enter_context(module.register_forward_hook(hooks.mix_output))
            handles.enter_context(model.register_forward_pre_hook(hooks.hand_over, with_kwargs=True))
        yield _block_value(mixing, mixed_labels, mixed_mask, mixed)
    if hooks.runs == 0:
        raise InputError(f"{hooks.name} must run once in the block of mixing_at, got no run: nothing was mixed")


@dataclass
class _Hooks:
    """Mixes the tensors that pass by in the block of `mixing_at`."""

    name: str
    mixed: Mix
    keep: tuple[Entry, ...]
    mask: Tensor | None
    swaps: dict[int, Any] = field(default_factory=dict)
    runs: int = 0

    def mix_output(self, module: nn.Module, _: Any, output: Any) -> Any:
        """Mix the output of a layer."""
        self._count()
        name = f"output of {self.name}"
        recurrent = isinstance(module, nn.RNNBase) and module.batch_first  # but its last states are (layers, B, H)

        def mix_leaf(path: str, leaf: Any) -> Any:
            refuse_packed(path, leaf)
            if recurrent and path.startswith(f"{name}[1]"):
                return with_partners(path, leaf.transpose(0, 1), self.mixed).transpose(0, 1).contiguous()
            return with_partners(path, leaf, self.mixed) if isinstance(leaf, Tensor) else leaf

        return map_leaves(mix_leaf, name, output)

    def mix_input(self, _: nn.Module, args: Any, kwargs: Any) -> Any:
        """Mix the input of the model."""
        self._count()
        inputs = {**dict(enumerate(args)), **kwargs}  # places in `keep` are those of the arguments
        mixed = mix_rows(inputs, (), self.mixed, keep=self.keep, path="input", swaps=self.swaps)
        return tuple(mixed.pop(place) for place in range(len(args))), mixed

    def hand_over(self, _: nn.Module, args: Any, kwargs: Any) -> Any:
        """Put mixed labels and mask in the place of those that the model is given by keyword."""
        labels_and_mask = {
            key: value for key, value in kwargs.items()
            if value is self.mask or key == "y" or "label" in key or "target" in key
        }  # fmt: skip
        return args, {**kwargs, **map_leaves(lambda _, leaf: self.swaps.get(id(leaf), leaf), "input", labels_and_mask)}

    def _count(self) -> None:
        self.runs += 1
        if self.runs > 1:
            raise InputError(f"{self.name} must run once in the block of mixing_at, got a second run")
        if torch.compiler.is_compiling():  # there are no frames to look at
            return
        frames = walk_stack(sys._getframe())  # noqa: SLF001
        if any(frame.f_globals.get("__name__") == "torch.utils.checkpoint" for frame, _ in frames):
            raise InputError(
                f"{self.name} must run once, got a run in torch.utils.checkpoint, whose second run would not be mixed"
            )


def _block_value(mixing: CMixup, labels: Any, mask: Tensor | None, mixed: Mix | None) -> Any:
    """Return the values for the block: labels, and the mask and the `Mix` if they were asked for."""
    entries = [labels, *[mask] * (mask is not None), *[mixed] * mixing.return_mix]
    return tuple(entries) if len(entries) > 1 else labels


def _union_mask(mask: Tensor, mixed: Mix) -> Tensor:
    """Return a mask `(B, ...)` in which a position is used where the row or its partner uses it."""
    n = len(mixed.partner)
    form = not_dense(mask) if isinstance(mask, Tensor) else format_value(mask)
    if form or mask.ndim == 0 or len(mask) != n:
        actual = form or f"shape {tuple(mask.shape)}"
        raise InputError(f"mask must be a tensor of {n} rows as the labels, got {actual}")
    unmixed = (mixed.lam == 1).to(mask.device).reshape(-1, *[1] * (mask.ndim - 1))
    return torch.where(unmixed, mask, torch.maximum(mask, mask[mixed.partner.to(mask.device)]))


def _find_layer(model: nn.Module, layer: str | None) -> nn.Module:
    """Return the layer, or raise `InputError` if there is none or a compiled module holds it."""
    if layer is not None and not (isinstance(layer, str) and layer):
        raise InputError(f"layer must be the name of a module, or None for the input, got {format_value(layer)}")
    while isinstance(model, (nn.DataParallel, nn.parallel.DistributedDataParallel)):
        model = model.module
    module, holders = model, []
    for name in layer.split(".") if layer is not None else ():
        holders.append(module)
        module = dict(_unwrapped(module).named_children()).get(name)  # type: ignore[assignment]
        if module is None:
            suggestion = nearest(str(layer), [name for name, _ in _unwrapped(model).named_modules() if name])
            raise InputError(f"layer must be a module of {type(model).__name__}, got {format_value(layer)}{suggestion}")
    wrapped = any(_unwrapped(holder) is not holder for holder in holders)
    # `nn.Module.compile` sets it: the module's call is compiled.
    if wrapped or any(getattr(part, "_compiled_call_impl", None) is not None for part in (*holders, module)):
        raise InputError(
            f"layer must not lie in a compiled module, which would not see its hook, got {format_value(layer)}"
        )
    return module


def _unwrapped(module: nn.Module) -> nn.Module:
    """Return the module that `torch.compile` wrapped, or the module itself."""
    inner = module._modules.get("_orig_mod")  # noqa: SLF001 - an isinstance would import the compiler
    return module if inner is None else inner
