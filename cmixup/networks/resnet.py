"""ResNet: the image backbone of RCF-MNIST and PovertyMap (He et al. 2016, "Deep Residual Learning for Image
Recognition"; torchvision `resnet18` and `resnet50`).

The blocks are torchvision's, with its parameter names, so its weight files load; the first convolution and the linear
layer are made here. The released C-Mixup code mixes hidden states after layer 4; only pooling and the linear layer
follow, so in evaluation mode this mixes predictions.

Differences from the original code: any number of input channels (PovertyMap has 8) and an option for the width. WILDS
calls a network of depths [3, 4, 23, 3] "ResNet50"; depth 50 here is the true [3, 4, 6, 3].
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from cmixup.errors import InputError, check_count
from cmixup.networks.vision import Staged, import_torchvision, load_weights

STAGES = ("layer1", "layer2", "layer3", "layer4")
DEPTHS = {18: ("BasicBlock", [2, 2, 2, 2]), 50: ("Bottleneck", [3, 4, 6, 3])}  # kind and number of torchvision's blocks
WIDTH = 64  # channels of torchvision's first stage


class ResNet(Staged):
    """A residual network with one linear layer on the pooled features.

    Args:
        in_shape: shape of one input, `(channels, height, width)`.
        out_features: label width d_y.
        depth: 18 or 50.
        weights: a file of ImageNet weights, as torchvision publishes them, for everything but the linear layer; None
            initialises at random.
        width: channels of layer 1; 64 is the published network.
        channels_last: keep the channels of a pixel next to each other in memory: the same numbers but for rounding, and
            of use for narrow networks on a CPU alone.

    Raises:
        InputError: inputs that are no images, an unknown depth, weights that cannot be read or do not fit.
    """

    layers = ("input", "stem", *STAGES)
    default_layer = "layer4"
    draws = False

    def __init__(
        self, in_shape: tuple[int, ...], out_features: int, depth: int = 18, weights: str | None = None,
        width: int = WIDTH, *, channels_last: bool = False,
    ):  # fmt: skip
        super().__init__()
        if len(in_shape) != 3:
            raise InputError(f"in_shape must be (channels, height, width) for ResNet, got {tuple(in_shape)}")
        if depth not in DEPTHS:
            raise InputError(f"depth must be one of {', '.join(map(str, DEPTHS))}, got {depth!r}")
        check_count("width", width, 1)
        with torch.device("meta"):  # nothing is drawn before `_initialise`
            trunk = _trunk(depth, width)
            self.conv1 = nn.Conv2d(in_shape[0], width, 7, 2, 3, bias=False)
            self.bn1 = nn.BatchNorm2d(width)
            self.maxpool = nn.MaxPool2d(3, 2, 1)
            for name in STAGES:
                self.add_module(name, getattr(trunk, name))
            self.fc = nn.Linear(trunk.inplanes, out_features)
        _initialise(self)
        self._format = torch.channels_last if channels_last else torch.contiguous_format
        self.to(memory_format=self._format)  # type: ignore[call-overload]
        if weights is not None:
            path = Path(weights)
            self.notes = (f"ResNet initialised from {path.name} (SHA-256 {load_weights(self, path)})",)
        elif in_shape[0] == 3:
            self.notes = (
                "ResNet initialised at random: the paper starts from ImageNet weights (model.weights=<file>)",
            )

    def stem(self, x: Tensor) -> Tensor:
        """Return `(B, width, H / 4, W / 4)`: convolution and max-pool."""
        return self.maxpool(torch.relu(self.bn1(self.conv1(x.contiguous(memory_format=self._format)))))


class _Conv3x3(nn.Conv2d):
    """A 3 x 3 convolution that reads only the taps that meet pixels where its output is one pixel.

    On images of 28 x 28 that is all of layer 4: at its full width a training step takes a fifth less time on a CPU.
    """

    def forward(self, x: Tensor) -> Tensor:
        height, width = x.shape[-2:]
        if max(height, width) > self.stride[0] or self.out_channels < 512:  # narrow ones gain nothing
            return super().forward(x)
        taps = self.weight[:, :, 1 : 1 + height, 1 : 1 + width]
        return functional.linear(x.flatten(1), taps.flatten(1))[..., None, None]


def _trunk(depth: int, width: int) -> Any:
    """Return torchvision's network with its stages scaled to `width`; its first convolution and last layer stay."""
    resnet = import_torchvision("torchvision.models.resnet")
    block, blocks = DEPTHS[depth]

    class Scaled(resnet.ResNet):  # type: ignore[name-defined]
        def _make_layer(self, block: Any, planes: int, *rest: Any, **named: Any) -> nn.Module:
            if planes == WIDTH:
                self.inplanes = width  # channels that the first stage reads
            return super()._make_layer(block, planes * width // WIDTH, *rest, **named)

    trunk = Scaled(getattr(resnet, block), blocks)
    for part in trunk.modules():
        if isinstance(part, nn.Conv2d) and part.kernel_size == (3, 3):
            part.__class__ = _Conv3x3  # torchvision's blocks take no class for their convolutions
    return trunk


def _initialise(model: nn.Module) -> None:
    """Draw all parameters on the CPU: PyTorch's defaults first, then Kaiming's normal numbers for the convolutions.

    torchvision makes the same two passes, but in the second it draws a block's shortcut last. Here the shortcut comes
    first in both, so that a seed gives the weights that the published runs on RCF-MNIST started from.
    """
    model.to_empty(device="cpu")
    parts = list(_shortcuts_first(model))
    for part in parts:
        part.reset_parameters()
    for part in parts:
        if isinstance(part, nn.Conv2d):
            nn.init.kaiming_normal_(part.weight, mode="fan_out", nonlinearity="relu")


def _shortcuts_first(module: nn.Module) -> Iterator[Any]:
    """Yield the modules that have parameters of their own, those of a block's `downsample` before its others."""
    if isinstance(module, (nn.Conv2d, nn.BatchNorm2d, nn.Linear)):
        yield module
    for _, child in sorted(module.named_children(), key=lambda item: item[0] != "downsample"):
        yield from _shortcuts_first(child)
