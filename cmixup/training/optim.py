"""Adam and SGD on PyTorch's fused kernels, without `torch.optim`.

The updates are those of `torch.optim` (tests compare them bit for bit). Its first use imports the compiler, about three
seconds, and its steps cost 0.2 ms of bookkeeping, as much as the arithmetic of a small model. The kernels act
elementwise, so the models of a stack train as they would alone.
"""

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Self

import torch
from torch import Tensor, nn

from cmixup.errors import InputError, check_choice, check_nonnegative, check_positive

Rate = float | Sequence[float]


class Optimizer:
    """The base of both, over floating-point parameters of one device; a subclass has `_tensors` and `_update`.

    The learning rate `lr` may be changed between steps; `weight_decay` is an L2 penalty added to the gradient. Each is
    a number, or one for each model of a stack, along the first axis of every parameter.
    """

    def __init__(self, params: Iterable[nn.Parameter], lr: Rate, weight_decay: Rate = 0.0):
        self.params = [p for p in params if p.requires_grad]
        self.lr, self.weight_decay = lr, weight_decay
        # The kernels copy tensors that are not contiguous, at every step, so they get views with axes in memory order.
        self._axes = [sorted(range(p.ndim), key=p.stride, reverse=True) for p in self.params]
        self._values = [p.detach().permute(axes) for p, axes in zip(self.params, self._axes, strict=True)]
        self._cut: tuple[list[int], list[list[Sequence[Tensor]]]] = [], []  # views for models with rates of their own

    def zero_grad(self) -> None:
        """Forget the gradients."""
        for parameter in self.params:
            parameter.grad = None

    @torch.no_grad()
    def step(self) -> None:
        """Update every parameter that has a gradient."""
        permuted = {k: g.permute(self._axes[k]) for k, p in enumerate(self.params) if (g := p.grad) is not None}
        if permuted:
            self._update(list(permuted), list(permuted.values()))

    def _update(self, index: list[int], gradients: list[Tensor]) -> None:
        """Update the parameters `index` by their gradients in memory order."""

    def reset(self) -> None:
        """Set moments and momentum to 0, as in a new optimiser; `lr` stays."""
        for tensor in self._tensors():
            tensor.zero_()

    def state_dict(self) -> dict[str, list[Tensor]]:
        """Return a copy of the state."""
        return {"state": [tensor.clone() for tensor in self._tensors()]}

    def load_state_dict(self, state: Mapping[str, Sequence[Tensor]]) -> None:
        """Load the result of `state_dict`."""
        for tensor, value in zip(self._tensors(), state["state"], strict=True):
            tensor.copy_(value)

    def take(self, other: Self, places: Tensor) -> None:
        """Go on with the state of some models of a stack, `places: (E,)` of an optimiser of the same kind."""
        for tensor, value in zip(self._tensors(), other._tensors(), strict=True):
            tensor.copy_(value if tensor.shape == value.shape else value[places])

    def _tensors(self) -> list[Tensor]:
        """Return the moments, momentum and counts of steps."""
        return []

    def _parts(
        self, index: list[int], gradients: list[Tensor], *state: list[Tensor]
    ) -> Iterator[tuple[list[list[Tensor]], float, float]]:
        """Yield values, gradients and state of the models that share both rates, with these rates.

        Views are kept from step to step: to make them costs as much as the update of small models.
        """
        sizes, rates = _groups(self.lr, self.weight_decay)
        if len(sizes) == 1:
            yield [_pick(self._values, index), gradients, *(_pick(tensors, index) for tensors in state)], *rates[0]
            return
        if self._cut[0] != sizes:
            self._cut = sizes, [[torch.split(t, sizes) for t in tensors] for tensors in (self._values, *state)]
        values, *others = (_pick(tensors, index) for tensors in self._cut[1])
        cut = [values, [torch.split(gradient, sizes) for gradient in gradients], *others]
        for k, (lr, weight_decay) in enumerate(rates):
            yield [[pieces[k] for pieces in tensors] for tensors in cut], lr, weight_decay


