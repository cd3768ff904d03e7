"""ResNet: the image backbone of RCF-MNIST and PovertyMap (He et al. 2016, "Deep Residual Learning for Image
Recognition"; pytorch/vision torchvision/models/resnet.py, whose parameter names and initialisation are kept, so that
its weight files load).

A 7x7 convolution with stride 2 and a max-pool, four layers of residual blocks, average pooling, one linear layer. The
released C-Mixup code mixes hidden states after layer 4; only pooling and the linear layer follow, so in evaluation mode
this mixes predictions.

Differences from the original code: any number of input channels (PovertyMap has 8) and an option for the width. WILDS
calls a network of depths [3, 4, 23, 3] "ResNet50"; depth 50 here is the true [3, 4, 6, 3].
"""

from __future__ import annotations

import hashlib
import pickle
from pathlib import Path
from typing import ClassVar

import torch
from torch import Tensor, nn

from cmixup.backbone import Backbone
from cmixup.errors import InputError

STAGES = ("layer1", "layer2", "layer3", "layer4")
DEPTHS = {18: (2, 2, 2, 2), 50: (3, 4, 6, 3)}


class Residual(nn.Module):
    """A residual block: what `body` gives is added to the input, which `downsample` brings to its shape.

    Args:
        channels: of the input.
        width: of the block's 3x3 convolutions; its output has `width * expansion` channels.
        stride: of its first 3x3 convolution.
    """

    expansion: ClassVar[int]

    def __init__(self, channels: int, width: int, stride: int):
        super().__init__()
        self.downsample: nn.Module = nn.Identity()
        if stride > 1 or channels != width * self.expansion:
            out = width * self.expansion
            self.downsample = nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))

    def body(self, x: Tensor) -> Tensor:
        """Return what is added to the input."""
        raise NotImplementedError

    def forward(self, x: Tensor) -> Tensor:
        """Return `(B, width * expansion, H / stride, W / stride)`."""
        return torch.relu(self.body(x) + self.downsample(x))


class Basic(Residual):
    """Two 3x3 convolutions (depth 18)."""

    expansion: ClassVar[int] = 1

    def __init__(self, channels: int, width: int, stride: int):
        super().__init__(channels, width, stride)
        self.conv1, self.bn1 = nn.Conv2d(channels, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, 1, 1, bias=False), nn.BatchNorm2d(width)

    def body(self, x: Tensor) -> Tensor:
        """Return what is added to the input."""
        return self.bn2(self.conv2(torch.relu(self.bn1(self.conv1(x)))))


class Bottleneck(Residual):
    """1x1, 3x3 and 1x1 convolutions (depth 50); the 3x3 has the stride."""

    expansion: ClassVar[int] = 4

    def __init__(self, channels: int, width: int, stride: int):
        super().__init__(channels, width, stride)
        out = width * self.expansion
        self.conv1, self.bn1 = nn.Conv2d(channels, width, 1, bias=False), nn.BatchNorm2d(width)
        self.conv2, self.bn2 = nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width)
        self.conv3, self.bn3 = nn.Conv2d(width, out, 1, bias=False), nn.BatchNorm2d(out)

    def body(self, x: Tensor) -> Tensor:
        """Return what is added to the input."""
        x = torch.relu(self.bn1(self.conv1(x)))
        return self.bn3(self.conv3(torch.relu(self.bn2(self.conv2(x)))))


