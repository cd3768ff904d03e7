"""The pose network of meta-regression (Yin et al. 2020, arXiv 1912.03820; google-research
meta_learning_without_memorization/pose_code), an encoder that tasks share and a decoder that adapts to each.

Encoder: three convolutions 3x3 of stride 2 with ReLU (32, 48, 64 channels, a 2x2 maximum after the second), a linear
layer to 196 numbers, read as an image of 14 x 14. Decoder: four blocks of convolution 3x3 (64 channels), batch
normalisation by the statistics of the batch at hand, always, and ReLU; the mean over pixels; a linear layer to one
number. Normalisation has a shift but no scale, as in the original; Xavier initialisation, biases 0, the last weight
N(0, 1/64).

Differences from the original: padding on both sides where TensorFlow's "same" pads right and bottom; the last weight is
drawn with standard deviation 1/8 instead of 1; the inner loop adapts the shifts of the normalisation, too.
"""

import torch
from torch import Tensor, nn
from torch.nn.functional import max_pool2d

from cmixup.backbone import Blockwise
from cmixup.errors import InputError, check_count

SIDE, EPS = 14, 1e-3  # TensorFlow's epsilon of batch normalisation
CODE = SIDE * SIDE
VIEWS_PER_BLOCK = 15  # views the encoder takes at once on the CPU
POINTS = ("input", "encoder", "block1", "block2", "block3")


class Encoder(nn.Module):
    """From views `(B, 1, H, W)` to codes `(B, 196)`."""

    def __init__(self, side: tuple[int, int]):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 32, 3, stride=2, padding=1)
        self.conv2 = nn.Conv2d(32, 48, 3, stride=2, padding=1)
        self.conv3 = nn.Conv2d(48, 64, 3, stride=2, padding=1)
        self.out = nn.Linear(64 * (side[0] // 16) * (side[1] // 16), CODE)
        for part in (self.conv1, self.conv2, self.conv3, self.out):
            _xavier(part)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # a third faster on the CPU

    def forward(self, x: Tensor) -> Tensor:
        """Return the codes; on the CPU by maps of blocks that stay in its cache, in three quarters of the time."""
        if x.device.type == "cpu" and len(x) > VIEWS_PER_BLOCK:
            return self.out(torch.cat([self.maps(part) for part in torch.split(x, VIEWS_PER_BLOCK)]))
        return self.out(self.maps(x))

    def maps(self, x: Tensor) -> Tensor:
        """Return the maps of one block, flat."""
        x = self.conv2(self.conv1(x).relu())
        x = max_pool2d(x, 2).relu()  # in this order a quarter of the work, for the same values
        return self.conv3(x).relu().flatten(1)


class ConvBlock(nn.Module):
    """A block of the decoder: convolution, normalisation by the statistics of the batch, ReLU."""

    def __init__(self, channels: int, width: int):
        super().__init__()
        self.conv = nn.Conv2d(channels, width, 3, padding=1)
        self.shift = nn.Parameter(torch.zeros(width))
        _xavier(self.conv)

    def forward(self, x: Tensor) -> Tensor:
        """Return `(B, width, 14, 14)` for `(B, channels, 14, 14)`."""
        x = self.conv(x)
        x = x - x.mean(dim=(0, 2, 3), keepdim=True)  # two means: `var_mean` is slower, most of all its derivatives
        variance = x.square().mean(dim=(0, 2, 3), keepdim=True)
        return (x * (variance + EPS).rsqrt() + self.shift[:, None, None]).relu()


class Decoder(nn.Module):
    """From codes `(B, 196)` to predictions `(B, 1)`; the part that adapts to a task."""

    def __init__(self, width: int):
        super().__init__()
        self.block1, self.block2, self.block3, self.block4 = (ConvBlock(c, width) for c in (1, width, width, width))
        self.out = nn.Linear(width, 1)
        nn.init.normal_(self.out.weight, std=width**-0.5)
        nn.init.zeros_(self.out.bias)

    def forward(self, state: Tensor, start: str = "encoder", stop: str = "") -> Tensor:
        """Run from mix point `start` to mix point `stop`, or to the prediction if that is empty."""
        first, last = (POINTS.index(point) if point else len(POINTS) for point in (start, stop))
        if first == POINTS.index("encoder") < last:
            state = state.reshape(-1, 1, SIDE, SIDE)
        blocks = (self.block1, self.block2, self.block3, self.block4)
        for block in blocks[first - 1 : last - 1]:
            state = block(state)
        return state if stop else self.out(state.mean(dim=(2, 3)))


class ConvMAML(Blockwise):
    """Encoder and decoder.

    Args:
        in_shape: shape of one view, `(1, H, W)`; H and W are multiples of 16, 128 in the paper.
        out_features: labels in a row of the data. Each view has one, so the network has one output for any number.
        width: channels of the decoder.

    Raises:
        InputError: views of another shape, a width below 1.
    """

    layers = POINTS
    default_layer = "encoder"
    draws = False

    def __init__(self, in_shape: tuple[int, ...], out_features: int, width: int = 64):
        super().__init__()
        if len(in_shape) != 3 or in_shape[0] != 1 or any(side < 16 or side % 16 for side in in_shape[1:]):
            raise InputError(
                f"in_shape must be (1, H, W) with multiples of 16 for ConvMAML, got {tuple(in_shape)}: "
                "it needs a dataset of grey views"
            )
        check_count("width", width, 1)
        self.encoder = Encoder((in_shape[1], in_shape[2]))
        self.decoder = Decoder(width)

    def run(self, state: Tensor, first: int, last: int) -> Tensor:
        if first == 0 < last:
            state, first = self.encoder(state), 1
        return self.decoder(state, POINTS[first], POINTS[last]) if first < last else state

    def pool(self, state: Tensor) -> Tensor:
        """Return the means over pixels of the last block, `(B, width)`; they depend on the batch's statistics."""
        return self.decoder.block4(state).mean(dim=(2, 3))

    def head(self, features: Tensor) -> Tensor:
        return self.decoder.out(features)


def _xavier(part: nn.Conv2d | nn.Linear) -> None:
    nn.init.xavier_uniform_(part.weight)
    assert part.bias is not None
    nn.init.zeros_(part.bias)
