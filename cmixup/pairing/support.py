"""Inside a task: which support example each query example is mixed with."""

from abc import ABC, abstractmethod

import numpy as np
from torch import nn

from cmixup.data import Split, Tasks
from cmixup.errors import InputError, check_bandwidth, check_count
from cmixup.pairing.blocks import assign

TASKS_PER_CHUNK = 4096  # whose probabilities are in memory at once


class SupportPairing(nn.Module, ABC):
    """Draws a support example for every query example of many tasks."""

    def fit(self, train: Split) -> None:
        """Keep the training tasks."""
        assert isinstance(train.x, Tasks)
        self.tasks, self.y = train.x, train.y.numpy()

    @abstractmethod
    def draw(self, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return for the tasks `rows: (M,)` the support examples `(M, Q)` int64, in 0..K-1."""

    def diagnostics(self) -> dict[str, float | str]:
        """Return facts about this pairing for a record."""
        return {}


class SupportPermutation(SupportPairing):
    """Takes each support example once, in random order (MetaMix's code); needs as many support as query examples."""

    def draw(self, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        shots = self.tasks.shots
        if self.y.shape[1] != shots:
            raise InputError(
                f"a permutation needs as many query as support examples, got {self.y.shape[1]} and {shots}"
            )
        return rng.permuted(np.tile(np.arange(shots), (len(rows), 1)), axis=1)


class SupportLabels(SupportPairing):
    """Draws with P(j|i) ~ exp(-(y_i - y_j)^2 / (2 bandwidth^2)) over the support of the task (C-Mixup, Algorithm 2).

    The bandwidth is in label units; 0 takes the nearest labels, infinity any with equal probability.
    """

    def __init__(self, bandwidth: float):
        super().__init__()
        self.bandwidth = check_bandwidth(bandwidth)

    def fit(self, train: Split) -> None:
        super().fit(train)
        sample = self.probabilities(np.arange(min(len(self.y), TASKS_PER_CHUNK)))
        self._effective = float(np.median(1 / np.square(sample).sum(axis=2))) / sample.shape[2]

    def probabilities(self, rows: np.ndarray) -> np.ndarray:
        """Return P(j|i) of the tasks `rows: (M,)`, `(M, Q, K)` float64; they sum to 1 over the last axis."""
        support = self.tasks.support_labels(rows).astype(np.float64)
        gap = np.square(self.y[rows].astype(np.float64)[:, :, None] - support[:, None, :])
        excess = gap - gap.min(axis=2, keepdims=True)
        if self.bandwidth == 0:
            weight = (excess == 0).astype(np.float64)
        else:
            weight = np.exp(-excess / (2 * self.bandwidth * self.bandwidth))
        return weight / weight.sum(axis=2, keepdims=True)

    def draw(self, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return draws with replacement, by inverse CDF."""
        level = rng.random((len(rows), self.y.shape[1]))
        parts = []
        for start in range(0, len(rows), TASKS_PER_CHUNK):
            part = slice(start, start + TASKS_PER_CHUNK)
            cumulative = self.probabilities(rows[part]).cumsum(axis=2)
            is_below = cumulative <= level[part, :, None] * cumulative[:, :, -1:]
            parts.append(is_below.sum(axis=2))
        return np.concatenate(parts)

    def diagnostics(self) -> dict[str, float | str]:
        return {"bandwidth": self.bandwidth, "effective_fraction": self._effective}


class SupportBlocks(SupportPermutation):
    """Matches blocks of k query examples with blocks of a permuted support at the least cost (k-Mixup).

    k divides the number of examples; 1 is the permutation itself.
    """

    def __init__(self, k: int):
        super().__init__()
        self.k = check_count("k", k, 1)

    def fit(self, train: Split) -> None:
        super().fit(train)
        if self.tasks.shots % self.k:
            raise InputError(f"k must divide the {self.tasks.shots} support examples, got {self.k}")

    def draw(self, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return the matched support examples; they use the random numbers that `SupportPermutation` uses."""
        pair = super().draw(rows, rng)
        if self.k == 1:
            return pair
        n, shots = pair.shape
        distance = self.tasks.distances(rows)  # (M, Q, K)
        blocks = pair.reshape(n, shots // self.k, self.k)
        queries = np.arange(shots).reshape(1, shots // self.k, self.k)
        cost = distance[np.arange(n)[:, None, None, None], queries[..., :, None], blocks[..., None, :]]
        chosen = assign(np.square(cost).reshape(-1, self.k, self.k)).reshape(blocks.shape)
        return np.take_along_axis(blocks, chosen, axis=2).reshape(n, shots)
