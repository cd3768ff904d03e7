"""The network of `CMixupRegressor`: fully connected layers with ReLU."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import relu

from cmixup.backbone import Backbone, StackLinear


class MLP(Backbone):
    """Fully connected layers with ReLU between them, initialised as PyTorch does.

    Args:
        sizes: numbers of features, hidden units and outputs, two or more.

    Attributes:
        layers: the mix points: "input", and "block1", "block2", ... behind each hidden layer.
    """

    stackable = True

    def __init__(self, sizes: Sequence[int]):
        super().__init__()
        self.linears = nn.ModuleList(StackLinear(n, m, dtype=torch.float32) for n, m in pairwise(sizes))
        self.layers = mix_points(len(sizes) - 2)  # type: ignore[misc]  # of its own, where other backbones share theirs
        self.default_layer = "block1" if len(sizes) > 2 else None  # type: ignore[misc]

    def encode(self, x: Tensor, layer: str) -> Tensor:
        """Run inputs `(..., B, d)` to the mix point `layer`."""
        for linear in list(self.linears)[: self._depth(layer)]:
            x = relu(linear(x))
        return x

    def decode(self, state: Tensor, layer: str) -> Tensor:
        """Run from the mix point `layer` to predictions `(..., B, d_y)`."""
        first = self._depth(layer)
        for number, linear in enumerate(list(self.linears)[first:], first):
            state = linear(relu(state) if number > first else state)
        return state

    def forward(self, x: Tensor) -> Tensor:
        """Return predictions `(..., B, d_y)` for inputs `(..., B, d)`."""
        return self.decode(x, "input")

    def _depth(self, layer: str) -> int:
        return self.layers.index(layer)


def mix_points(hidden: int) -> tuple[str, ...]:
    """Return the mix points of a network with so many hidden layers."""
    return ("input", *(f"block{k}" for k in range(1, hidden + 1)))


def arrays_of(weights: dict[str, Tensor]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return matrices (in, out) and biases (out,) float32, layer by layer, from the state of an `MLP`."""
    count = len(weights) // 2
    coefs = [np.ascontiguousarray(weights[f"linears.{k}.weight"].numpy().T) for k in range(count)]
    return coefs, [weights[f"linears.{k}.bias"].numpy() for k in range(count)]


def network_of(coefs: Sequence[np.ndarray], intercepts: Sequence[np.ndarray]) -> MLP:
    """Return the float64 network of these matrices (in, out) and biases (out,).

    float64, so that a prediction does not depend on the rows beside it.
    """
    with torch.random.fork_rng(devices=[]):  # weights are drawn before they are overwritten
        network = MLP([*(len(coef) for coef in coefs), len(intercepts[-1])])
    arrays = {f"linears.{k}.weight": coef.T for k, coef in enumerate(coefs)}
    arrays |= {f"linears.{k}.bias": intercept for k, intercept in enumerate(intercepts)}
    network.load_state_dict({name: torch.from_numpy(np.array(value)) for name, value in arrays.items()})
    return network.double().eval()
