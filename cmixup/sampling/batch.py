"""C-Mixup-batch: partners from a second batch instead of the whole training set (paper Algorithm 3)."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from cmixup.errors import InputError, check_choice
from cmixup.sampling.inputs import Rng, as_labels, for_kernel, numpy_rng, torch_rng
from cmixup.sampling.kernels import KERNELS, check_kernel_bandwidth, make_kernel


class BatchPartnerSampler:
    """Draw partners for a batch B1 among the candidates of a second batch B2, P as in Eq. 6.

    Args:
        bandwidth: label units, 0 and infinity allowed.
        candidates: "b2", the paper's form, or "b1+b2", the released code's (an anchor may draw itself).
        kernel: as for `PartnerSampler`.

    Raises:
        InputError: an argument that cannot be used, by name and value.
    """

    def __init__(self, bandwidth: float, *, candidates: str = "b2", kernel: str = "gaussian") -> None:
        self.bandwidth = check_kernel_bandwidth(bandwidth)
        self.candidates = check_choice("candidates", candidates, ("b2", "b1+b2"))
        self.kernel = check_choice("kernel", kernel, KERNELS)
        self._kernel = make_kernel(kernel, self.bandwidth)

    def probabilities(self, first: Any, second: Any) -> Any:
        """P (B1, C) float64: rows over the candidates, `second` or [first; second].

        Args:
            first: (B1,) or (B1, d) labels of the anchors.
            second: (B2,) or (B2, d) labels, the same kind, device and d.
        """
        weights = self._weights(first, second)
        return weights / weights.sum(1)[:, None]

    def draw(self, first: Any, second: Any, rng: Rng) -> Any:
        """Draw one partner for each anchor of the first batch.

        Args:
            first: (B1,) or (B1, d) labels of the anchors.
            second: (B2,) or (B2, d) labels of the second batch, the same kind and device.
            rng: NumPy or torch generator.

        Returns:
            (B1,) int64 indices into `second`, or into [first; second] with candidates "b1+b2"; an array for
            arrays, a tensor on the same device for tensors.
        """
        cumulative = self._weights(first, second).cumsum(1)
        total = cumulative[:, -1:]
        # The first entry above the level has weight: a partner of probability 0 is never drawn.
        if isinstance(cumulative, torch.Tensor):
            generator = torch_rng(rng, cumulative.device)
            uniform = torch.rand(total.shape, generator=generator, dtype=torch.float64, device=total.device)
            return (cumulative <= uniform * total).sum(1)
        return (cumulative <= numpy_rng(rng).random(total.shape) * total).sum(axis=1, dtype=np.int64)

    def _weights(self, first: Any, second: Any) -> Any:
        first, second = as_labels("first", first), as_labels("second", second)
        tensors = isinstance(first, torch.Tensor), isinstance(second, torch.Tensor)
        if first.shape[1:] != second.shape[1:] or tensors[0] != tensors[1] or first.device != second.device:
            raise InputError(
                f"first and second must be alike, got {type(first).__name__} {tuple(first.shape)} "
                f"and {type(second).__name__} {tuple(second.shape)}"
            )
        if tensors[0]:
            first, second = first.double(), second.double()
            join: Any = torch.cat
        else:
            first, second = first.astype(np.float64), second.astype(np.float64)
            join = np.concatenate
        first, second = for_kernel("first", first, self.kernel), for_kernel("second", second, self.kernel)
        if first.ndim == 1:
            first, second = first[:, None], second[:, None]
        pool = second if self.candidates == "b2" else join([first, second])
        distance = ((first[:, None, :] - pool[None, :, :]) ** 2).sum(2) ** 0.5
        nearest = distance.min(1)
        nearest = nearest.values if tensors[0] else nearest
        excess = self._kernel.excess(distance, nearest[:, None])
        return torch.exp(-excess) if tensors[0] else np.exp(-excess)
