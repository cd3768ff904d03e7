"""RealMLP's network (Holzmüller, Grinsztajn and Steinwart 2024, NeurIPS, arXiv 2407.04491), from its Appendix A.

Numeric features pass embeddings (PBLD): `[W2 cos(2 pi w1 x + b1) + b2, x]` for each feature by itself. Then come a
scale for each embedded feature and three hidden layers `x W / sqrt(fan_in) + b` ("NTK" form) with the parametric
activation `x + a (mish(x) - x)` and dropout, and a linear output in the same form.

The paper gives groups of parameters rates of their own: 6 times the rate for the scale, a tenth for biases, activations
and embeddings. Steps of Adam do not depend on the size of a gradient, so a parameter that is stored divided by c learns
at c times the rate: that is how the factors are kept here, with any optimiser of the driver that is Adam.

Differences from RealMLP-TD: weights and biases begin as in its simplified form (normal, the output at 0), since those
of the full one read the training rows. The driver's rate is constant (no coslog4), beta2 is 0.999 and dropout does not
fade. Features are scaled as the dataset says (no robust scaling with a smooth clip), and predictions are not clamped to
the range of the training labels.
"""

import math
from itertools import pairwise

import torch
from torch import Tensor, nn
from torch.nn.functional import mish

from cmixup.backbone import TableNetwork
from cmixup.seeding import dropout

SCALE_RATE, SLOW_RATE = 6.0, 0.1  # times the learning rate: of the scale; of biases, activations and embeddings
FREQUENCIES, EMBEDDED = 16, 4  # of a feature's embedding, the feature itself included in the latter
SIGMA = 0.1  # of the frequencies at the beginning


class Rated(nn.Module):
    """A parameter that begins at `value` and learns at `factor` times the learning rate, above 0, under Adam."""

    def __init__(self, value: Tensor, factor: float):
        super().__init__()
        self.factor, self.stored = factor, nn.Parameter(value / factor)

    def forward(self) -> Tensor:
        """Return the parameter's value."""
        return self.factor * self.stored


class Embeddings(nn.Module):
    """PBLD embeddings of d `features`, `(B, d)` to `(B, 4 d)`: three numbers for each feature, then all features."""

    def __init__(self, features: int):
        super().__init__()
        bound = 1 / math.sqrt(FREQUENCIES)
        hidden_shape, output_shape = (features, 1, FREQUENCIES), (features, 1, EMBEDDED - 1)
        self.weight1 = Rated(SIGMA * torch.randn(hidden_shape), SLOW_RATE)
        self.bias1 = Rated(math.pi * (2 * torch.rand(hidden_shape) - 1), SLOW_RATE)
        self.weight2 = Rated(bound * (2 * torch.rand(features, FREQUENCIES, EMBEDDED - 1) - 1), SLOW_RATE)
        self.bias2 = Rated(bound * (2 * torch.rand(output_shape) - 1), SLOW_RATE)

    def forward(self, x: Tensor) -> Tensor:
        """Return the embedded features."""
        waves = torch.cos(2 * math.pi * x.mT[..., None] * self.weight1() + self.bias1())
        embedded = (waves @ self.weight2() + self.bias2()).transpose(-3, -2)
        return torch.cat([embedded.flatten(start_dim=-2), x], dim=-1)


class Layer(nn.Module):
    """A linear layer in NTK form, `x W / sqrt(fan_in) + b`; W and b begin at 0 if `zero`, else standard normal."""

    def __init__(self, fan_in: int, fan_out: int, *, zero: bool = False):
        super().__init__()
        make = torch.zeros if zero else torch.randn
        self.weight = nn.Parameter(make(fan_in, fan_out))
        self.bias = Rated(make(fan_out), SLOW_RATE)

    def forward(self, x: Tensor) -> Tensor:
        """Return `(..., B, fan_out)`."""
        return x @ self.weight / math.sqrt(self.weight.shape[-2]) + self.bias()[..., None, :]


class RealMLP(TableNetwork):
    """Embeddings, a scale, and hidden layers with a parametric Mish.

    Args:
        in_shape: shape of one input, `(d,)`.
        out_features: label width d_y.
        width, depth, dropout: of the hidden layers, see `TableNetwork`.
    """

    draws = False

    def __init__(
        self, in_shape: tuple[int, ...], out_features: int, width: int = 256, depth: int = 3, dropout: float = 0.15
    ):
        super().__init__(in_shape, width, depth, dropout)
        (features,) = in_shape
        self.embeddings = Embeddings(features)
        self.scale = Rated(torch.ones(EMBEDDED * features), SCALE_RATE)
        fans = [EMBEDDED * features, *[width] * depth]
        self.hidden = nn.ModuleList(Layer(*fan) for fan in pairwise(fans))
        self.activations = nn.ModuleList(Rated(torch.ones(width), SLOW_RATE) for _ in range(depth))
        self.out = Layer(width, out_features, zero=True)

    def run(self, state: Tensor, first: int, last: int) -> Tensor:
        """Run the blocks between two mix points, `(..., B, width)`; embeddings belong to the first block."""
        if first == 0 < last:
            state = self.embeddings(state) * self.scale()[..., None, :]
        for k in range(first, last):
            sums = self.hidden[k](state)
            activated = sums + (mish(sums) - sums) * self.activations[k]()[..., None, :]
            state = dropout(activated, self.dropout, self.training)
        return state

    def head(self, features: Tensor) -> Tensor:
        return self.out(features)
