"""Weights of pairs that decrease with the distance of their inputs (Baena et al. 2022, arXiv 2201.04368)."""

from abc import ABC, abstractmethod

import numpy as np

from cmixup.data import Tasks
from cmixup.errors import InputError, check_between, check_count, check_nonnegative
from cmixup.pairing.flat import Standardised

ROUNDING = 1 + 1e-5  # up to which distances that are found in two ways may differ


class Decay(ABC):
    """The weight of a pair, in [0, 1], which does not grow with its distance."""

    @abstractmethod
    def fit(self, inputs: Standardised) -> None:
        """Take the scale of distances from the training inputs."""

    @abstractmethod
    def __call__(self, rows: np.ndarray, distance: np.ndarray) -> np.ndarray:
        """Return weights `(M,)` of pairs with first rows `rows: (M,)` at `distance: (M,)`."""


class Threshold(Decay):
    """Weighs 1 up to a quantile, in [0, 1], of the distances of all training pairs, self pairs included; else 0."""

    def __init__(self, quantile: float = 0.25):
        self.quantile = check_between("quantile", quantile, 0, 1)

    def fit(self, inputs: Standardised | Tasks) -> None:
        """Find the distance at the quantile; infinity at 1, since the largest pair may not be in the sample."""
        self.eps = float("inf") if self.quantile == 1 else float(np.quantile(inputs.pair_distances(), self.quantile))

    def __call__(self, rows: np.ndarray, distance: np.ndarray) -> np.ndarray:
        return distance <= self.eps * ROUNDING


class Exponential(Decay):
    """Weighs exp(-a d / median(d)), with the median over all training pairs and a of 0 (every weight 1) or more."""

    def __init__(self, a: float = 1.0):
        self.a = check_nonnegative("a", a)

    def fit(self, inputs: Standardised | Tasks) -> None:
        self.median = float(np.median(inputs.pair_distances()))

    def __call__(self, rows: np.ndarray, distance: np.ndarray) -> np.ndarray:
        return np.exp(-self.a * distance / max(self.median, 1e-38))


class Knn(Decay):
    """Weighs 1 where the partner is among the k nearest other rows (ties too) or the row itself, else 0."""

    def __init__(self, k: int = 20):
        self.k = check_count("k", k)

    def fit(self, inputs: Standardised) -> None:
        n = len(inputs.x)
        if self.k >= n:
            raise InputError(f"k must be less than the number of training rows, got k {self.k} for {n} rows")
        self.kth_distance = inputs.kth_distance(self.k)

    def __call__(self, rows: np.ndarray, distance: np.ndarray) -> np.ndarray:
        """Return 1 up to the distance of the first row's k-th neighbour, else 0."""
        return distance <= self.kth_distance[rows] * ROUNDING
