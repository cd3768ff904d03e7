"""AutoMix (Liu et al. 2022, arXiv 2103.13027; Westlake-AI/openmixup automix.py, pmix_block.py).

A small network, the Mix Block, looks at the feature maps of two images and says for every pixel how much of each is
taken. It learns from the loss on its mixed rows of the momentum copy, a slowly moving average of the model. The model
learns from images that the Mix Block mixes. Both have partners and lambdas of their own in every step:

    l(f(x), y) + l(f(x~), y~)                            trains the model f
    l(f_k(x~'), y~') + weight max(|mean mask - lam'| - margin, 0)   trains the Mix Block; f_k is the momentum copy

Differences from the original: labels are regression targets, mixed as values by lambda; masks are interpolated to the
image's size, where the original scales by a fixed factor that small maps do not fit; the copy's BatchNorm statistics
are averaged with its weights, and it runs in evaluation mode; the Mix Block has an Adam of its own.
"""

import copy
import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import interpolate, relu

from cmixup.backbone import Backbone, resolve_layer
from cmixup.data import Split
from cmixup.errors import InputError, check_between, check_count, check_nonnegative, check_positive
from cmixup.mixing.base import Loss, Mixing
from cmixup.seeding import Streams, torch_seed
from cmixup.training.batch import Batch, EpochBatches
from cmixup.training.model_stack import KeepsState, ModelStack
from cmixup.training.optim import descend, make_optimizer
from cmixup.training.training import Training

SMALLEST = 7  # pixels a side of the maps that are looked at, unless a layer is named


