"""Linear mixing, lam * a + (1 - lam) * b (Zhang et al. 2018, "mixup: Beyond Empirical Risk Minimization")."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from cmixup.mixing.base import Mixing


def mix(first: Any, second: Any, lam: Tensor) -> Any:
    """Return `lam * first + (1 - lam) * second`.

    Args:
        first, second: tensors of one shape `(..., B, *features)`, or tuples of such tensors.
        lam: `(..., B)`; one weight an example, broadcast over the features.
    """
    if isinstance(first, tuple):
        return tuple(mix(a, b, lam) for a, b in zip(first, second, strict=True))
    return torch.lerp(second, first, lam.reshape(lam.shape + (1,) * (first.ndim - lam.ndim)))  # exact at 0 and 1


class Linear(Mixing):
    """Interpolates inputs or hidden states; the label weight is lambda itself."""

    def forward(self, first: Any, second: Any, draws: Mapping[str, Tensor]) -> tuple[Any, Tensor]:
        """Return the mixed state and lambda."""
        return mix(first, second, draws["lam"]), draws["lam"]