class Adam(Optimizer):
    """Adam (Kingma and Ba 2015) with beta 0.9 and 0.999, epsilon 1e-8."""

    def __init__(self, params: Iterable[nn.Parameter], lr: Rate, weight_decay: Rate = 0.0):
        super().__init__(params, lr, weight_decay)
        self._mean, self._square = ([torch.zeros_like(value) for value in self._values] for _ in range(2))
        # The counts of all parameters lie in one tensor, so that one addition raises them.
        self._count = torch.zeros(len(self.params), device=self.params[0].device)
        self._counts = list(self._count.unbind())

    def _tensors(self) -> list[Tensor]:
        return [*self._mean, *self._square, self._count]

    def _update(self, index: list[int], gradients: list[Tensor]) -> None:
        if len(index) == len(self.params):
            self._count += 1
        else:
            self._count[index] += 1
        counts = _pick(self._counts, index)
        for (values, slopes, mean, square), lr, weight_decay in self._parts(index, gradients, self._mean, self._square):
            torch._fused_adam_(
                values, slopes, mean, square, [], counts, lr=lr, beta1=0.9, beta2=0.999, weight_decay=weight_decay,
                eps=1e-8, amsgrad=False, maximize=False,
            )  # fmt: skip


class SGD(Optimizer):
    """Gradient descent with momentum, the share of the last update that is kept."""

    def __init__(self, params: Iterable[nn.Parameter], lr: Rate, weight_decay: Rate = 0.0, momentum: float = 0.9):
        super().__init__(params, lr, weight_decay)
        self.momentum = momentum
        self._buffer = [torch.zeros_like(value) for value in self._values]

    def _tensors(self) -> list[Tensor]:
        return self._buffer

    def _update(self, index: list[int], gradients: list[Tensor]) -> None:
        # With a zero buffer and no dampening the first step needs no special case: buffer = momentum * 0 + gradient.
        for (values, slopes, buffer), lr, weight_decay in self._parts(index, gradients, self._buffer):
            torch._fused_sgd_(
                values, slopes, buffer, weight_decay=weight_decay, momentum=self.momentum, lr=lr, dampening=0.0,
                nesterov=False, maximize=False, is_first_step=False,
            )  # fmt: skip


def descend(loss: Tensor, *optimizers: Optimizer) -> Tensor:
    """Take one step of each optimiser down the gradient of `loss`, a scalar or `(E,)`, and return it detached."""
    for optimizer in optimizers:
        optimizer.zero_grad()
    # The models of a stack share no parameter: the sum trains each on its own loss.
    loss.sum().backward()  # type: ignore[no-untyped-call]
    for optimizer in optimizers:
        optimizer.step()
    return loss.detach()


def check_optimizer(name: str, lr: float, weight_decay: float) -> None:
    """Raise `InputError` for an unknown name, lr not above 0, or weight_decay below 0 or not finite."""
    check_choice("optimizer", name, ("adam", "sgd"))
    check_positive("lr", lr)
    check_nonnegative("weight_decay", weight_decay)


def make_optimizer(name: str, params: Iterable[nn.Parameter], lr: Rate, weight_decay: Rate = 0.0) -> Optimizer:
    """Return the optimiser "adam" or "sgd" (momentum 0.9), whose options `check_optimizer` checks."""
    for rate, decay in _groups(lr, weight_decay)[1]:
        check_optimizer(name, rate, decay)
    return (Adam if name == "adam" else SGD)(params, lr, weight_decay)


def _pick(tensors: list[Any], index: list[int]) -> list[Any]:
    return tensors if len(index) == len(tensors) else [tensors[k] for k in index]


def _groups(lr: Rate, weight_decay: Rate) -> tuple[list[int], list[tuple[float, float]]]:
    """Return how many models follow one another that have both rates alike, and these rates."""
    sizes = {len(rate) for rate in (lr, weight_decay) if isinstance(rate, Sequence)}
    if len(sizes) > 1:
        raise InputError(f"lr and weight_decay must be of as many models, got {sorted(sizes)}")
    count = sizes.pop() if sizes else 1
    lrs, decays = (rate if isinstance(rate, Sequence) else [rate] * count for rate in (lr, weight_decay))
    runs = [(rates, len(list(group))) for rates, group in itertools.groupby(zip(lrs, decays, strict=True))]
    return [size for _, size in runs], [rates for rates, _ in runs]
