"""Weighted rows: equal ones as one, standardised, in batches and with partners by weight.

All that `TabularRegressor` draws and computes goes through these functions. So a row of weight 2 is the same as the row
given twice, and a row of weight 0 the same as no row. The order of the rows changes nothing.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from cmixup.data import Split
from cmixup.inputs.spread import NARROW, varies
from cmixup.pairing.base import Pairing
from cmixup.sampling.inputs import Floats, Ints
from cmixup.sampling.sampler import PartnerSampler
from cmixup.training.batch import EpochBatches, shuffled

#: So often partners are drawn and refused by weight; the rest is drawn from exact rows, each in time O(N d).
REFUSALS = 64
#: Moments of more numbers are computed of half of the columns after the other: they take the memory five times.
AT_ONCE = 1 << 20


@dataclass(frozen=True)
class Rows:
    """N different rows."""

    x: Floats  # (N, d) inputs
    y: Floats  # (N, d_y) labels
    weight: Floats  # (N,) above 0
    apart: Ints | None = None  # (N,) by which equal rows are kept apart: their group or place
    group: Ints | None = None  # (N,) their group, if there are any

    def __len__(self) -> int:
        return len(self.weight)

    def take(self, index: Ints) -> Self:
        """Return the rows `index`."""
        arrays = {name: values[index] for name, values in vars(self).items() if values is not None}
        return replace(self, **arrays)


def merged(
    x: Floats, y: Floats, weight: Floats, apart: Ints | None = None, group: Ints | None = None
) -> tuple[Rows, Ints]:
    """Return the rows of weight above 0, in an order of their own, equal ones as one with the sum of their weights.

    And the place (n,) among them of each row given, -1 for one of weight 0. Rows that differ in `apart` are different;
    of equal ones the group is that of the first.
    """
    is_kept, d = weight > 0, x.shape[1]
    extra = [] if apart is None else [apart[is_kept, None]]
    table = np.concatenate([x[is_kept], y[is_kept], *extra], axis=1) + 0.0  # -0.0 becomes 0.0
    table[np.isnan(table)] = np.nan  # there are many kinds of NaN
    rows = table.view(np.dtype((np.void, table.itemsize * table.shape[1])))[:, 0]  # compared byte by byte
    _, first, place = np.unique(rows, return_index=True, return_inverse=True)
    sums = np.bincount(place, weights=weight[is_kept]).astype(np.float64)
    labels = table[first, d : d + y.shape[1]]
    apart = None if apart is None else table[first, -1].astype(np.int64)
    places = np.full(len(is_kept), -1)
    places[is_kept] = place.reshape(-1)
    return Rows(table[first, :d], labels, sums, apart, None if group is None else group[is_kept][first]), places


def fold_of(group: Ints | None, n: int, folds: int, seed: Sequence[int]) -> Ints:
    """Return a fold for each of n rows; rows of one group have the same, where there are several groups."""
    group = np.unique(np.zeros(n) if group is None else group, return_inverse=True)[1]
    group = group if group.any() else np.arange(n)
    return (np.random.default_rng(seed).permutation(group.max() + 1) % folds)[group]


def moments(values: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """Return weighted means and standard deviations (d,) of the columns of (N, d); 0 where one does not vary.

    NaN is left out, and a column of nothing else has mean and deviation 0.
    """
    if values.size > AT_ONCE and values.shape[1] > 3:  # a column alone would be summed in another order
        halves = [moments(half, weight) for half in np.array_split(values, 2, axis=1)]
        return np.concatenate([mean for mean, _ in halves]), np.concatenate([deviation for _, deviation in halves])
    low, high = np.fmin.reduce(values, axis=0), np.fmax.reduce(values, axis=0)
    narrow = high - low < NARROW * np.maximum(abs(low), abs(high))
    values = np.where(narrow, values - low, values)  # whose sums would lose the digits that differ
    known = ~np.isnan(values)
    values = np.where(known, values, 0.0)
    weights = known * weight[:, None]
    share = weights / np.maximum(weights.sum(axis=0), np.finfo(np.float64).tiny)
    mean = (values * share).sum(axis=0)
    vary = varies(low, high, known.sum(axis=0))
    unit = np.exp2(np.frexp(np.where(vary, high - low, 1.0))[1] - 1.0)  # squares of tiny numbers would be 0
    deviation = np.sqrt((((values - mean) / unit) ** 2 * share).sum(axis=0)) * unit
    mean = np.where(narrow, low + mean, mean)
    return np.where(vary, mean, np.nan_to_num(low)), np.where(vary, deviation, 0.0)


def standardised(values: Floats, mean: Floats, deviation: Floats) -> Floats:
    """Return `(values - mean) / deviation`, and 0 for columns of deviation 0, which training never saw vary.

    NaN stays.
    """
    centred = values - mean
    centred /= np.where(deviation > 0, deviation, np.inf)
    return centred


def epoch_batches(weight: Floats, batch_size: int, rng: np.random.Generator, length: int) -> EpochBatches:
    """Return an epoch of M rows in random order, row i of N as often as its share M w_i / sum(w), up or down to whole.

    The expected number is the share itself (systematic sampling); with equal weights and M = N each row comes once.
    M is `length`.
    """
    epoch = shuffled(length, batch_size, rng)
    if length == len(weight) and (weight == weight[0]).all():
        return epoch
    cumulative = np.cumsum(weight) * (length / weight.sum())
    chosen = np.searchsorted(cumulative, np.arange(length) + rng.random(), side="right").clip(max=len(weight) - 1)
    return EpochBatches(chosen[epoch.index], epoch.sizes)


class WeightedLabels(Pairing):
    """Draws j for i with P(j|i) ~ w_j exp(-|y_i - y_j|^2 / 2 s^2), exactly; with s = 0 every row is its own partner."""

    def __init__(self, labels: Floats, weight: Floats, bandwidth: float):
        super().__init__()
        self.bandwidth, self.weight = bandwidth, weight
        self.sampler = PartnerSampler(labels, bandwidth) if bandwidth > 0 else None

    def fit(self, train: Split) -> None:
        """Read nothing: the labels are here already, in float64."""

    def draw(self, order: EpochBatches, rng: np.random.Generator) -> np.ndarray:
        if self.sampler is None:
            return order.index.copy()
        acceptance = self.weight / self.weight.max()
        partners: Ints = self.sampler.draw(order.index, rng)
        if (acceptance == 1).all():
            return partners
        pending = np.flatnonzero(rng.random(len(partners)) >= acceptance[partners])
        for _ in range(REFUSALS):
            if not len(pending):
                break
            partners[pending] = self.sampler.draw(order.index[pending], rng)
            pending = pending[rng.random(len(pending)) >= acceptance[partners[pending]]]
        for place in pending:
            sums = np.cumsum(self.sampler.probabilities(int(order.index[place])) * self.weight)
            partners[place] = min(np.searchsorted(sums, rng.random() * sums[-1], side="right"), len(sums) - 1)
        return partners
