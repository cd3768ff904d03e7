"""Diabetes progression: ships inside scikit-learn, so it is there without network or mirror."""

import hashlib

import numpy as np

from datasets.common.base import Indices, RawTable, TabularDataset, permuted, smooth_labels


class Diabetes(TabularDataset):
    """Progression of diabetes one year after a baseline examination.

    Origin: scikit-learn's `load_diabetes` (unscaled). Not in the paper: the embedded dataset that works anywhere.
    y: a quantitative measure of disease progression, 25 to 346. x: age, sex, body mass index, mean blood pressure
    and six blood serum measurements.
    Shapes: x (N, 10), y (N, 1); 442 rows, split 262 / 90 / 90 anew for every run seed. No domains.
    Licence: BSD (scikit-learn). Citation: Efron, Hastie, Johnstone and Tibshirani, "Least Angle Regression", 2004.
    """

    name = "diabetes"
    place = "ships with scikit-learn, BSD"
    unit = "disease progression score"
    x_shape = (10,)
    rows = 442
    split_sizes = (262, 90, 90)
    columns = ("age", "sex", "bmi", "bp", "s1", "s2", "s3", "s4", "s5", "s6")
    label = "progression"

    def read(self) -> RawTable:
        from sklearn.datasets import load_diabetes

        x, y = load_diabetes(return_X_y=True, scaled=False)
        digest = hashlib.sha256(np.ascontiguousarray(np.column_stack([x, y])).tobytes()).hexdigest()
        return RawTable(x, y[:, None], np.zeros(len(x)), {"scikit-learn:load_diabetes": digest})

    def synthetic_rows(self, rng: np.random.Generator) -> RawTable:
        x = rng.normal(100, 20, (self.rows, 10))
        return RawTable(x, smooth_labels(x, rng, 152, 77), np.zeros(self.rows), {})

    def split(self, table: RawTable, seed: int) -> Indices:
        return permuted(np.random.default_rng(seed).permutation(len(table.x)), self.split_sizes)
