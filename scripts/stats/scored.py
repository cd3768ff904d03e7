"""Predictions of a split beside their targets: what scores are computed from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Scored:
    """What the scores of one split are computed from.

    Attributes:
        prediction: `(N, d_y)` float32 by the predictor's name; "" is the method's own.
        target: `(N, d_y)` float32.
        domain: `(N,)` integers.
    """

    prediction: Mapping[str, np.ndarray]
    target: np.ndarray
    domain: np.ndarray


Parts = Mapping[str, Scored]  # by split


def smallest_type(values: np.ndarray) -> np.ndarray:
    """Return whole numbers in the smallest type that holds them."""
    ends = (values.min(), values.max()) if len(values) else (0, 0)
    return values.astype(np.result_type(*map(np.min_scalar_type, ends)))
