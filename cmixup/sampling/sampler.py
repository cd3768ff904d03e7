"""`PartnerSampler`: draw partners by label distance, exactly, at any size (C-Mixup, paper Eq. 6)."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from cmixup.errors import InputError, as_number, check_choice
from cmixup.sampling.bandwidth import resolve_bandwidth
from cmixup.sampling.choice import DEFAULT_BUDGET, METHODS, choose
from cmixup.sampling.inputs import (
    Floats,
    Ints,
    Rng,
    as_anchors,
    as_labels,
    as_queries,
    for_kernel,
    numpy_rng,
    to_numpy,
    torch_rng,
)
from cmixup.sampling.kernels import KERNELS, make_kernel
from cmixup.sampling.stream import Rows
from cmixup.sampling.torch_forms import choose_torch

EPOCH_CHUNK = 1 << 20


class PartnerSampler:
    """Draw j for i with probability P(j|i) = K(d_ij) / sum_k K(d_ik), d the label distance, j = i included.

    Exact: nothing is truncated or approximated, and no N x N table is held (but by `dense` and `cdf`).

    Args:
        labels: (N,) or (N, d) array, tensor or memory map; whatever distances are wanted on: labels, inputs,
            representations. Held by reference where they are float32 or float64: do not change them.
        bandwidth: s in label units, 0 and infinity allowed; or "auto" / ("fraction", f) / ("std", c), see
            `resolve_bandwidth`.
        method: "auto" or one of `METHODS`.
        kernel: "gaussian" exp(-d^2 / 2s^2), "tophat" 1[d <= s], "laplace" exp(-d / s) or "cosine"
            exp(-(1 - cos) / 2s^2).
        memory_budget: bytes that tables may take beside the labels; `cells` holds 12 to 16 more a label.
        torch_form: draw in torch on the labels' device; by default for tensors that are not on the CPU.

    Attributes:
        bandwidth: the number in use.
        method: name of the algorithm in use.
        reason: why `auto` chose it.

    Raises:
        InputError: an argument that cannot be used, by name and value.
    """

    def __init__(
        self,
        labels: Any,
        bandwidth: Any,
        *,
        method: str = "auto",
        kernel: str = "gaussian",
        memory_budget: int = DEFAULT_BUDGET,
        torch_form: bool | None = None,
    ) -> None:
        check_choice("method", method, METHODS)
        check_choice("kernel", kernel, KERNELS)
        if not 0 <= as_number("memory_budget", memory_budget) < math.inf:
            raise InputError(f"memory_budget must be a finite number of bytes, 0 or more, got {memory_budget!r}")
        self.kernel = kernel
        self._given = for_kernel("labels", as_labels("labels", labels), kernel)
        data = to_numpy(self._given)
        self.bandwidth = resolve_bandwidth(data, bandwidth, kernel)
        inner = make_kernel(kernel, self.bandwidth)
        self._rows = Rows(data, inner)
        on_device = isinstance(self._given, torch.Tensor) and self._given.device.type != "cpu"
        if torch_form is None:
            torch_form = on_device
        elif not isinstance(self._given, torch.Tensor) or (on_device and not torch_form):
            raise InputError(f"torch_form={torch_form!r} does not go with labels of {type(labels).__name__}")
        self._device = self._given.device if torch_form else None
        if torch_form:
            self._method, self.reason = choose_torch(self._given, data, inner, method, int(memory_budget))
        else:
            self._method, self.reason = choose(data, inner, method, int(memory_budget))
        self.method: str = self._method.name

    def draw(self, anchors: Any, rng: Rng) -> Any:
        """Draw one partner for each anchor.

        Args:
            anchors: (B,) integers in 0..N-1, array or tensor.
            rng: NumPy or torch generator; the same state gives the same draws.

        Returns:
            (B,) int64 indices into the labels: an array, or a tensor on their device if they are a tensor.
        """
        return self._draw(as_anchors("anchors", anchors, len(self), self._device), rng)

    def epoch(self, rng: Rng) -> Any:
        """Partners (N,) int64 of 0..N-1 in order, drawn in one call (they do not depend on the model)."""
        if self._device is not None:
            return self._draw(torch.arange(len(self), device=self._device), rng)
        generator = numpy_rng(rng)
        partners = np.empty(len(self), dtype=np.int64)
        for s in range(0, len(self), EPOCH_CHUNK):  # so that N anchors are never held beside N partners
            stop = min(s + EPOCH_CHUNK, len(self))
            partners[s:stop] = self._method.draw(np.arange(s, stop), generator)
        return self._wrap(partners)

    def draw_labels(self, labels: Any, rng: Rng) -> Any:
        """Draw partners for anchors outside the data (MetaMix: query labels, support partners).

        Far from the data weights are relative to the nearest label. Where the kernel is 0 everywhere
        (bandwidth 0, tophat) the nearest labels share the draw.

        Args:
            labels: (B,) or (B, d) labels of the anchors.
            rng: NumPy or torch generator.

        Returns:
            (B,) int64 indices into the stored labels.
        """
        queries = for_kernel("labels", as_queries("labels", labels, self._given), self.kernel)
        if self._device is not None:
            return self._method.draw_points(queries, torch_rng(rng, self._device))
        return self._wrap(self._method.draw_points(to_numpy(queries), numpy_rng(rng)))

    def probabilities(self, anchor: int) -> Floats:
        """The exact row P(.|anchor), (N,) float64 NumPy; O(N d)."""
        index = as_anchors("anchor", [anchor], len(self))
        return self._rows.probabilities(self._rows.distances.at(index)[0], int(index[0]))

    def effective_partners(self, sample: int | None = None, seed: int = 0) -> Floats:
        """Effective partners 1 / sum_j P_ij^2 of all rows (N,), or of `sample` rows drawn with `seed`.

        Returns:
            (N,) or (sample,) float64 NumPy, between 1 and N. Costs O(N d) a row.
        """
        sums = self._rows.statistics(self._sampled(sample, seed))
        return sums[:, 0] ** 2 / sums[:, 1]

    def self_probability(self, sample: int | None = None, seed: int = 0) -> Floats:
        """P(i|i) of all rows (N,), or of the same `sample` rows as `effective_partners`; float64 NumPy."""
        return 1 / self._rows.statistics(self._sampled(sample, seed))[:, 0]

    @property
    def nbytes(self) -> int:
        """Bytes that the method's tables hold beside the labels."""
        return self._method.nbytes

    def __len__(self) -> int:
        return len(self._given)

    def __repr__(self) -> str:
        d = 1 if self._given.ndim == 1 else self._given.shape[1]
        return (
            f"PartnerSampler(N={len(self)}, d={d}, bandwidth={self.bandwidth:g}, kernel={self.kernel!r}, "
            f"method={self.method!r}: {self.reason}; {self.nbytes / 1e6:.1f} MB)"
        )

    def _sampled(self, sample: int | None, seed: int) -> Ints:
        if sample is None or sample >= len(self):
            return np.arange(len(self))
        if sample < 1:
            raise InputError(f"sample must be 1 or more, got {sample!r}")
        return np.sort(np.random.default_rng(seed).choice(len(self), size=sample, replace=False))

    def _draw(self, anchors: Any, rng: Rng) -> Any:
        if self._device is not None:
            return self._method.draw(anchors, torch_rng(rng, self._device))
        return self._wrap(self._method.draw(anchors, numpy_rng(rng)))

    def _wrap(self, partners: Ints) -> Any:
        if isinstance(self._given, torch.Tensor):
            return torch.from_numpy(partners)
        return partners
