"""Partners among the k nearest rows, with a k of each row's own (MixRL's pairing)."""

import numpy as np
import torch

from cmixup.data import Split
from cmixup.errors import InputError, check_choice, check_count
from cmixup.pairing.base import Pairing
from cmixup.pairing.flat import Standardised, euclidean
from cmixup.training.batch import EpochBatches
from cmixup.training.model_stack import KeepsState

DISTANCES_PER_BLOCK = 2**22
MAX_INPUT_BYTES = 2**31


class Neighbours(KeepsState, Pairing):
    """Draws how many nearest rows count for a row, then one of those rows.

    Args:
        m: the options for the number of neighbours are 0, 1, 2, 4, ..., 2^m; 0 is the row itself.
        options: the options themselves, each 0 or more, instead of `m`.
        distance: near in standardised "x", "y" or "both".

    Attributes:
        features: `(N, D + d_y)` float32 standardised inputs and labels.
        nearest: `(N, max(options))` int64 other rows, nearest first.
        probabilities: `(N, len(options))` float64 of each option for each row; uniform at first.
    """

    kept_state = ("probabilities",)  # which a search may have learned

    def __init__(self, m: int = 5, options: list | None = None, distance: str = "x"):
        super().__init__()
        if options is None:
            options = [0, *(2**i for i in range(check_count("m", m) + 1))]
        are_counts = all(isinstance(k, int) and not isinstance(k, bool) and k >= 0 for k in options)
        if not options or not are_counts or len(set(options)) < len(options):
            raise InputError(f"options must be different whole numbers, 0 or more, got {options!r}")
        self.options = tuple(options)
        self.distance = check_choice("distance", distance, ("x", "y", "both"))

    def fit(self, train: Split) -> None:
        if self.distance != "x":
            self.refuse_gaps(train)
        n, largest = len(train), max(self.options)
        if largest > n - 1:
            raise InputError(f"options must be at most the {n - 1} other training rows, got {largest}")
        x, y = Standardised(train.x), Standardised(train.y)
        if 4 * n * len(x.mean) > MAX_INPUT_BYTES:
            raise InputError(f"inputs must fit {MAX_INPUT_BYTES} bytes, got {4 * n * len(x.mean)}: use features")
        parts = {"x": x.read(np.arange(n)), "y": y.read(np.arange(n))}
        self.features = parts["both"] = torch.cat([parts["x"], parts["y"]], dim=1)
        points = parts[self.distance]
        nearest = [torch.empty(0, largest, dtype=torch.int64)]
        step = max(1, DISTANCES_PER_BLOCK // n)
        for start in range(0, n if largest else 0, step):
            distance = euclidean(points[start : start + step], points)
            diagonal = torch.arange(len(distance))
            distance[diagonal, diagonal + start] = torch.inf
            nearest.append(distance.topk(largest, dim=1, largest=False).indices)
        self.nearest = torch.cat(nearest).numpy()
        self.probabilities = np.full((n, len(self.options)), 1 / len(self.options))

    def draw(self, order: EpochBatches, rng: np.random.Generator) -> np.ndarray:
        return self.partners(order.index, self.choose(order.index, rng), rng)

    def choose(self, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return the place in `options` drawn for each row, `(M,)` int64."""
        cumulative = self.probabilities[rows].cumsum(axis=1)
        level = rng.random((len(rows), 1)) * cumulative[:, -1:]
        return (cumulative <= level).sum(axis=1, dtype=np.int64)

    def partners(self, rows: np.ndarray, chosen: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return for each row one of its `options[chosen]` nearest rows, uniformly, `(M,)` int64."""
        count = np.array(self.options)[chosen]
        place = (rng.random(len(rows)) * count).astype(np.int64)
        if not self.nearest.size:
            return rows.copy()
        return np.where(count == 0, rows, self.nearest[rows, place])

    def diagnostics(self) -> dict[str, float | str]:
        mean = self.probabilities.mean(axis=0)
        shares = {f"share_k{k}": float(p) for k, p in zip(self.options, mean, strict=True)}
        return {"mean_k": float(mean @ self.options), **shares}
