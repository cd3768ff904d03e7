"""Partners by label distance (C-Mixup paper, Eq. 6): exactly at any size, or from a second batch (Algorithm 3)."""

import warnings
from typing import Any

import numpy as np
from torch import Tensor

from cmixup.errors import InputError, check_bandwidth, check_choice, check_nonnegative
from cmixup.sampling.bandwidth import Bandwidth, resolve_bandwidth
from cmixup.sampling.choice import ALGORITHMS, DEFAULT_BUDGET_BYTES, choose
from cmixup.sampling.distance import WIDEST, Kernel, pair_distance
from cmixup.sampling.inputs import (
    Floats,
    Given,
    Ints,
    Rng,
    as_anchors,
    as_kind_of,
    as_labels,
    check_common,
    copied_numpy,
    has_gaps,
    numpy_rng,
)
from cmixup.sampling.stream import StreamedSampler

#: So many rows are drawn before it is said that each was its own partner.
WATCHED = 64


class PartnerSampler:
    """Draw j for i with probability P(j|i) = K(d_ij) / sum_k K(d_ik); i may draw itself.

    K(d) is exp(-d^2 / 2s^2), d the label distance.

    The draws are exact: nothing is truncated or approximated. No N x N table is held, but by `sparse` for few labels.

    Args:
        labels: (N,) or (N, d) array, tensor or memory map of the values to compare: labels, inputs or
            representations. They are held by reference where they are float32 or float64: do not change them. NaN is a
            missing output: rows are compared by the outputs that both have (see `pair_distance`), and rows without a
            common one are never partners. Labels of a device are copied to the CPU, where all draws are made.
        bandwidth: s in label units, 0 and infinity allowed; or "auto", ("fraction", f), ("std", c) or ("median", c),
            see `parse_bandwidth`.
        method: the sampling algorithm, one of `ALGORITHMS`; "auto" takes the one that is expected to take least time.
        memory_budget: bytes that tables may take beside the labels; `cells` holds 12 to 16 more for each label.

    Attributes:
        bandwidth: the bandwidth in use, a number in label units.
        method: the name of the algorithm in use.
        reason: why "auto" chose it, in words.

    Raises:
        InputError: an argument cannot be used; the message gives its name and value.
    """

    def __init__(
        self, labels: Given, bandwidth: Bandwidth, *, method: str = "auto", memory_budget: int = DEFAULT_BUDGET_BYTES
    ) -> None:
        check_choice("method", method, ALGORITHMS)
        budget = int(check_nonnegative("memory_budget", memory_budget, "a finite number of bytes"))
        data = as_labels("labels", labels, gaps=True)
        data = copied_numpy(data) if isinstance(labels, Tensor) else data
        check_common("labels", data)
        self.bandwidth = resolve_bandwidth(data, bandwidth)
        kernel = Kernel(self.bandwidth)
        self._streamed = StreamedSampler(data, kernel)
        self._algorithm, self.reason = choose(data, kernel, method, budget)
        self.method = self._algorithm.name
        self._labels = data
        self._template = labels.new_empty(0) if isinstance(labels, Tensor) else data[:0]  # partners are of its kind
        self._warning = SelfPairWarning()

    def draw(self, anchors: Given, rng: Rng) -> Any:
        """Draw one partner for each anchor.

        Args:
            anchors: (B,) integers in 0..N-1, array or tensor.
            rng: NumPy or torch generator; the same state gives the same draws.

        Returns:
            (B,) int64 indices into the labels: an array, or a tensor on their device if they are a tensor.
        """
        rows = as_anchors("anchors", anchors, len(self))
        partners = self._algorithm.draw(rows, numpy_rng(rng))
        self._warning.check(rows, partners, self.bandwidth, len(self))
        return as_kind_of(self._template, partners)

    def epoch(self, rng: Rng) -> Any:
        """Draw one partner for each of 0..N-1, in order and in one call (partners do not depend on the model).

        Returns:
            (N,) int64 indices into the labels, of the kind that `draw` returns.
        """
        return self.draw(np.arange(len(self)), rng)

    def probabilities(self, anchor: int) -> Floats:
        """Return the exact row P(.|anchor), (N,) float64 NumPy, in time O(N d)."""
        weight = self._streamed.weights(as_anchors("anchor", [anchor], len(self)))[0]
        return weight / weight.sum()

    @property
    def nbytes(self) -> int:
        """Return the bytes that the algorithm's tables hold beside the labels."""
        return self._algorithm.nbytes

    def __len__(self) -> int:
        return len(self._labels)

    def __repr__(self) -> str:
        return (
            f"PartnerSampler(N={len(self)}, d={self._labels[0].size}, bandwidth={self.bandwidth:g}, "
            f"method={self.method!r}: {self.reason}; {self.nbytes / 1e6:.2f} MB)"
        )


class BatchPartnerSampler:
    """Draw partners for a batch B1 among the candidates of a second batch B2, with P as in the paper's Eq. 6.

    Args:
        bandwidth: s in label units, 0 and infinity allowed.
        candidates: "b2" as in the paper, or "b1+b2" as in the released code (an anchor may draw itself).

    Raises:
        InputError: an argument cannot be used; the message gives its name and value.
    """

    def __init__(self, bandwidth: float, *, candidates: str = "b2") -> None:
        self.bandwidth = check_bandwidth(bandwidth)
        self.candidates = check_choice("candidates", candidates, ("b2", "b1+b2"))

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
        d, pool_d = (points.shape[1] if points.ndim > 1 else 1 for points in (anchors, pool))
        if d != pool_d:
            raise InputError(f"first and second must have as many outputs, got {d} and {pool_d}")
        if self.candidates == "b1+b2":
            pool = np.concatenate([anchors, pool])
        gaps = has_gaps(anchors) or has_gaps(pool)
        kernel = Kernel(min(self.bandwidth, WIDEST) if gaps else self.bandwidth)
        distance = pair_distance(anchors[:, None], pool[None], d, gaps=gaps)
        return np.exp(-kernel.excess(distance, distance.min(axis=1, keepdims=True)))


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
