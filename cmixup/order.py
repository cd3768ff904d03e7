"""Which rows make which batch."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from cmixup.errors import InputError


@dataclass(frozen=True)
class Order:
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


def shuffled(n: int, batch_size: int, rng: np.random.Generator, *, drop_last: bool = False) -> Order:
    """Every one of `n` rows once, in random order; a smaller last batch is kept unless `drop_last`."""
    if batch_size < 1:
        raise InputError(f"batch_size must be 1 or more, got {batch_size!r}")
    if drop_last and n < batch_size:
        raise InputError(f"batch_size {batch_size} is larger than the {n} training rows, and drop_last leaves none")
    full, rest = divmod(n, batch_size)
    keep = full * batch_size if drop_last else n
    sizes = [batch_size] * full + ([rest] if rest and not drop_last else [])
    return Order(rng.permutation(n)[:keep], np.asarray(sizes, dtype=np.int64))
