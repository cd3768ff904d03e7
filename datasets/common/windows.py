"""Multivariate series as regression: a window of past rows predicts the row `horizon` steps after it."""

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from cmixup.data import RegressionData, Split
from cmixup.errors import InputError, check_choice, check_count
from datasets.common.base import SPLITS, Dataset

WINDOW = 168  # a week of hours; paper and released code


class Windows:
    """Windows of a series `(n, m)` from the rows `starts: (N,)` on, gathered when they are asked for."""

    stackable: ClassVar[bool] = True

    def __init__(self, series: Tensor, starts: Tensor, window: int):
        n, m = series.shape
        self.series, self.starts, self.window = series.contiguous(), starts.to(series.device), window
        self.shape = torch.Size((len(starts), window, m))
        # Row i of this view is the window from row i on, laid flat; they overlap in memory, and it is only ever read.
        self._flat = self.series.as_strided((max(n - window + 1, 0), window * m), (m, 1), self.series.storage_offset())

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Tensor) -> Tensor:
        """Return the windows `index: (B,)` int64 as `(B, window, m)`."""
        rows = self._flat.index_select(0, self.starts[index.to(self.starts.device)])
        return rows.view(len(index), *self.shape[1:])


def target_rows(n: int, window: int, horizon: int, name: str = "the series") -> dict[str, range]:
    """Return the rows that each split predicts: 60 / 20 / 20 % of `n` in time order (laiguokun/LSTNet utils.py).

    The first target is the first row with a whole window before it; windows of val and test reach back into the split
    before. Row t is predicted from rows t - horizon - window + 1 to t - horizon.
    """
    check_count("window", window, 1)
    check_count("horizon", horizon, 1)
    first, val, test = window + horizon - 1, int(0.6 * n), int(0.8 * n)
    if first >= val:
        raise InputError(
            f"window {window} with horizon {horizon} is longer than the training part of {name}, which has {val} rows"
        )
    return {"train": range(first, val), "val": range(val, test), "test": range(test, n)}


class SeriesDataset(Dataset):
    """Windows of a multivariate series, each series divided by its largest absolute value.

    Args:
        window: time steps that a prediction sees.
        horizon: steps from the last of them to the row that is predicted.
        scaling: "all" takes the largest value over the whole series, test rows too (LSTNet and the released code: the
            paper's RMSE is in these units); "train" over the first 60 % only.
        synthetic: use synthetic data: as many series, but fewer rows.
    """

    series: ClassVar[int]  # how many
    layout: ClassVar[Mapping[str, Any]] = {}  # where the numbers are in its file, as arguments of `np.loadtxt`
    synthetic_steps: ClassVar[int] = 540  # leaves synthetic data one whole batch of 128 to train on, at horizon 24, too

    def __init__(self, window: int = WINDOW, horizon: int = 12, scaling: str = "all", synthetic: bool = False):
        super().__init__(synthetic)
        self.window, self.horizon = window, horizon
        self.scaling = check_choice("scaling", scaling, ("all", "train"))
        target_rows(self.synthetic_steps if synthetic else self.rows, window, horizon, self.name)

    def read(self) -> tuple[np.ndarray, dict[str, str]]:
        """Return the real series `(rows, series)` and the checksum of its file of comma-separated numbers."""
        ((file, path),) = self.fetch()
        return np.loadtxt(path, delimiter=",", **self.layout), {file.path: file.sha256}

    def synthetic_rows(self, rng: np.random.Generator) -> np.ndarray:
        """Return positive series with a daily and a weekly cycle, a slow drift and a tenth of noise."""
        hours = np.arange(self.synthetic_steps)[:, None]
        level, phase = rng.uniform(1, 5, self.series), rng.uniform(0, 2 * np.pi, (2, self.series))
        daily, weekly = (np.sin(2 * np.pi * hours / period + p) for period, p in zip((24, 168), phase, strict=True))
        drift = rng.normal(0, 0.02, (self.synthetic_steps, self.series)).cumsum(axis=0)
        return level * (3 + daily + 0.5 * weekly + drift + 0.1 * rng.normal(size=daily.shape))

    def load(self, seed: int) -> RegressionData:
        values, checksums = (self.synthetic_rows(np.random.default_rng(0)), {}) if self.synthetic else self.read()
        targets = target_rows(len(values), self.window, self.horizon, self.name)
        scale = np.abs(values if self.scaling == "all" else values[: targets["train"].stop]).max(axis=0)
        series = torch.from_numpy((values / np.where(scale > 0, scale, 1.0)).astype(np.float32))
        return self.assemble(seed, (self._split(series, part, targets[part]) for part in SPLITS), checksums)

    def _split(self, series: Tensor, part: str, targets: range) -> Split:
        first = targets.start - self.horizon - self.window + 1
        x = Windows(series, torch.arange(first, first + len(targets)), self.window)
        return self.make_split(part, x, series[targets.start : targets.stop].numpy())