class ResNet(Backbone):
    """A residual network with one linear layer on the pooled features.

    Args:
        in_shape: shape of one input, `(channels, height, width)`.
        out_features: label width d_y.
        depth: 18 or 50.
        weights: a file of ImageNet weights, as torchvision publishes them, for everything but the linear layer; None
            initialises at random.
        width: channels of layer 1; 64 is the published network.

    Attributes:
        notes: whether the network started from weights or, where the paper starts from ImageNet's, at random.

    Raises:
        InputError: inputs that are no images, an unknown depth, weights that cannot be read or do not fit.
    """

    layers: ClassVar[tuple[str, ...]] = ("input", "stem", *STAGES)
    hidden: ClassVar[str | None] = "layer4"

    def __init__(
        self,
        in_shape: tuple[int, ...],
        out_features: int,
        depth: int = 18,
        weights: str | None = None,
        width: int = 64,
    ):
        super().__init__()
        if len(in_shape) != 3:
            raise InputError(f"in_shape must be (channels, height, width) for ResNet, got {tuple(in_shape)}")
        if depth not in DEPTHS:
            raise InputError(f"depth must be one of {', '.join(map(str, DEPTHS))}, got {depth!r}")
        if width < 1:
            raise InputError(f"width must be 1 or more, got {width!r}")
        block = Basic if depth == 18 else Bottleneck
        self.conv1 = nn.Conv2d(in_shape[0], width, 7, 2, 3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.maxpool = nn.MaxPool2d(3, 2, 1)
        channels = width
        for stage, (name, blocks) in enumerate(zip(STAGES, DEPTHS[depth], strict=True)):
            inner = width * 2**stage
            strides = [1 if stage == 0 else 2] + [1] * (blocks - 1)
            made = []
            for stride in strides:
                made.append(block(channels, inner, stride))
                channels = inner * block.expansion
            self.add_module(name, nn.Sequential(*made))
        self.fc = nn.Linear(channels, out_features)
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
        if weights is not None:
            self.notes = (self._load(Path(weights)),)
        elif in_shape[0] == 3:
            self.notes = (
                "ResNet initialised at random: the paper starts from ImageNet weights (model.weights=<file>)",
            )

    def stem(self, x: Tensor) -> Tensor:
        """Return `(B, width, H / 4, W / 4)`: convolution and max-pool."""
        return self.maxpool(torch.relu(self.bn1(self.conv1(x))))

    def encode(self, x: Tensor, layer: str) -> Tensor:
        """Run images `(B, channels, H, W)` to the mix point `layer`."""
        if layer not in self.layers:
            return super().encode(x, layer)
        for name in self.layers[1 : self.layers.index(layer) + 1]:
            x = getattr(self, name)(x)
        return x

    def decode(self, state: Tensor, layer: str) -> Tensor:
        """Run from the mix point `layer` to predictions `(B, d_y)`."""
        if layer not in self.layers:
            return super().decode(state, layer)
        for name in self.layers[self.layers.index(layer) + 1 :]:
            state = getattr(self, name)(state)
        return self.head(state.mean(dim=(-2, -1)))

    def features(self, x: Tensor) -> Tensor:
        """Return the pooled maps of layer 4: `(B, 512)` for depth 18, `(B, 2048)` for depth 50."""
        return self.encode(x, "layer4").mean(dim=(-2, -1))

    def head(self, features: Tensor) -> Tensor:
        """Return predictions `(B, d_y)`."""
        return self.fc(features)

    def _load(self, path: Path) -> str:
        """Take everything but the linear layer from a file, and say so."""
        try:
            content = path.read_bytes()
            given = torch.load(path, map_location="cpu", weights_only=True)
        except (OSError, RuntimeError, EOFError, pickle.UnpicklingError) as error:
            reason = str(error).partition("\n")[0]
            raise InputError(f"weights must be a file of PyTorch tensors, got {str(path)!r}: {reason}") from None
        own = {n: v for n, v in self.state_dict().items() if not n.startswith("fc.")}
        for name, value in own.items():
            found = given.get(name) if isinstance(given, dict) else None
            if found is None and name.endswith("num_batches_tracked"):  # older files lack it; nothing here reads it
                continue
            if not isinstance(found, Tensor) or found.shape != value.shape:
                shape = tuple(found.shape) if isinstance(found, Tensor) else "nothing"
                raise InputError(f"weights {str(path)!r} hold {shape} for {name}, expected {tuple(value.shape)}")
        self.load_state_dict({n: given[n] for n in own if n in given}, strict=False)
        return f"ResNet initialised from {path.name} (SHA-256 {hashlib.sha256(content).hexdigest()})"


def resnet18(in_shape: tuple[int, ...], out_features: int, weights: str | None = None, width: int = 64) -> ResNet:
    """Return a ResNet-18 (see `ResNet`)."""
    return ResNet(in_shape, out_features, 18, weights, width)


def resnet50(in_shape: tuple[int, ...], out_features: int, weights: str | None = None, width: int = 64) -> ResNet:
    """Return a ResNet-50 (see `ResNet`)."""
    return ResNet(in_shape, out_features, 50, weights, width)
