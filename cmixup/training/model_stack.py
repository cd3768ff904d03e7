"""A stack: E modules of one class as one module whose parameters and buffers have a leading axis of E."""

# ruff: noqa: SLF001 - a module is copied with other tensors in it, for which PyTorch has no public function

import copy
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from cmixup.errors import InputError
from cmixup.training.losses import InLossUnits, LabelScaling
from cmixup.training.optim import Optimizer, Rate, make_optimizer

AnyModule = TypeVar("AnyModule", bound=nn.Module)


class ModelStack:
    """E initialised models of one architecture as one `model`, with one `optimizer`.

    With E = `size` = 1 this is the model itself. With more, every parameter gets a leading axis of E models, and the
    model runs inputs `(E, B, ...)`: all optimisers act elementwise, so each model trains as it would alone, up to
    rounding in the batched products. `labels` is for methods that read rows by themselves; those of a batch are scaled.
    """

    def __init__(
        self, models: Sequence[nn.Module], device: torch.device, optimizer: str = "adam", lr: Rate = 1e-3,
        weight_decay: Rate = 0.0, *, labels: LabelScaling | None = None,
    ):  # fmt: skip
        self.size, self.device, self.labels = len(models), device, labels or LabelScaling()
        self.model = stack_modules(models).to(device)
        self.optimizer = make_optimizer(optimizer, self.model.parameters(), lr, weight_decay)
        self._best = {name: value.detach().clone() for name, value in self.model.state_dict().items()}

    def seen_by_loss(self) -> Self:
        """Return the stack to take steps with: its model's outputs are in the loss's units; it shares all else."""
        view = copy.copy(self)
        view.model = InLossUnits(self.model, self.labels) if self.labels.form == "loss" else self.model
        return view

    def keep_best(self, better: Tensor) -> None:
        """Remember the current weights of the models where `better: (E,)` is true."""
        if not bool(better.any()):
            return
        for name, value in self.model.state_dict().items():
            if self.size == 1:
                self._best[name].copy_(value)
            else:
                self._best[name][better] = value[better]

    def load_best(self, chosen: Tensor | None = None) -> None:
        """Load the remembered weights into the models where `chosen: (E,)` is true, or all; the optimiser stays."""
        if chosen is None or (self.size == 1 and bool(chosen)):
            self.model.load_state_dict(self._best)
        elif self.size > 1:
            for name, value in self.model.state_dict().items():
                value[chosen] = self._best[name][chosen]

    def take(self, other: "ModelStack", places: Sequence[int]) -> None:
        """Go on with the weights, the remembered ones and the optimiser's state of E > 1 models of a larger stack."""
        index = torch.tensor(places, device=self.device)
        other_state = other.model.state_dict()
        for name, value in self.model.state_dict().items():
            value.copy_(other_state[name][index])
            self._best[name].copy_(other._best[name][index])
        self.optimizer.take(other.optimizer, index)

    def put_best(self, other: "ModelStack", places: Sequence[int]) -> None:
        """Copy at `places` the best weights of another stack of as many models, unless it is this one."""
        if other is not self:
            for name, value in self._best.items():
                value[torch.tensor(places, device=self.device)] = other._best[name]

    def best_weights(self, place: int) -> dict[str, Tensor]:
        """Return the remembered weights of the model at `place` on the CPU, as a model of its class loads them."""
        chosen = {name: value if self.size == 1 else value[place] for name, value in self._best.items()}
        return {name: value.cpu().clone(memory_format=torch.contiguous_format) for name, value in chosen.items()}

    def state_dict(self) -> dict[str, Any]:
        """Return the weights, those remembered and the optimiser's state."""
        return {"model": self.model.state_dict(), "best": self._best, "optimizer": self.optimizer.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Load the result of `state_dict`."""
        self.model.load_state_dict(state["model"])
        for name, value in state["best"].items():
            self._best[name].copy_(value)
        self.optimizer.load_state_dict(state["optimizer"])


def stack_modules(modules: Sequence[AnyModule]) -> AnyModule:
    """Return one module whose parameters and buffers are those of `modules`, stacked along a new first axis.

    A single module is returned as it is. Other attributes (samplers, options) are those of the first, not copied.
    """
    first = modules[0]
    if len(modules) == 1:
        return first
    stacked = copy.copy(first)
    stacked._parameters, stacked._buffers, stacked._modules = {}, {}, {}
    for name, parameter in first._parameters.items():
        value = None if parameter is None else nn.Parameter(_stacked(name, modules), parameter.requires_grad)
        stacked._parameters[name] = value
    for name, buffer in first._buffers.items():
        stacked._buffers[name] = buffer if buffer is None else _stacked(name, modules)
    for name, part in first._modules.items():
        stacked._modules[name] = part if part is None else stack_modules([m.get_submodule(name) for m in modules])
    return stacked


def unstack_modules(stack: nn.Module, modules: Sequence[nn.Module]) -> None:
    """Copy the trained parameters and buffers of a stack back into its modules."""
    if len(modules) == 1:
        return
    for name, value in [*stack.named_parameters(), *stack.named_buffers()]:
        for module, model_value in zip(modules, value.detach(), strict=True):
            parts = dict([*module.named_parameters(), *module.named_buffers()])
            parts[name].detach().copy_(model_value)


def _stacked(name: str, modules: Sequence[nn.Module]) -> Tensor:
    values = [value.detach() for module in modules if (value := getattr(module, name)) is not None]
    shapes = sorted({tuple(value.shape) for value in values})
    if len(shapes) > 1 or len(values) < len(modules):
        raise InputError(f"all runs of a stack need {name} of one shape, got {shapes}")
    # Matrices keep their shape (E, out, in) but lie in memory as (E, in, out): so the gradient that the batched
    # product gives already has the layout of its parameter, and no step copies it (a fifth of its time).
    if values[0].ndim == 2 and values[0].is_floating_point():
        return torch.stack([value.mT for value in values]).mT
    return torch.stack(values)


class KeepsState(nn.Module):
    """A part whose attributes named in `kept_state` are saved with it: numbers, arrays and an optimiser."""

    kept_state: ClassVar[tuple[str, ...]] = ()

    def get_extra_state(self) -> dict[str, Any]:
        """Return the attributes as a checkpoint holds them; an optimiser that is not made yet is None."""
        state = {name: getattr(self, name, None) for name in self.kept_state}
        state |= {name: torch.from_numpy(value) for name, value in state.items() if isinstance(value, np.ndarray)}
        return {name: value.state_dict() if isinstance(value, Optimizer) else value for name, value in state.items()}

    def set_extra_state(self, state: Mapping[str, Any]) -> None:
        """Load the result of `get_extra_state`."""
        for name, value in state.items():
            if isinstance(optimizer := getattr(self, name, None), Optimizer):
                optimizer.load_state_dict(value)
            else:
                setattr(self, name, value.numpy() if isinstance(value, Tensor) else value)
