"""The states of two inputs, mixed at one layer."""

from __future__ import annotations

from torch import Tensor

from cmixup.backbone import Backbone
from cmixup.mixing.linear import mix


def mixed(model: Backbone, x_i: Tensor, x_j: Tensor, lam: Tensor, layer: str) -> Tensor:
    """Return predictions from the states at `layer`, mixed linearly by `lam` (Manifold Mixup)."""
    return model.decode(mix(model.encode(x_i, layer), model.encode(x_j, layer), lam), layer)
