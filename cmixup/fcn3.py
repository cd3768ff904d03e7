"""FCN3: the fully connected regressor of Airfoil, NO2, Crime and SkillCraft (huaxiuyao/C-Mixup src/models.py).

`Linear(d,128) LeakyReLU(0.1) | Linear(128,128) LeakyReLU(0.1) | Linear(128,d_y)`, PyTorch's default initialisation,
neither BatchNorm nor dropout. The released code mixes hidden states after the first block. Width and depth are options.
"""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor
from torch.nn.functional import leaky_relu

from cmixup.backbone import Backbone, StackLinear
from cmixup.errors import InputError, check_count

WIDTH, SLOPE = 128, 0.1


class FCN3(Backbone):
    """Three fully connected layers.

    Args:
        in_shape: shape of one input, `(d,)`.
        out_features: label width d_y.
        width: units of a hidden layer, 1 or more.
        depth: hidden layers, 1 or more; each ends a block, and mix points are `input` and `block1` to `block{depth}`.
    """

    layers: ClassVar[tuple[str, ...]] = ("input", "block1", "block2")
    default_layer: ClassVar[str | None] = "block1"
    stackable: ClassVar[bool] = True

    def __init__(self, in_shape: tuple[int, ...], out_features: int, width: int = WIDTH, depth: int = 2):
        super().__init__()
        if len(in_shape) != 1:
            raise InputError(f"in_shape must be (features,) for FCN3, got {tuple(in_shape)}")
        check_count("width", width, 1)
        check_count("depth", depth, 1)
        self.depth = depth
        self.layers = ("input", *(f"block{k}" for k in range(1, depth + 1)))  # type: ignore[misc] # of this depth
        for k, fan_in in enumerate([*in_shape, *[width] * (depth - 1)], 1):
            setattr(self, f"linear{k}", StackLinear(fan_in, width))
        self.out = StackLinear(width, out_features)

    def _run(self, state: Tensor, first: int, last: int) -> Tensor:
        """Return the state `(..., B, width)` after the blocks from `first` to `last`, counted from 1."""
        for k in range(first, last + 1):
            linear = getattr(self, f"linear{k}")
            state = leaky_relu(linear(state), SLOPE, inplace=True)  # nothing else reads the sums
        return state

    def encode(self, x: Tensor, layer: str) -> Tensor:
        """Run inputs `(..., B, d)` to the mix point `layer`."""
        return self._run(x, 1, self._place(layer))

    def decode(self, state: Tensor, layer: str) -> Tensor:
        """Run from the mix point `layer` to predictions `(..., B, d_y)`."""
        return self.out(self._run(state, self._place(layer) + 1, self.depth))

    def _place(self, layer: str) -> int:
        """Return how many blocks come before the mix point `layer`."""
        if layer not in self.layers:
            raise InputError(f"layer must be one of {', '.join(self.layers)}, got {layer!r}")
        return self.layers.index(layer)

    def features(self, x: Tensor) -> Tensor:
        """Return the last block's output, `(..., B, width)`."""
        return self._run(x, 1, self.depth)

    def head(self, features: Tensor) -> Tensor:
        """Return predictions `(..., B, d_y)`."""
        return self.out(features)
