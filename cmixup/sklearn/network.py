"""The network of `TabularRegressor`: layers with ReLU, whose first also sees columns piecewise linearly encoded."""

from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.functional import relu

from cmixup.backbone import StackLinear
from cmixup.sampling.inputs import Floats


class Pieces:
    """Adds piecewise-linear features: how far a column has come from the lower to the upper end of each piece.

    Args:
        table: (m, 5) column, lower end, width, and the mean and standard deviation of the m features.
        device, dtype: in which the features are computed; they are returned in that of the inputs.
    """

    def __init__(self, table: Floats, device: torch.device, dtype: torch.dtype):
        self.column = torch.from_numpy(table[:, 0].astype(np.int64)).to(device)
        self.low, self.width, self.mean, self.scale = torch.from_numpy(table[:, 1:].T.copy()).to(device, dtype)

    def __call__(self, x: Tensor) -> Tensor:
        """Return inputs `(..., B, d)` as `(..., B, d + m)`."""
        progress = ((x.index_select(-1, self.column).to(self.low) - self.low) / self.width).clamp(0, 1)
        return torch.cat([x, ((progress - self.mean) / self.scale).to(x)], dim=-1)


class MLP(nn.Module):
    """Fully connected layers with ReLU between them, initialised as PyTorch does; they stack.

    Args:
        sizes: numbers of features, hidden units and outputs, two or more.
        pieces: features that are added to the inputs.
    """

    stackable = True

    def __init__(self, sizes: Sequence[int], pieces: Pieces):
        super().__init__()
        self.pieces = pieces
        widths = [sizes[0] + len(pieces.column), *sizes[1:]]
        self.linears = nn.ModuleList(StackLinear(n, m, dtype=torch.float32) for n, m in pairwise(widths))

    def forward(self, x: Tensor) -> Tensor:
        """Return predictions `(..., B, outputs)` for inputs `(..., B, features)`."""
        first, *others = self.linears
        state = first(self.pieces(x))
        for linear in others:
            state = linear(relu(state))
        return state


def arrays_of(members: Sequence[dict[str, Tensor]]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Return matrices (members, in, out) and biases (members, out) float32, layer by layer, from states of `MLP`s."""
    count = len(members[0]) // 2
    coefs = [np.stack([state[f"linears.{k}.weight"].numpy().T for state in members]) for k in range(count)]
    return coefs, [np.stack([state[f"linears.{k}.bias"].numpy() for state in members]) for k in range(count)]


def predict_networks(coefs: Sequence[np.ndarray], intercepts: Sequence[np.ndarray], table: Floats, x: Tensor) -> Tensor:
    """Return the predictions of the members' networks, given by `arrays_of`: `(M, n, d_y)` float64.

    float64, so that a prediction does not depend on the rows beside it, `(n, d)`, or `(M, n, d)` where members take
    others. `table` is that of the `Pieces`, which are those of training: narrow ones in float64 are others.
    """
    x, outputs = Pieces(table, x.device, torch.float32)(x), []
    for member in range(len(coefs[0])):
        state = x if x.ndim == 2 else x[member]
        for number, layer in enumerate(zip(coefs, intercepts, strict=True)):
            arrays = (np.array(array[member].T, dtype=np.float64, order="C") for array in layer)
            weight, bias = (torch.from_numpy(array).to(x.device) for array in arrays)
            state = functional.linear(relu(state) if number else state, weight, bias)
        outputs.append(state)
    return torch.stack(outputs)
