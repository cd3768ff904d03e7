"""C-Mixup-batch: partners come from a second batch, not from the whole training set (paper, Algorithm 3)."""

from typing import Any

import numpy as np

from cmixup.errors import InputError, check_bandwidth, check_choice
from cmixup.sampling.distance import WIDEST, Kernel, pair_distance
from cmixup.sampling.inputs import Floats, Given, Rng, as_kind_of, as_labels, has_gaps, numpy_rng
from cmixup.sampling.space import positive_numbers

SMALLEST_PERIOD = 1e-150  # labels over it must not overflow


class BatchPartnerSampler:
    """Draw partners for a batch B1 among the candidates of a second batch B2, with P as in the paper's Eq. 6.

    Args:
        bandwidth: s in label units, 0 and infinity allowed.
        candidates: "b2" as in the paper, or "b1+b2" as in the released code (an anchor may draw itself).
        period: (d,) lengths of the circles that outputs go round, 0 for those that do not; labels lie in [0, period).

    Raises:
        InputError: an argument cannot be used; the message gives its name and value.
    """

    def __init__(self, bandwidth: float, *, candidates: str = "b2", period: Floats | None = None) -> None:
        self.bandwidth = check_bandwidth(bandwidth)
        self.candidates = check_choice("candidates", candidates, ("b2", "b1+b2"))
        self._period = None if period is None else positive_numbers("period", period, zero=True)
        if self._period is not None and ((self._period > 0) & (self._period < SMALLEST_PERIOD)).any():
            raise InputError(f"period must be 0 or at least {SMALLEST_PERIOD:g}, got {float(self._period.min())!r}")

    def probabilities(self, first: Given, second: Given) -> Any:
        """Return the exact rows P over the candidates, `second` or [first; second].

        Args:
            first: (B1,) or (B1, d) labels of the anchors; NaN is a missing output, as in `PartnerSampler`.
            second: (B2,) or (B2, d) labels of the same d.

        Returns:
            (B1, C) float64; an array, or a tensor on the device of `first` if that is one.

        Raises:
            InputError: labels cannot be used, or the two batches differ in d.
        """
        weights = self._weights(first, second)
        return as_kind_of(first, weights / weights.sum(axis=1, keepdims=True))

    def draw(self, first: Given, second: Given, rng: Rng) -> Any:
        """Draw one partner for each anchor of the first batch, see `probabilities`; `rng` is NumPy's or torch's.

        Returns:
            (B1,) int64 indices into `second`, or into [first; second] with candidates "b1+b2"; an array, or a tensor on
            the device of `first` if that is one.
        """
        cumulative = self._weights(first, second).cumsum(axis=1)
        total = cumulative[:, -1:]
        # The first entry above the level has weight: a partner of probability 0 is never drawn.
        level = numpy_rng(rng).random(total.shape) * total
        return as_kind_of(first, (cumulative <= level).sum(axis=1, dtype=np.int64))

    def _weights(self, first: Given, second: Given) -> Floats:
        """Return weights (B1, C) float64 relative to each anchor's nearest candidate."""
        anchors, pool = (
            as_labels(name, labels, gaps=True).astype(np.float64)
            for name, labels in (("first", first), ("second", second))
        )
        d, other = (points.shape[1] if points.ndim > 1 else 1 for points in (anchors, pool))
        if d != other:
            raise InputError(f"first and second must have as many outputs, got {d} and {other}")
        if self._period is not None and self._period.size not in (1, d):
            raise InputError(f"period must be one number or {d} as the labels, got {self._period.size}")
        if self.candidates == "b1+b2":
            pool = np.concatenate([anchors, pool])
        gaps = has_gaps(anchors) or has_gaps(pool)
        kernel = Kernel(min(self.bandwidth, WIDEST) if gaps else self.bandwidth)
        distance = pair_distance(anchors[:, None], pool[None], d, self._period, gaps=gaps)
        return np.exp(-kernel.excess(distance, distance.min(axis=1, keepdims=True)))
