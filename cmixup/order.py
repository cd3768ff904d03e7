"""Which rows make which batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cmixup.errors import InputError


@dataclass(frozen=True)
class EpochBatches:
    """The rows of one epoch, batch after batch.

    Attributes:
        index: `(M,)` int64 rows of the training split, in the order they are used.
        sizes: `(n_batches,)` int64 batch sizes; they sum to M.
    """

    index: np.ndarray
    sizes: np.ndarray

    def batches(self) -> Iterator[np.ndarray]:
        """Yield the rows of each batch in turn (for pairings inside a batch)."""
        yield from np.split(self.index, np.cumsum(self.sizes)[:-1])


def shuffled(n: int, batch_size: int, rng: np.random.Generator, *, drop_last: bool = False) -> EpochBatches:
    """Return an epoch with each of `n` rows once, in random order; `drop_last` leaves out a smaller last batch."""
    sizes = _sizes(n, batch_size, drop_last)
    return EpochBatches(rng.permutation(n)[: sizes.sum()], sizes)


def sequential(n: int, batch_size: int, *, drop_last: bool = False) -> EpochBatches:
    """Return an epoch with each of `n` rows once, in their own order; `drop_last` leaves out a smaller last batch."""
    sizes = _sizes(n, batch_size, drop_last)
    return EpochBatches(np.arange(sizes.sum()), sizes)


def domain_batches(domain: np.ndarray, groups: int, rows: int, rng: np.random.Generator) -> EpochBatches:
    """Return batches of `groups` different domains with as many rows of each, domain after domain (WILDS GroupSampler).

    Domains are drawn uniformly, whatever their size, and their order in the batch is random. Rows of a domain are drawn
    without replacement, or with it where the domain has no more than `rows` of them. An epoch is floor(N / (groups *
    rows)) batches.

    Args:
        domain: `(N,)` int64 domain of every row.
        groups: domains a batch.
        rows: rows of each.
        rng: order stream.

    Raises:
        InputError: fewer than 1 group or row, more groups than domains, a batch larger than the split.
    """
    for name, value in (("groups", groups), ("rows", rows)):
        if value < 1:
            raise InputError(f"{name} must be 1 or more, got {value!r}")
    _, counts = np.unique(domain, return_counts=True)
    if groups > len(counts):
        raise InputError(f"groups must be at most the number of training domains, got {groups} for {len(counts)}")
    n_batches = len(domain) // (groups * rows)
    if n_batches == 0:
        raise InputError(f"a batch of {groups} domains x {rows} rows is larger than the {len(domain)} training rows")
    chosen = rng.random((n_batches, len(counts))).argsort(axis=1)[:, :groups].ravel()
    n = counts[chosen]
    apart, anywhere = without_replacement(np.maximum(n, rows), rows, rng), rng.integers(n[:, None], size=(len(n), rows))
    place = np.where((n > rows)[:, None], apart, anywhere)
    by_domain, starts = np.argsort(domain, kind="stable"), np.cumsum(counts) - counts
    index = by_domain[starts[chosen][:, None] + place].ravel()
    return EpochBatches(index, np.full(n_batches, groups * rows, dtype=np.int64))


def domain_balanced(
    domain: np.ndarray, batch_size: int, rng: np.random.Generator, *, drop_last: bool = False
) -> EpochBatches:
    """Return N rows drawn with replacement, each domain with equal probability.

    The weight of a row is 1/n_e, as in the sampler that WILDS uses for GroupDRO; batches are those of `shuffled`.

    Args:
        domain: `(N,)` int64 domain of every row.
        batch_size: rows a batch.
        rng: order stream.
        drop_last: leave out a smaller last batch.
    """
    sizes = _sizes(len(domain), batch_size, drop_last)
    _, counts = np.unique(domain, return_counts=True)
    chosen = rng.integers(len(counts), size=sizes.sum())
    by_domain, starts = np.argsort(domain, kind="stable"), np.cumsum(counts) - counts
    return EpochBatches(by_domain[starts[chosen] + rng.integers(counts[chosen])], sizes)


def without_replacement(n: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    """Return `(M, k)` int64: for each of `n: (M,)`, k distinct numbers below it, uniformly and in random order.

    Floyd's algorithm: k draws a row, however large n is. Every n must be k or more.
    """
    chosen = np.empty((len(n), k), dtype=np.int64)
    for i in range(k):
        last = n - k + i
        drawn = rng.integers(last + 1)
        taken = (chosen[:, :i] == drawn[:, None]).any(axis=1)
        chosen[:, i] = np.where(taken, last, drawn)
    return rng.permuted(chosen, axis=1)


def _sizes(n: int, batch_size: int, drop_last: bool) -> np.ndarray:
    if batch_size < 1:
        raise InputError(f"batch_size must be 1 or more, got {batch_size!r}")
    if drop_last and n < batch_size:
        raise InputError(f"batch_size {batch_size} is larger than the {n} training rows, and drop_last leaves none")
    full, rest = divmod(n, batch_size)
    sizes = [batch_size] * full + ([rest] if rest and not drop_last else [])
    return np.asarray(sizes, dtype=np.int64)
