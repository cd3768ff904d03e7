"""Partners with near inputs: the distances d(x) and d(x+y) of the paper's comparison (Yao et al. 2022, Table 5)."""

import numpy as np
import torch

from cmixup.data import Split
from cmixup.errors import InputError
from cmixup.pairing.base import Pairing
from cmixup.pairing.flat import read, rows_at_once, weights_of
from cmixup.sampling.bandwidth import parse_bandwidth, resolve_bandwidth
from cmixup.training.batch import EpochBatches

MAX_TABLE_BYTES = 2**31  # of N x N float64: 16,384 rows
ROWS_PER_BLOCK = 256


class InputDistance(Pairing):
    """Draws with P(j|i) ~ exp(-||x_i - x_j||^2 / (2 bandwidth^2)) over all other training rows, on flattened inputs.

    The row itself is left out: among inputs of many dimensions it is so much nearer than any other that every row would
    be its own partner. P is computed once.

    Args:
        bandwidth: sigma in the inputs' unit, in any form of `LabelDistance`.
        labels: compare [x; y], neither of them scaled, instead of x.
    """

    def __init__(self, bandwidth: float | str | list | tuple, labels: bool = False):
        super().__init__()
        parse_bandwidth(bandwidth)  # refuses a bad value before any data is read
        self.bandwidth, self.labels = bandwidth, labels

    def fit(self, train: Split) -> None:
        n = len(train)
        if n < 2 or 8 * n * n > MAX_TABLE_BYTES:
            limit = int((MAX_TABLE_BYTES / 8) ** 0.5)
            raise InputError(f"pairing InputDistance needs 2 to {limit} training rows (a table of all pairs), got {n}")
        step = rows_at_once(train.x)
        points = torch.cat([read(train.x, np.arange(s, min(n, s + step))) for s in range(0, n, step)]).double()
        if self.labels:
            self.refuse_gaps(train)
            points = torch.cat([points, train.y.double()], dim=1)
        self.sigma = resolve_bandwidth(points, self.bandwidth, itself=False)
        points -= points.mean(dim=0)
        norm = points.square().sum(dim=1)
        self._cumulative = np.empty((n, n))
        effective = []
        for start in range(0, n, ROWS_PER_BLOCK):
            rows = torch.arange(start, min(n, start + ROWS_PER_BLOCK))
            squared = (norm[rows, None] + norm - 2 * points[rows] @ points.T).clamp_min(0.0)
            squared[rows - start, rows] = torch.inf
            weight = weights_of(squared, self.sigma * self.sigma)
            effective.append(weight.sum(dim=1) ** 2 / weight.square().sum(dim=1))
            np.cumsum(weight.numpy(), axis=1, out=self._cumulative[start : start + len(rows)])
        self._effective = float(torch.cat(effective).median()) / n

    def draw(self, order: EpochBatches, rng: np.random.Generator) -> np.ndarray:
        level = rng.random(len(order.index)) * self._cumulative[order.index, -1]
        partners = [self._cumulative[i].searchsorted(v, "right") for i, v in zip(order.index, level, strict=True)]
        return np.array(partners, dtype=np.int64)

    def diagnostics(self) -> dict[str, float | str]:
        return {"bandwidth": self.sigma, "effective_fraction": self._effective}
