"""FCN3: the fully connected regressor of Airfoil, NO2, Crime and SkillCraft (huaxiuyao/C-Mixup src/models.py).

`Linear(d,128) LeakyReLU(0.1) | Linear(128,128) LeakyReLU(0.1) | Linear(128,d_y)`, PyTorch's default initialisation,
neither BatchNorm nor dropout. The released code mixes hidden states after the first block.
"""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor
from torch.nn.functional import leaky_relu

from cmixup.backbone import Backbone, StackLinear
from cmixup.errors import InputError

WIDTH, SLOPE = 128, 0.1


class FCN3(Backbone):
    """Three fully connected layers.

    Args:
        in_shape: shape of one input, `(d,)`.
        out_features: label width d_y.
    """

    layers: ClassVar[tuple[str, ...]] = ("input", "block1", "block2")
    default_layer: ClassVar[str | None] = "block1"
    stackable: ClassVar[bool] = True

    def __init__(self, in_shape: tuple[int, ...], out_features: int):
        super().__init__()
        if len(in_shape) != 1:
            raise InputError(f"in_shape must be (features,) for FCN3, got {tuple(in_shape)}")
        (width,) = in_shape
        self.linear1 = StackLinear(width, WIDTH)
        self.linear2 = StackLinear(WIDTH, WIDTH)
        self.out = StackLinear(WIDTH, out_features)

    def block1(self, x: Tensor) -> Tensor:
        """Return the first hidden state, `(..., B, 128)`."""
        return leaky_relu(self.linear1(x), SLOPE, inplace=True)  # nothing else reads the sums

    def block2(self, state: Tensor) -> Tensor:
        """Return the second hidden state, `(..., B, 128)`."""
        return leaky_relu(self.linear2(state), SLOPE, inplace=True)

    def encode(self, x: Tensor, layer: str) -> Tensor:
        """Run inputs `(..., B, d)` to the mix point `layer`."""
        if layer == "input":
            return x
        if layer == "block1":
            return self.block1(x)
        if layer == "block2":
            return self.block2(self.block1(x))
        return super().encode(x, layer)

    def decode(self, state: Tensor, layer: str) -> Tensor:
        """Run from the mix point `layer` to predictions `(..., B, d_y)`."""
        if layer == "input":
            return self(state)
        if layer == "block1":
            return self.out(self.block2(state))
        if layer == "block2":
            return self.out(state)
        return super().decode(state, layer)

    def features(self, x: Tensor) -> Tensor:
        """Return the second block's output, `(..., B, 128)`."""
        return self.block2(self.block1(x))

    def head(self, features: Tensor) -> Tensor:
        """Return predictions `(..., B, d_y)`."""
        return self.out(features)
