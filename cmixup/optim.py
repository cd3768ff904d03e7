"""Adam and SGD on PyTorch's fused kernels, without `torch.optim`.

The same updates as `torch.optim.Adam` and `torch.optim.SGD` (tests compare them bit for bit). Their first use imports
the compiler, about three seconds, and every step costs about 0.2 ms of bookkeeping: as much as the arithmetic of a
small model. The kernels act elementwise, so the models of a stack train as they would alone.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from cmixup.errors import InputError, as_number, check_choice, check_positive


class Optimizer:
    """What both share: parameters, learning rate and weight decay, and clearing gradients.

    Args:
        params: floating-point parameters, all on one device.
        lr: learning rate, above 0; may be changed between steps.
        weight_decay: L2 penalty added to the gradient, 0 or more.
    """

    def __init__(self, params: Iterable[nn.Parameter], lr: float, weight_decay: float = 0.0):
        self.params = [p for p in params if p.requires_grad]
        self.lr = check_positive("lr", lr)
        self.weight_decay = as_number("weight_decay", weight_decay)
        if not self.weight_decay >= 0:
            raise InputError(f"weight_decay must be 0 or more, got {weight_decay!r}")

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for parameter in self.params:
            parameter.grad = None

    def _with_gradients(self) -> list[int]:
        return [k for k, parameter in enumerate(self.params) if parameter.grad is not None]

    def _gradients(self, on: list[int]) -> list[Tensor]:
        return [grad for k in on if (grad := self.params[k].grad) is not None]

    def step(self) -> None:
        """Update every parameter that has a gradient."""


class Adam(Optimizer):
    """Adam (Kingma and Ba 2015) with beta 0.9 and 0.999, epsilon 1e-8."""

    def __init__(self, params: Iterable[nn.Parameter], lr: float, weight_decay: float = 0.0):
        super().__init__(params, lr, weight_decay)
        self._mean = [torch.zeros_like(p, memory_format=torch.preserve_format) for p in self.params]
        self._square = [torch.zeros_like(p, memory_format=torch.preserve_format) for p in self.params]
        self._steps = [torch.zeros((), dtype=torch.float32, device=p.device) for p in self.params]

    @torch.no_grad()
    def step(self) -> None:
        """Take one step."""
        on = self._with_gradients()
        if not on:
            return
        steps = _pick(self._steps, on)
        torch._foreach_add_(steps, 1)
        torch._fused_adam_(
            _pick(self.params, on), self._gradients(on), _pick(self._mean, on), _pick(self._square, on),
            [], steps, lr=self.lr, beta1=0.9, beta2=0.999, weight_decay=self.weight_decay, eps=1e-8, amsgrad=False,
            maximize=False,
        )  # fmt: skip


class SGD(Optimizer):
    """Gradient descent with momentum.

    Args:
        params, lr, weight_decay: see `Optimizer`.
        momentum: share of the last update that is kept.
    """

    def __init__(self, params: Iterable[nn.Parameter], lr: float, weight_decay: float = 0.0, momentum: float = 0.9):
        super().__init__(params, lr, weight_decay)
        self.momentum = momentum
        self._buffer = [torch.zeros_like(p, memory_format=torch.preserve_format) for p in self.params]

    @torch.no_grad()
    def step(self) -> None:
        """Take one step."""
        on = self._with_gradients()
        if not on:
            return
        # With a zero buffer and no dampening the first step needs no special case: buffer = momentum * 0 + gradient.
        torch._fused_sgd_(
            _pick(self.params, on), self._gradients(on), _pick(self._buffer, on),
            weight_decay=self.weight_decay, momentum=self.momentum, lr=self.lr, dampening=0.0, nesterov=False,
            maximize=False, is_first_step=False,
        )  # fmt: skip


def make_optimizer(name: str, params: Iterable[nn.Parameter], lr: float, weight_decay: float = 0.0) -> Optimizer:
    """Return the optimiser "adam" or "sgd" (momentum 0.9).

    Raises:
        InputError: an unknown name, lr not above 0, weight_decay below 0.
    """
    check_choice("optimizer", name, ("adam", "sgd"))
    return (Adam if name == "adam" else SGD)(params, lr, weight_decay)


def _pick(tensors: list, on: list[int]) -> list[Tensor]:
    return tensors if len(on) == len(tensors) else [tensors[k] for k in on]
