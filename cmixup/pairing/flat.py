"""Inputs as flat rows and the distances between them, for pairings and weights that look at inputs."""

import numpy as np
import torch
from torch import Tensor

from cmixup.data import Indexable
from cmixup.inputs.spread import varies

INPUT_BYTES_PER_CHUNK = 64 * 2**20
SAMPLED_ROWS = 1024  # whose distances stand for those of all rows


def read(x: Tensor | Indexable, rows: np.ndarray) -> Tensor:
    """Return the inputs of `rows: (B,)` int64, flattened, `(B, D)` float32 on the CPU."""
    return x[torch.from_numpy(rows)].reshape(len(rows), -1)


def rows_at_once(x: Tensor | Indexable) -> int:
    """Return how many rows of `x` are read at once, 1 or more."""
    return max(1, INPUT_BYTES_PER_CHUNK // (4 * max(1, read(x, np.zeros(1, dtype=np.int64)).numel())))


def euclidean(first: Tensor, second: Tensor) -> Tensor:
    """Return the distances between rows `(..., B, D)` and `(..., C, D)`, `(..., B, C)`; 0 where they are equal."""
    return torch.cdist(first, second, compute_mode="donot_use_mm_for_euclid_dist")


def weights_of(squared: Tensor, variance: Tensor | float) -> Tensor:
    """Return `exp(-d / (2 variance))` of distances d `(..., C)` float64, relative to the nearest one of each row.

    They are in the unit of the variance, and infinite for rows never to draw. At variance 0 only the nearest keep
    weight; it may be infinite, and a tensor that broadcasts.
    """
    excess = squared - squared.amin(dim=-1, keepdim=True)
    variance = torch.as_tensor(variance, dtype=excess.dtype, device=excess.device)
    energy = torch.where(excess > 0, excess / (2 * variance), 0.0)
    return torch.where(squared.isinf(), 0.0, torch.exp(-energy))


class Standardised:
    """Euclidean distances between inputs `(N, ...)`, every coordinate with mean 0 and standard deviation 1.

    A coordinate that never varies counts nothing. Inputs that are read on demand are standardised by `sample` rows
    of them, up to `SAMPLED_ROWS` and the same every time; nothing but the two statistics is kept.
    """

    def __init__(self, x: Tensor | Indexable):
        self.x, self.rows_per_chunk = x, rows_at_once(x)
        count = min(len(x), SAMPLED_ROWS, max(2, self.rows_per_chunk))
        all_rows = np.arange(len(x))
        self.sample = all_rows if count == len(x) else np.sort(np.random.default_rng(0).choice(len(x), count, False))
        flat = read(x, all_rows if isinstance(x, Tensor) else self.sample)
        deviation = flat.std(dim=0, correction=0)
        # A constant column's deviation may be a rounding error instead of 0: it would blow noise up.
        vary = varies(flat.amin(dim=0).double(), flat.amax(dim=0).double(), len(flat))
        self.mean, self.scale = flat.mean(dim=0), torch.where(vary, 1 / deviation, 0.0)

    def read(self, rows: np.ndarray) -> Tensor:
        """Return `(B, D)` standardised inputs of `rows: (B,)`."""
        return (read(self.x, rows) - self.mean) * self.scale

    def between(self, first: np.ndarray, second: np.ndarray) -> np.ndarray:
        """Return the distance of each of M pairs of rows, `(M,)` float32; of a row to itself exactly 0."""
        starts = range(self.rows_per_chunk, len(first), self.rows_per_chunk)
        parts = zip(np.split(first, starts), np.split(second, starts), strict=True)
        return torch.cat([(self.read(a) - self.read(b)).norm(dim=1) for a, b in parts]).numpy()

    def pair_distances(self) -> np.ndarray:
        """Return the distances of all pairs of sampled rows, a row with itself included, `(n^2,)` float32."""
        rows = self.read(self.sample)
        return euclidean(rows, rows).flatten().numpy()

    def kth_distance(self, k: int) -> np.ndarray:
        """Return every row's distance to its k-th nearest other row, `(N,)` float32, in O(N^2 D); 0 for k = 0."""
        n = len(self.x)
        if k == 0:
            return np.zeros(n, dtype=np.float32)
        step = max(1, min(self.rows_per_chunk, 2**24 // n))
        distances = []
        for start in range(0, n, step):
            rows = np.arange(start, min(start + step, n))
            inputs, parts = self.read(rows), np.split(np.arange(n), range(self.rows_per_chunk, n, self.rows_per_chunk))
            distance = torch.cat([euclidean(inputs, self.read(part)) for part in parts], dim=1)
            distance[torch.arange(len(rows)), torch.from_numpy(rows)] = -1.0  # the row itself comes first
            distances.append(distance.kthvalue(k + 1, dim=1).values)
        return torch.cat(distances).numpy()