class MixBlock(nn.Module):
    """Maps the features of two images to the mask of the first, by attention of the first's pixels to the second's.

    Lambda is another channel of the first image's features, and 1 - lambda of the second's.
    """

    def __init__(self, channels: int):
        super().__init__()
        self.key = nn.Conv2d(channels + 1, max(channels // 2, 1), 1)  # of queries, too
        self.value = nn.Conv2d(channels + 1, 1, 1)

    def forward(self, first: Tensor, second: Tensor, lam: Tensor, size: tuple[int, int]) -> Tensor:
        """Return the first image's mask `(B, *size)` in (0, 1), by features `(B, C, h, w)` and `lam: (B,)`."""
        first, second = _with_channel(first.float(), lam), _with_channel(second.float(), 1 - lam)
        query, key, value = (part.flatten(2) for part in (self.key(first), self.key(second), self.value(second)))
        attention = (query.mT @ key / math.sqrt(key.shape[1])).softmax(dim=-1)  # (B, hw, hw)
        attended = (value @ attention.mT).unflatten(-1, first.shape[-2:])
        return 1 - interpolate(attended, size=size, mode="nearest").squeeze(1).float().sigmoid()


class AutoMix(KeepsState, Mixing):
    """Mixes images with masks that a network of its own draws.

    Args:
        epochs: of training, over which the momentum goes from `momentum` to `last_momentum` along a cosine.
        features: mix point of the backbone whose maps the Mix Block looks at; None for the deepest one before the last
            whose maps have at least 7 pixels a side, or else the largest.
        mask_weight: of the mask's loss.
        margin: gap between the mask's mean and lambda that costs nothing.
        smallest: where lambda or 1 - lambda is not above this, the model's images are mixed linearly.
        momentum, last_momentum: share of the copy that a step keeps, in the first and after the last step.
        block_lr: learning rate of the Mix Block (Adam).

    `block` is the Mix Block, and `copy` the momentum copy of the model.
    """

    kept_state = ("steps", "optimizer")
    images = True
    inputs = True
    pairs = 2
    stackable = False

    def __init__(
        self, epochs: int, features: str | None = None, *, mask_weight: float = 0.1, margin: float = 0.1,
        smallest: float = 0.08, momentum: float = 0.999, last_momentum: float = 0.999999, block_lr: float = 1e-3,
    ):  # fmt: skip
        super().__init__()
        self.epochs, self.features = check_count("epochs", epochs, 1), features
        self.mask_weight = check_nonnegative("mask_weight", mask_weight)
        self.margin, self.smallest = check_nonnegative("margin", margin), check_between("smallest", smallest, 0, 0.5)
        self.momentum = check_between("momentum", momentum, 0, 1)
        self.last_momentum = check_between("last_momentum", last_momentum, 0, 1)
        self.block_lr = check_positive("block_lr", block_lr)
        self.steps, self._steps_an_epoch = 0, 1

    def fit(self, train: Split, model: nn.Module, streams: Streams | None) -> None:
        if not isinstance(model, Backbone):
            raise InputError(f"AutoMix needs a backbone with mix points, got {type(model).__name__}")
        self.steps = 0
        self.copy = copy.deepcopy(model).requires_grad_(False).eval()
        self.layer, channels = self._pick_layer(self.copy, train)
        with torch_seed(int(streams.mixing.integers(2**62)) if streams else 0):
            self.block = MixBlock(channels)

    def _pick_layer(self, model: Backbone, train: Split) -> tuple[str, int]:
        """Return the mix point whose maps are looked at, and its channels."""
        x = train.x[torch.arange(min(2, len(train)))]
        requested = None if self.features is None else resolve_layer(model, self.features)
        layers = model.layers[-2:0:-1] if requested is None else (requested,)  # the deepest first
        with torch.no_grad():
            states = {layer: model.encode(x, layer) for layer in layers}
        maps = {name: s.shape for name, s in states.items() if isinstance(s, Tensor) and s.ndim == 4}
        if not maps:
            place = "a mix point between the input and the last" if requested is None else f"mix point {requested!r}"
            raise InputError(f"AutoMix needs feature maps (B, C, h, w), and {type(model).__name__} has none at {place}")
        layer = max(maps, key=lambda name: min(*maps[name][-2:], SMALLEST))
        return layer, maps[layer][1]

    def begin(self, training: Training) -> None:
        self.optimizer = make_optimizer("adam", self.block.parameters(), self.block_lr)

    def draw(self, order: EpochBatches, rng: np.random.Generator) -> dict[str, np.ndarray]:
        self._steps_an_epoch = len(order.sizes)
        return {}

    def forward(self, first: Any, second: Any, draws: Mapping[str, Tensor]) -> tuple[Any, Tensor]:
        """Return images `(B, C, H, W)` mixed by the draw `mask: (B, H, W)`, the first's share, and lambda."""
        if "mask" not in draws:
            raise InputError("mixing AutoMix makes masks before it mixes, and this method does not let it")
        return torch.lerp(second, first, draws["mask"].unsqueeze(1)), draws["lam"]

    def step(self, loss: Loss, stack: ModelStack, batch: Batch) -> Tensor:
        """Take a step of the model and one of the Mix Block, let the copy follow, and return the sum of all losses."""
        partner, other = (batch.rows(name, "mixing AutoMix") for name in ("partner", "other"))
        size, lam, other_lam = batch.x.shape[-2:], batch.draws["lam"], batch.draws["other_lam"]
        with torch.no_grad():
            maps = self.copy.encode(torch.cat([batch.x, partner.x, other.x]), self.layer)
            row_maps, partner_maps, other_maps = maps.chunk(3)
            mask = self.block(row_maps, partner_maps, lam, size)
            extreme = (torch.minimum(lam, 1 - lam) <= self.smallest)[:, None, None]
            mask = torch.where(extreme, lam[:, None, None], mask)
        row_loss = loss(stack.model, self._mixed(batch, batch, torch.ones_like(lam), torch.ones_like(mask)))
        mixed_loss = loss(stack.model, self._mixed(batch, partner, lam, mask))
        mask = self.block(row_maps, other_maps, other_lam, size)
        block_loss = loss(self.copy, self._mixed(batch, other, other_lam, mask))
        total = row_loss + mixed_loss + block_loss + self.mask_weight * self.mask_loss(mask, other_lam)
        value = descend(total, stack.optimizer, self.optimizer)
        self.follow(stack.model)
        return value

    def mask_loss(self, mask: Tensor, lam: Tensor) -> Tensor:
        """Return the mean of `max(|mean mask - lam| - margin, 0)` over masks `(B, H, W)` and lambdas `(B,)`."""
        return relu((mask.mean(dim=(1, 2)) - lam).abs() - self.margin).mean()

    def follow(self, model: nn.Module) -> None:
        """Move the copy towards the model: weights and BatchNorm statistics; counters are copied."""
        progress = min(self.steps / (self.epochs * self._steps_an_epoch), 1)
        keep = self.last_momentum - (self.last_momentum - self.momentum) * (1 + math.cos(math.pi * progress)) / 2
        copy_state, model_state = self.copy.state_dict(), model.state_dict()
        floats = [name for name, value in copy_state.items() if value.is_floating_point()]
        torch._foreach_lerp_([copy_state[name] for name in floats], [model_state[name] for name in floats], 1 - keep)
        for name in copy_state.keys() - set(floats):
            copy_state[name].copy_(model_state[name])
        self.steps += 1

    @staticmethod
    def _mixed(batch: Batch, partner: Batch, lam: Tensor, mask: Tensor) -> Batch:
        """Return the batch with this partner, lambda and mask; weights of pairs (Local Mixup) stay."""
        return replace(batch, partner=partner, other=None, draws={**batch.draws, "lam": lam, "mask": mask})


def _with_channel(features: Tensor, value: Tensor) -> Tensor:
    """Return `(B, C + 1, h, w)`: features and a channel that is `value: (B,)` everywhere."""
    return torch.cat([features, value[:, None, None, None].expand(-1, 1, *features.shape[-2:])], dim=1)
