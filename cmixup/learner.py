"""The model (or stack of models) being trained, with its optimiser."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from cmixup.errors import InputError
from cmixup.optim import make_optimizer


class Learner:
    """E models of one architecture as one, with one optimiser.

    With E = 1 this is the model itself. With more, every parameter gets a leading axis of E models, and the model
    runs inputs `(E, B, ...)`: all optimisers here act elementwise, so each model trains as it would alone.

    Args:
        models: E models, already initialised.
        device: where to train.
        optimizer, lr, weight_decay: see `cmixup.optim.make_optimizer`.

    Raises:
        InputError: several models that cannot be stacked.
    """

    def __init__(
        self,
        models: Sequence[nn.Module],
        device: torch.device,
        optimizer: str = "adam",
        lr: float = 1e-3,
        weight_decay: float = 0.0,
    ):
        self.size, self.device = len(models), device
        if self.size > 1 and not getattr(models[0], "stackable", False):
            raise InputError(f"models of class {type(models[0]).__name__} cannot be trained as one stack")
        self.model = (models[0] if self.size == 1 else stack(models)).to(device)
        self.optimizer = make_optimizer(optimizer, self.model.parameters(), lr, weight_decay)
        self._best = {name: value.detach().clone() for name, value in self.model.state_dict().items()}

    def keep(self, better: Tensor) -> None:
        """Remember the current weights of the models where `better: (E,)` is true."""
        if not bool(better.any()):
            return
        for name, value in self.model.state_dict().items():
            if self.size == 1:
                self._best[name].copy_(value)
            else:
                self._best[name][better] = value[better]

    def restore(self) -> None:
        """Go back to the remembered weights."""
        self.model.load_state_dict(self._best)

    def progress(self) -> dict[str, Any]:
        """Return the weights, those remembered and the optimiser's state."""
        return {"model": self.model.state_dict(), "best": self._best, "optimizer": self.optimizer.state()}

    def resume(self, progress: Mapping[str, Any]) -> None:
        """Go on from what `progress` returned."""
        self.model.load_state_dict(progress["model"])
        for name, value in progress["best"].items():
            self._best[name].copy_(value)
        self.optimizer.restore(progress["optimizer"])

    def state_dict(self, member: int) -> dict[str, Tensor]:
        """Return the remembered weights of one model, on the CPU; they load into a model of its class."""
        chosen = {name: value if self.size == 1 else value[member] for name, value in self._best.items()}
        return {name: value.cpu().clone(memory_format=torch.contiguous_format) for name, value in chosen.items()}


def stack(models: Sequence[nn.Module]) -> nn.Module:
    """Return one module whose parameters are those of `models`, stacked along a new first axis."""
    together = copy.deepcopy(models[0])
    named = [dict(model.named_parameters()) for model in models]
    for path, parameter in together.named_parameters():
        each = [parameters[path].detach() for parameters in named]
        # Matrices keep their shape (E, out, in) but lie in memory as (E, in, out): so the gradient that the batched
        # product gives already has the layout of its parameter, and no step copies it (a fifth of its time).
        parameter.data = torch.stack([p.mT for p in each]).mT if parameter.ndim == 2 else torch.stack(each)
    return together
