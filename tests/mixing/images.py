"""Small images, and a small backbone with BatchNorm, for tests of mixings of images."""

import torch
from torch import Tensor, nn

from cmixup.backbone import Backbone
from cmixup.data import RegressionData, Split


def pictures(n: int, channels: int = 3, size: tuple[int, int] = (8, 12), seed: int = 0) -> Tensor:
    return torch.rand(n, channels, *size, generator=torch.Generator().manual_seed(seed)) * 2 - 1


def picture_data(channels: int = 3, size: tuple[int, int] = (8, 12), n: int = 40, d_y: int = 1) -> RegressionData:
    parts = []
    for k, (count, name) in enumerate(((n, "train"), (12, "val"), (10, "test"))):
        x = pictures(count, channels, size, k)
        y = torch.stack([x[:, 0, :, : 3 + j].mean(dim=(1, 2)) * 5 for j in range(d_y)], dim=1)
        parts.append(Split(x, y, torch.arange(count) % 2, f"pictures/{name}"))
    return RegressionData("pictures", *parts, unit="none")


class ConvNet(Backbone):
    """Two convolutions with BatchNorm, each with a stride of 2."""

    layers = ("input", "first", "second")
    default_layer = "second"
    draws = False

    def __init__(self, channels: int = 3, d_y: int = 1):
        super().__init__()
        self.one, self.norm1 = nn.Conv2d(channels, 6, 3, 2, 1), nn.BatchNorm2d(6)
        self.two, self.norm2 = nn.Conv2d(6, 8, 3, 2, 1), nn.BatchNorm2d(8)
        self.out = nn.Linear(8, d_y)

    def encode(self, x: Tensor, layer: str) -> Tensor:
        for name in self.layers[1 : self.layers.index(layer) + 1]:
            x = self.norm1(self.one(x)).relu() if name == "first" else self.norm2(self.two(x)).relu()
        return x

    def decode(self, state: Tensor, layer: str) -> Tensor:
        if layer == "input":
            state = self.encode(state, "first")
        if layer != "second":
            state = self.norm2(self.two(state)).relu()
        return self.out(state.mean(dim=(2, 3)))

    def forward(self, x: Tensor) -> Tensor:
        return self.decode(x, "input")
