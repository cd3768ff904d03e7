"""Kernels over label distance: how fast a partner's weight falls with its distance.

A weight is exp(-energy(d)) with d the Euclidean distance in label units:

- gaussian: energy d^2 / (2 s^2), C-Mixup Eq. 6 (Yao et al., NeurIPS 2022)
- tophat: 0 up to and including s, infinite beyond (weight 1[d <= s])
- laplace: d / s

`cosine`, exp(-(1 - cos) / (2 s^2)), needs no code of its own: for unit vectors 1 - cos = d^2 / 2, so it is
the gaussian of bandwidth s * sqrt(2) on normalised labels (`PartnerSampler` does that).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from cmixup.errors import InputError, check_bandwidth

KERNELS = ("gaussian", "tophat", "laplace", "cosine")


@dataclass(frozen=True)
class Kernel:
    """A kernel with its bandwidth (label units, 0 and infinity allowed); works on NumPy and torch arrays."""

    name: str
    bandwidth: float

    @np.errstate(over="ignore")  # beyond float64 a weight is 0, which is what infinity gives
    def excess(self, distance: Any, nearest: Any) -> Any:
        """Energy of `distance` above the energy of `nearest`, elementwise with broadcasting.

        Weights relative to the nearest point never underflow to an all-zero row. Where the kernel itself is 0
        at `nearest` (bandwidth 0, or a tophat that reaches nobody) the limit is taken: only points as near as
        the nearest keep weight. Monotone in `distance` under rounding, as accept/reject needs.

        Args:
            distance: (...) float64, 0 or more, label units.
            nearest: broadcastable to `distance`.

        Returns:
            (...) float64; 0 where the distances are equal, infinite where the weight is 0.
        """
        s = self.bandwidth
        if self.name == "tophat":
            return _infinite_where((distance > nearest) & (distance > s))
        if s == 0:
            return _infinite_where(distance > nearest)
        if self.name == "laplace":
            return (distance - nearest) / s
        # (d - n)(d + n) rather than d^2 - n^2: exact even when both are millions of bandwidths.
        excess = distance - nearest
        excess /= s
        excess *= distance + nearest
        excess *= 0.5 / s
        return excess

    def reach(self, n: int) -> float:
        """Distance beyond which `n` points together weigh less than 1e-3 of the anchor itself."""
        if self.name == "tophat":
            return self.bandwidth
        log_mass = math.log(n / 1e-3)
        return self.bandwidth * (log_mass if self.name == "laplace" else math.sqrt(2 * log_mass))


def _infinite_where(mask: Any) -> Any:
    if isinstance(mask, torch.Tensor):
        zero = torch.zeros((), dtype=torch.float64, device=mask.device)
        return torch.where(mask, torch.inf, zero)
    return np.where(mask, np.inf, 0.0)


def make_kernel(name: str, bandwidth: float) -> Kernel:
    """The kernel called `name`; the cosine one in its form for unit vectors."""
    if name == "cosine":
        return Kernel("gaussian", bandwidth * math.sqrt(2))
    return Kernel(name, bandwidth)


def check_kernel_bandwidth(bandwidth: float) -> float:
    """Return the bandwidth if it is 0, infinite or a number whose square float64 can hold.

    Raises:
        InputError: negative, NaN, not a number, or between 0 and 1e-150.
    """
    bandwidth = check_bandwidth(bandwidth)
    if 0 < bandwidth < 1e-150:
        raise InputError(f"bandwidth must be 0 or at least 1e-150 (label units), got {bandwidth!r}")
    return bandwidth
