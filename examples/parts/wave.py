"""Waves."""

import numpy as np

from datasets.common.base import Indices, RawTable, TabularDataset, permuted, smooth_labels


class Wave(TabularDataset):
    """Heights of made-up waves.

    Origin: made here. y: height in metres. x: four numbers between 0 and 1.
    Shapes: x (N, 4), y (N, 1); 300 rows, split 200 / 50 / 50 anew for every run seed. No domains.
    Licence: MIT. Citation: none.
    """

    name = "wave"
    unit = "metres"

    def read(self) -> RawTable:
        """Return the rows; a dataset with files names them in `files` and reads what `self.fetch()` returns."""
        return self.synthetic_rows(np.random.default_rng(1))

    def synthetic_rows(self, rng: np.random.Generator) -> RawTable:
        """Return 300 rows of the same shapes, which need no file."""
        x = rng.random((300, 4))
        return RawTable(x, smooth_labels(x, rng, 0, 1), np.zeros(300), {})

    def split(self, table: RawTable, seed: int) -> Indices:
        """Return 200 / 50 / 50 rows."""
        return permuted(np.random.default_rng(seed).permutation(300), (200, 50, 50))
