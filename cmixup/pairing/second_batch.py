"""Partners by label distance inside a second batch (C-Mixup-batch, Yao et al. 2022, Algorithm 3)."""

import math

import numpy as np

from cmixup.data import Split
from cmixup.errors import InputError, as_number
from cmixup.pairing.base import Pairing
from cmixup.sampling.bandwidth import diagnose, parse_bandwidth, resolve_bandwidth
from cmixup.sampling.sampler import BatchPartnerSampler
from cmixup.training.batch import EpochBatches


class SecondBatch(Pairing):
    """Draws with P(j|i) ~ exp(-||y_i - y_j||^2 / (2 bandwidth^2)) over a second batch B2, itself drawn anew each step.

    With candidates "b2" (paper), B2 holds distinct rows that are not in the batch B1, as two batches of one shuffled
    epoch do; where more rows are asked for than lie outside B1, it is all of these. With "b1+b2" (released code,
    src/algorithm.py), partners come from B1 as well, so that a row may be its own. The rows of B2 are then drawn from
    the training set with replacement. A B2 of as many rows as the training set, or more, is the whole training set, and
    "b2" is then `LabelDistance`.

    Args:
        bandwidth: see `LabelDistance`.
        candidates: "b2" or "b1+b2".
        factor: rows of B2 as a multiple of the batch size, 1 or more; infinity for the whole training set.
    """

    def __init__(self, bandwidth: float | str | list | tuple, candidates: str = "b2", factor: float = 1.0):
        super().__init__()
        parse_bandwidth(bandwidth)  # refuses a bad value before any data is read
        BatchPartnerSampler(1.0, candidates=candidates)
        self.bandwidth, self.candidates, self.factor = bandwidth, candidates, as_number("factor", factor)
        if not self.factor >= 1:
            raise InputError(f"factor must be 1 or more (infinity is the whole training set), got {factor!r}")

    def fit(self, train: Split) -> None:
        self._labels = train.y.numpy()
        bandwidth = resolve_bandwidth(self._labels, self.bandwidth)
        self.sampler = BatchPartnerSampler(bandwidth, candidates=self.candidates)

    def draw(self, order: EpochBatches, rng: np.random.Generator) -> np.ndarray:
        size = self.factor * int(order.sizes.max())  # a smaller last batch has as many candidates as the others
        partners = []
        for first in order.batches():
            second = self.second(first, size, rng)
            chosen = self.sampler.draw(self._labels[first], self._labels[second], rng)
            partners.append((second if self.candidates == "b2" else np.concatenate([first, second]))[chosen])
        return np.concatenate(partners)

    def second(self, first: np.ndarray, size: float, rng: np.random.Generator) -> np.ndarray:
        """Return B2 for the rows `first: (B,)` of B1, `(size,)` int64 rows or fewer."""
        n = len(self._labels)
        if size >= n:
            return np.arange(n)
        if self.candidates == "b1+b2":
            return rng.integers(n, size=math.ceil(size))
        # So many distinct rows in random order that enough are left without those of B1.
        drawn = rng.choice(n, min(n, math.ceil(size) + len(first)), replace=False)
        return drawn[~np.isin(drawn, first)][: math.ceil(size)]

    def diagnostics(self) -> dict[str, float | str]:
        report = diagnose(self._labels, self.sampler.bandwidth)
        return {"bandwidth": report.bandwidth, "effective_fraction": report.effective_fraction}
