"""Draw partners by label distance (dense reference: one row of N weights an anchor)."""

from __future__ import annotations

import numpy as np

from cmixup.errors import InputError, check_bandwidth


class PartnerSampler:
    """P(j|i) ~ exp(-||y_i - y_j||^2 / (2 bandwidth^2)), self included.

    Args:
        labels: `(N,)` or `(N, d)` array, label units.
        bandwidth: sigma in label units, 0 or more; infinity is uniform.

    Raises:
        InputError: empty or non-finite labels, a bandwidth below 0 or NaN.
    """

    def __init__(self, labels: np.ndarray, bandwidth: float):
        labels = np.asarray(labels, dtype=np.float64)
        if labels.ndim not in (1, 2) or len(labels) == 0:
            raise InputError(f"labels must be (N,) or (N, d) with N > 0, got shape {labels.shape}")
        if not np.isfinite(labels).all():
            raise InputError("labels must be finite")
        self.labels = labels.reshape(len(labels), -1)
        self.bandwidth = check_bandwidth(bandwidth)
        squared = ((self.labels[:, None] - self.labels[None]) ** 2).sum(-1)
        with np.errstate(divide="ignore", invalid="ignore"):
            energy = np.where(squared > 0, squared / (2 * self.bandwidth**2), 0.0)
        weight = np.exp(-energy)
        self._rows = weight / weight.sum(axis=1, keepdims=True)
        self._cumulative = np.cumsum(self._rows, axis=1)

    def __len__(self) -> int:
        return len(self.labels)

    def draw(self, anchors: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return a partner of each anchor `(B,)` int64, by inverse CDF of one uniform number an anchor."""
        levels = rng.random(len(anchors)) * self._cumulative[anchors, -1]
        return np.array(
            [np.searchsorted(self._cumulative[a], u, side="right") for a, u in zip(anchors, levels, strict=True)],
            dtype=np.int64,
        )

    def probabilities(self, anchor: int) -> np.ndarray:
        """Return the exact row `(N,)` float64 of one anchor."""
        return self._rows[anchor]

    def effective_partners(self) -> np.ndarray:
        """Return 1 / sum_j P_ij^2 for every row, `(N,)` float64."""
        return 1 / (self._rows**2).sum(axis=1)

    def self_probability(self) -> np.ndarray:
        """Return P(i|i) for every row, `(N,)` float64."""
        return np.diagonal(self._rows).copy()
