"""C-Mixup-batch: partners come from a second batch, not from the whole training set (paper, Algorithm 3)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from cmixup.errors import InputError, check_bandwidth, check_choice
from cmixup.sampling.distance import WIDEST, pair_distance
from cmixup.sampling.inputs import ArrayT, Floats, Given, Rng, as_labels, for_kernel, has_gaps, numpy_rng, torch_rng
from cmixup.sampling.kernels import KERNELS, make_kernel
from cmixup.sampling.space import positive_numbers

SMALLEST_PERIOD = 1e-150  # labels over it must not overflow


class BatchPartnerSampler:
    """Draw partners for a batch B1 among the candidates of a second batch B2, with P as in the paper's Eq. 6.

    Args:
        bandwidth: s in label units, 0 and infinity allowed.
        candidates: "b2" as in the paper, or "b1+b2" as in the released code (an anchor may draw itself).
        kernel: one of `KERNELS`, see `PartnerSampler`.
        period: (d,) lengths of the circles that outputs go round, 0 for those that do not; labels lie in [0, period).

    Raises:
        InputError: an argument cannot be used; the message gives its name and value.
    """

    def __init__(
        self,
        bandwidth: float,
        *,
        candidates: str = "b2",
        kernel: str = "gaussian",
        period: Floats | None = None,
    ) -> None:
        self.bandwidth = check_bandwidth(bandwidth)
        self.candidates = check_choice("candidates", candidates, ("b2", "b1+b2"))
        self.kernel = check_choice("kernel", kernel, KERNELS)
        self._kernel = make_kernel(kernel, self.bandwidth)
        self._period = None if period is None else positive_numbers("period", period, zero=True)
        if self._period is not None and ((self._period > 0) & (self._period < SMALLEST_PERIOD)).any():
            raise InputError(f"period must be 0 or at least {SMALLEST_PERIOD:g}, got {float(self._period.min())!r}")

    def probabilities(self, first: Given, second: Given) -> Any:
        """Return the exact rows P over the candidates, `second` or [first; second].

        Args:
            first: (B1,) or (B1, d) labels of the anchors; in arrays NaN is a missing output, as in `PartnerSampler`.
            second: (B2,) or (B2, d) labels, of the same kind, device and d.

        Returns:
            (B1, C) float64; an array for arrays, a tensor on the same device for tensors.

        Raises:
            InputError: labels cannot be used, or the two batches differ in kind, device or d.
        """
        weights = self._weights(first, second)
        return weights / weights.sum(1)[:, None]

    def draw(self, first: Given, second: Given, rng: Rng) -> Any:
        """Draw one partner for each anchor of the first batch.

        Args:
            first: see `probabilities`.
            second: see `probabilities`.
            rng: NumPy or torch generator.

        Returns:
            (B1,) int64 indices into `second`, or into [first; second] with candidates "b1+b2"; an array for
            arrays, a tensor on the same device for tensors.

        Raises:
            InputError: as `probabilities`, or `rng` is no generator.
        """
        cumulative = self._weights(first, second).cumsum(1)
        total = cumulative[:, -1:]
        # The first entry above the level has weight: a partner of probability 0 is never drawn.
        if isinstance(cumulative, Tensor):
            generator = torch_rng(rng, cumulative.device)
            uniform = torch.rand(total.shape, generator=generator, dtype=torch.float64, device=total.device)
            return (cumulative <= uniform * total).sum(1)
        return (cumulative <= numpy_rng(rng).random(total.shape) * total).sum(axis=1, dtype=np.int64)

    def _weights(self, first: Given, second: Given) -> Floats | Tensor:
        """Return weights (B1, C) float64 relative to each anchor's nearest candidate."""
        a, b = (
            as_labels(name, given, gaps=not isinstance(given, Tensor) and self.kernel != "cosine")
            for name, given in (("first", first), ("second", second))
        )
        if a.shape[1:] == b.shape[1:]:
            if isinstance(a, Tensor) and isinstance(b, Tensor) and a.device == b.device:
                x, y = self._points("first", a.double()), self._points("second", b.double())
                distance = _distances(x, y if self.candidates == "b2" else torch.cat([x, y]), self._period)
                return torch.exp(-self._kernel.excess(distance, distance.min(1).values[:, None]))
            if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
                u, v = (self._points(n, x.astype(np.float64)) for n, x in (("first", a), ("second", b)))
                gap = _distances(u, v if self.candidates == "b2" else np.concatenate([u, v]), self._period)
                kernel = (
                    replace(self._kernel, bandwidth=min(self._kernel.bandwidth, WIDEST))
                    if has_gaps(v)
                    else self._kernel
                )
                return np.exp(-kernel.excess(gap, gap.min(1)[:, None]))
        raise InputError(
            f"first and second must be alike, got {type(a).__name__} {tuple(a.shape)} "
            f"and {type(b).__name__} {tuple(b.shape)}"
        )

    def _points(self, name: str, labels: ArrayT) -> ArrayT:
        """Return labels (B,) or (B, d) float64 as points (B, d) that the kernel compares."""
        points = for_kernel(name, labels, self.kernel)
        points = points[:, None] if points.ndim == 1 else points
        if self._period is not None and self._period.size not in (1, points.shape[1]):
            raise InputError(f"period must be one number or {points.shape[1]} as the labels, got {self._period.size}")
        return points


def _distances(points: ArrayT, pool: ArrayT, period: Floats | None) -> ArrayT:
    """Return the distances (B, C) of points (B, d) and candidates (C, d)."""
    gaps = isinstance(points, np.ndarray) and (has_gaps(points) or has_gaps(pool))
    if period is not None or gaps:
        if isinstance(points, Tensor):
            raise InputError("circular labels are compared in NumPy, got tensors")
        return pair_distance(points[:, None, :], pool[None, :, :], points.shape[1] + 1, period, gaps=gaps)
    difference = points[:, None, :] - pool[None, :, :]
    if difference.shape[2] == 1:
        return abs(difference[:, :, 0])  # whose square could underflow
    return (difference**2).sum(2) ** 0.5
