"""Partners by optimal assignment between blocks of k rows (k-Mixup, Greenewald et al. 2021)."""

import numpy as np
import torch

from cmixup.data import Split
from cmixup.errors import InputError, check_choice, check_count
from cmixup.pairing.base import Pairing
from cmixup.pairing.flat import euclidean, read, rows_at_once
from cmixup.training.batch import EpochBatches
from cmixup.training.model_stack import KeepsState


class Blocks(KeepsState, Pairing):
    """Pairs each block of k rows of a batch with a block of a second batch so that the total cost is least.

    A last block with fewer than k rows is matched within itself. With k = 1 this is the pairing of the second batch
    as it is drawn; with k = batch size and a permuted batch every row is its own partner.

    Args:
        k: rows a block, 1 or more, at most the batch size.
        second: the second batch is a "permutation" of the batch, or "independent": as many distinct training rows.
    """

    kept_state = ("_drawn", "_drawn_self")

    def __init__(self, k: int, second: str = "permutation"):
        super().__init__()
        self.k = check_count("k", k, 1)
        self.second = check_choice("second", second, ("permutation", "independent"))
        self._drawn = self._drawn_self = 0

    def check_batch(self, batch_size: int) -> None:
        if batch_size < self.k:
            raise InputError(f"batch_size must be at least k = {self.k}, got {batch_size}")

    def fit(self, train: Split) -> None:
        self._x, self.n_rows, self._rows_per_chunk = train.x, len(train), rows_at_once(train.x)

    def draw(self, order: EpochBatches, rng: np.random.Generator) -> np.ndarray:
        """Return partners `(M,)`; they use the random numbers that `Permutation` uses."""
        n, permuted = self.n_rows, self.second == "permutation"
        second = [rng.permutation(b) if permuted else rng.choice(n, len(b), replace=False) for b in order.batches()]
        second_rows = np.concatenate(second)
        partners = second_rows if self.k == 1 else self._match(order, second_rows)
        self._drawn += len(partners)
        self._drawn_self += int((partners == order.index).sum())
        return partners

    def diagnostics(self) -> dict[str, float | str]:
        return {"self_probability": self._drawn_self / self._drawn} if self._drawn else {}

    def _match(self, order: EpochBatches, second_rows: np.ndarray) -> np.ndarray:
        partners = np.empty_like(second_rows)
        stops = np.cumsum(order.sizes)
        starts = [np.arange(stop - size, stop, self.k) for stop, size in zip(stops, order.sizes, strict=True)]
        start = np.concatenate(starts)
        length = np.minimum(self.k, np.repeat(stops, list(map(len, starts))) - start)
        for size in np.unique(length):
            blocks = start[length == size][:, None] + np.arange(size)
            step = max(1, self._rows_per_chunk // (2 * int(size)))
            for s in range(0, len(blocks), step):
                part = blocks[s : s + step]
                rows, place = np.unique(np.stack([order.index[part], second_rows[part]]), return_inverse=True)
                x = read(self._x, rows)
                first, second = torch.from_numpy(place.reshape(2, *part.shape))
                cost = euclidean(x[first], x[second]).double().square().numpy()  # (n, size, size)
                partners[part] = np.take_along_axis(second_rows[part], assign(cost), axis=1)
        return partners


def assign(cost: np.ndarray) -> np.ndarray:
    """Return for each of n cost matrices `(n, k, k)` the column of every row that makes the sum least, `(n, k)`."""
    from scipy.optimize import linear_sum_assignment

    return np.stack([linear_sum_assignment(matrix)[1] for matrix in cost])
