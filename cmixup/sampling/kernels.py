"""The kernel over label distance: it says how fast a partner's weight falls with its distance.

A weight is exp(-energy(d)) with d the Euclidean distance in label units and the energy d^2 / (2 s^2), C-Mixup Eq. 6
(Yao et al., NeurIPS 2022). Of unit vectors the squared distance is 2 (1 - cos): the kernel then compares angles.
"""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from cmixup.sampling.inputs import Floats, Ints

#: So many rows are drawn before it is said that each was its own partner.
WATCHED = 64


@dataclass(frozen=True)
class Kernel:
    """The kernel with its bandwidth.

    Attributes:
        bandwidth: s in label units, as `check_bandwidth` allows it.
    """

    bandwidth: float

    @np.errstate(over="ignore")  # beyond float64 a weight is 0, which is what infinity gives
    def excess(self, distance: Floats, nearest: Floats | float) -> Floats:
        """Return the energy of `distance` above the energy of `nearest`, elementwise with broadcasting.

        Weights relative to the nearest point never underflow to an all-zero row. With bandwidth 0 the limit is taken:
        only points as near as the nearest keep weight. The result is monotone in `distance` under rounding, as
        accept/reject needs.

        Args:
            distance: (...) float64, 0 or more, label units.
            nearest: a number, or float64 that broadcasts to `distance`; label units.

        Returns:
            (...) float64; 0 where the distances are equal, infinite where the weight is 0.
        """
        s = self.bandwidth
        if s == 0:
            return np.where(distance > nearest, np.inf, 0.0)
        # (d - n)(d + n) rather than d^2 - n^2: exact even when both are millions of bandwidths.
        excess = distance - nearest
        excess /= s
        excess *= distance + nearest
        excess *= 0.5 / s
        return excess

    def cutoff(self, n: int) -> float:
        """Return the distance (label units) beyond which `n` points weigh less than 1e-3 of the anchor itself."""
        return self.bandwidth * math.sqrt(2 * math.log(n / 1e-3))


def weights_of(squared: Tensor, variance: Tensor | float) -> Tensor:
    """Return `exp(-d / (2 variance))` of distances d, relative to the nearest one of each row.

    Args:
        squared: (..., C) float64 distances whose unit is that of the variance, infinite for rows never to draw.
        variance: 0 or more, infinity allowed, a number or a tensor that broadcasts; at 0 only the nearest keep weight.
    """
    excess = squared - squared.amin(dim=-1, keepdim=True)
    variance = torch.as_tensor(variance, dtype=excess.dtype, device=excess.device)
    energy = torch.where(excess > 0, excess / (2 * variance), 0.0)
    return torch.where(squared.isinf(), 0.0, torch.exp(-energy))


class SelfPairWarning:
    """Warns once if the first `WATCHED` rows that are drawn are all their own partners."""

    def __init__(self) -> None:
        self._left = WATCHED

    def check(self, anchors: Ints, partners: Ints, bandwidth: float, rows: int) -> None:
        """Look at anchors and their partners `(B,)`, of so many rows; bandwidth 0 is known to mix nothing."""
        if self._left <= 0 or bandwidth == 0 or rows == 1:
            return
        if (anchors != partners).any():
            self._left = 0
            return
        self._left -= len(anchors)
        if self._left <= 0:
            warnings.warn(
                f"bandwidth {bandwidth:g} leaves every row its own partner, so nothing is mixed: it is in the unit of "
                'the labels; `diagnose` says what one does, and "auto" finds one',
                stacklevel=3,
            )
