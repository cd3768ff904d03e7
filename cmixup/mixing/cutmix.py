"""CutMix (Yun et al. 2019, arXiv 1905.04899; clovaai/CutMix-PyTorch train.py).

A box of the partner is pasted into each image, with sides sqrt(1 - lam) of the image's. The label weight is the share
of pixels that are kept, since boxes are clipped at the border and have whole pixels. Differences from the original:
labels are regression targets, mixed as values; the pasted image is a copy; it works on feature maps, too.
"""

from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cmixup.errors import check_between
from cmixup.mixing.base import Mixing
from cmixup.training.batch import EpochBatches


class CutMix(Mixing):
    """Pastes a box of the partner into each image.

    Args:
        probability: of cutting a batch, in [0, 1]; otherwise it stays as it is.
    """

    images = True

    def __init__(self, probability: float = 1.0):
        super().__init__()
        self.probability = check_between("probability", probability, 0, 1)

    def draw(self, order: EpochBatches, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Return `box: (M, 3)` float32: the centre as a share of height and width, and 1 where a box is cut, else 0.

        A batch has one centre.
        """
        drawn = rng.random((len(order.sizes), 3))
        drawn[:, 2] = drawn[:, 2] < self.probability
        return {"box": np.repeat(drawn.astype(np.float32), order.sizes, axis=0)}

    def forward(self, first: Any, second: Any, draws: Mapping[str, Tensor]) -> tuple[Any, Tensor]:
        """Return images `(..., B, C, H, W)`, or clips, with their boxes, and the share of pixels kept `(..., B)`."""
        height, width = first.shape[-2:]
        box, side = draws["box"], (1 - draws["lam"]).sqrt()
        rows = _inside(box[..., 0], side, height) & (box[..., 2:] > 0)
        columns = _inside(box[..., 1], side, width)
        inside = rows.unsqueeze(-1) & columns.unsqueeze(-2)
        inside = inside.reshape(*inside.shape[:-2], *(1,) * (first.ndim - inside.ndim), height, width)  # of clips, too
        kept_share = 1 - rows.sum(dim=-1) * columns.sum(dim=-1) / (height * width)
        return torch.where(inside, second, first), kept_share.to(draws["lam"].dtype)


def _inside(centre: Tensor, side: Tensor, size: int) -> Tensor:
    """Return `(..., size)` bool: which pixels of an axis lie in a box of length 2 floor(floor(side * size) / 2)."""
    middle = (centre * size).floor().clamp(max=size - 1).unsqueeze(-1)
    half = ((side * size).floor() / 2).floor().unsqueeze(-1)
    pixel = torch.arange(size, device=centre.device)
    return (pixel >= middle - half) & (pixel < middle + half)
