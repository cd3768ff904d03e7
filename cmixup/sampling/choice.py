"""Which algorithm draws: by dimension, a pilot, size and memory."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from cmixup.errors import InputError
from cmixup.sampling import kd, rejection, sparse
from cmixup.sampling.cdf import CdfRows
from cmixup.sampling.cells import Cells
from cmixup.sampling.dense import Dense
from cmixup.sampling.inputs import Floats, Ints
from cmixup.sampling.kernels import Kernel
from cmixup.sampling.stream import Rows

METHODS = ("auto", "cells", "uniform", "kd", "cdf", "sparse", "rows", "dense")
#: Lets Electricity (15,591 x 321) keep its cumulative rows, 0.97 GB.
DEFAULT_BUDGET = 1 << 30

UNIFORM_ACCEPTS = 0.05
KD_DIMENSIONS, KD_ACCEPTS = 16, 0.01
SPARSE_ACCEPTS = 0.1


class Method(Protocol):
    """What a sampling algorithm offers; all of them draw from the same distribution."""

    @property
    def name(self) -> str:
        """One of `METHODS`."""

    @property
    def nbytes(self) -> int:
        """Bytes held beside the labels."""

    def draw(self, anchors: Ints, rng: np.random.Generator) -> Ints:
        """Partners (B,) of anchors (B,) in the data."""

    def draw_points(self, points: Floats, rng: np.random.Generator) -> Ints:
        """Partners (B,) of labels (B,) or (B, d) outside the data."""


def choose(labels: Any, kernel: Kernel, method: str, budget: int) -> tuple[Method, str]:
    """Build the algorithm called `method`, or with "auto" the one that suits, and say why.

    Raises:
        InputError: the method asked for does not take these labels, or not within the budget.
    """
    if method == "auto":
        return _suited(labels, kernel, budget)
    if method == "cells" and labels.ndim == 2:
        raise InputError(f"method 'cells' needs one-dimensional labels, got shape {tuple(labels.shape)}")
    if method in ("uniform", "rows"):
        plain: dict[str, Any] = {"uniform": rejection.UniformRejection, "rows": Rows}
        return plain[method](labels, kernel), "as asked"
    stored: dict[str, Any] = {
        "cells": Cells,
        "kd": kd.KDCells,
        "cdf": CdfRows,
        "sparse": sparse.SparseRows,
        "dense": Dense,
    }
    return stored[method](labels, kernel, budget), "as asked"


def _suited(labels: Any, kernel: Kernel, budget: int) -> tuple[Method, str]:
    if labels.ndim == 1:
        return Cells(labels, kernel, budget), "one-dimensional labels"
    n, d = labels.shape
    accepted = rejection.pilot(labels, kernel)
    if accepted >= UNIFORM_ACCEPTS:
        return rejection.UniformRejection(labels, kernel), f"uniform proposals are accepted at {accepted:.2g}"
    if d <= KD_DIMENSIONS and kd.bytes_needed(labels) <= budget:
        leaves = kd.KDCells(labels, kernel, budget)
        accepted = leaves.pilot()
        if accepted >= KD_ACCEPTS:
            return leaves, f"{d} dimensions, proposals are accepted at {accepted:.2g}"
    if 4 * n * n <= budget:
        return CdfRows(labels, kernel, budget), f"{4 * n * n} bytes of rows fit the budget"
    accepted = sparse.pilot(labels, kernel, budget)
    if accepted >= SPARSE_ACCEPTS:
        return sparse.SparseRows(labels, kernel, budget), f"stored partners hold {accepted:.2g} of the envelope"
    return Rows(labels, kernel), "no table fits the budget"
