"""R(2+1)D-18, the network of Echo (Tran et al. 2018, arXiv 1711.11248; torchvision `r2plus1d_18`, echonet/dynamic).

torchvision's network with one linear layer at its end; parameters carry torchvision's names. Difference from
echonet/dynamic: Kinetics-400 weights are read from a file of the user's, and are not fetched. The released code mixes
inputs only; the hidden mix point, after the second stage, is ours (after the last one mixing would be the mixing of
outputs: pooling and the linear layer are linear).
"""

from pathlib import Path
from typing import Any

from torch import nn

from cmixup.errors import InputError, check_count
from cmixup.networks.vision import Staged, import_torchvision, load_weights

STAGES = ("stem", "layer1", "layer2", "layer3", "layer4")
BLOCKS = [2, 2, 2, 2]
WIDTH = 64  # torchvision's
RANDOM = "r2plus1d_18 starts from random weights instead of Kinetics-400: scores are not the paper's setting"


class R2Plus1D18(Staged):
    """Eighteen layers of space and time convolutions, a mean over space and time, and a linear layer.

    Args:
        in_shape: shape of one clip, `(3, frames, height, width)`.
        out_features: label width d_y.
        weights: path of a state dict of torchvision's `r2plus1d_18`, whose last layer is left out; None starts from
            random weights, and says so in `notes`.
        bias: where the biases of the last layer start; None for PyTorch's default.
        width: channels of the first stage; the others have 2, 4 and 8 times as many. Only 64 fits the weights.

    Raises:
        InputError: inputs of another shape, a width below 1, weights that are not there or do not fit.
    """

    layers = ("input", *STAGES)
    default_layer = "layer2"
    draws = False

    def __init__(
        self, in_shape: tuple[int, ...], out_features: int, *, weights: str | None = None, bias: float | None = None,
        width: int = WIDTH,
    ):  # fmt: skip
        super().__init__()
        if len(in_shape) != 4 or in_shape[0] != 3:
            raise InputError(f"in_shape must be (3, frames, height, width) for R2Plus1D18, got {tuple(in_shape)}")
        trunk = _trunk(check_count("width", width, 1))
        if weights is None:
            self.notes = (RANDOM,)
        else:
            load_weights(trunk, Path(weights))
        for name in STAGES:
            self.add_module(name, getattr(trunk, name))
        self.fc = nn.Linear(8 * width, out_features)
        if bias is not None:
            nn.init.constant_(self.fc.bias, bias)


def _trunk(width: int) -> nn.Module:
    """Return torchvision's network, its stages scaled to `width`; the stem keeps its 64 channels."""
    resnet = import_torchvision("torchvision.models.video.resnet")

    class Scaled(resnet.VideoResNet):  # type: ignore[name-defined]
        def _make_layer(self, block: Any, conv_builder: Any, planes: int, *rest: Any, **named: Any) -> nn.Module:
            return super()._make_layer(block, conv_builder, planes * width // WIDTH, *rest, **named)

    return Scaled(resnet.BasicBlock, [resnet.Conv2Plus1D] * 4, BLOCKS, resnet.R2Plus1dStem, num_classes=1)
