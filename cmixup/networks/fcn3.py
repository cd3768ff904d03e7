"""FCN3: the fully connected regressor of Airfoil, NO2, Crime and SkillCraft (huaxiuyao/C-Mixup src/models.py).

`Linear(d,128) LeakyReLU(0.1) | Linear(128,128) LeakyReLU(0.1) | Linear(128,d_y)`, PyTorch's default initialisation,
neither BatchNorm nor dropout. The released code mixes hidden states after the first block. Width and depth are options.
Inputs of several dimensions, such as windows of a series, are laid flat.
"""

import math

from torch import Tensor
from torch.nn.functional import leaky_relu

from cmixup.backbone import StackLinear, TableNetwork

WIDTH, SLOPE = 128, 0.1


class FCN3(TableNetwork):
    """Three fully connected layers.

    Args:
        in_shape: shape of one input, `(d,)` or of more dimensions.
        out_features: label width d_y.
        width, depth: of the hidden layers, see `TableNetwork`.
    """

    def __init__(self, in_shape: tuple[int, ...], out_features: int, width: int = WIDTH, depth: int = 2):
        super().__init__((math.prod(in_shape),), width, depth)
        self.dimensions = len(in_shape)
        for k, fan_in in enumerate([math.prod(in_shape), *[width] * (depth - 1)], 1):
            setattr(self, f"linear{k}", StackLinear(fan_in, width))
        self.out = StackLinear(width, out_features)

    def run(self, state: Tensor, first: int, last: int) -> Tensor:
        if first == 0 < last and self.dimensions > 1:
            state = state.flatten(-self.dimensions)
        for k in range(first + 1, last + 1):
            linear = getattr(self, f"linear{k}")
            state = leaky_relu(linear(state), SLOPE, inplace=True)  # nothing else reads the sums
        return state

    def head(self, features: Tensor) -> Tensor:
        return self.out(features)
