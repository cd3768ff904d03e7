"""The choice of the sampling algorithm by dimension, size, memory and the acceptance of a pilot."""

from __future__ import annotations

from cmixup.errors import InputError
from cmixup.sampling import kd, rejection, sparse
from cmixup.sampling.cdf import CdfRows
from cmixup.sampling.cells import Cells
from cmixup.sampling.inputs import Labels
from cmixup.sampling.kernels import Kernel
from cmixup.sampling.stream import SamplingAlgorithm, StreamedSampler

ALGORITHMS = ("auto", "cells", "uniform", "kd", "cdf", "sparse", "rows")
#: 1 GiB: lets Electricity (15,591 x 321) keep its cumulative rows, 0.97 GB.
DEFAULT_BUDGET_BYTES = 1 << 30

# "auto" takes an algorithm only if a pilot accepts this fraction of its proposals.
MIN_UNIFORM_ACCEPTANCE, MIN_KD_ACCEPTANCE, MIN_SPARSE_ACCEPTANCE = 0.05, 0.01, 0.1
MAX_KD_DIMENSIONS = 16


def choose(
    labels: Labels, kernel: Kernel, name: str, budget: int, *, slots_alone: bool = False
) -> tuple[SamplingAlgorithm, str]:
    """Build a sampling algorithm.

    Args:
        labels: (N,) or (N, d) float32 or float64.
        kernel: the kernel that gives the weights.
        name: one of `ALGORITHMS`; "auto" takes the one that suits.
        budget: bytes that tables may take beside the labels.
        slots_alone: leave out algorithms that have no form on a device, "cdf" and "sparse", of what "auto" takes.

    Returns:
        The algorithm, and the reason for it in words.

    Raises:
        InputError: the algorithm asked for does not take these labels, or not within the budget.
    """
    if name == "auto":
        return _suited(labels, kernel, budget, slots_alone)
    return _asked(labels, kernel, name, budget), "as asked"


def _asked(labels: Labels, kernel: Kernel, name: str, budget: int) -> SamplingAlgorithm:
    if name == "cells" and labels.ndim == 2:
        raise InputError(f"method 'cells' needs one-dimensional labels, got shape {tuple(labels.shape)}")
    if name == "uniform":
        return rejection.UniformRejection(labels, kernel)
    if name == "rows":
        return StreamedSampler(labels, kernel)
    tabulated: dict[str, type[Cells | kd.KDCells | CdfRows | sparse.SparseRows]] = {
        "cells": Cells,
        "kd": kd.KDCells,
        "cdf": CdfRows,
        "sparse": sparse.SparseRows,
    }
    return tabulated[name](labels, kernel, budget)


def _suited(labels: Labels, kernel: Kernel, budget: int, slots_alone: bool) -> tuple[SamplingAlgorithm, str]:
    if labels.ndim == 1:
        return Cells(labels, kernel, budget), "one-dimensional labels"
    n, d = labels.shape
    accepted = rejection.pilot(labels, kernel)
    if accepted >= MIN_UNIFORM_ACCEPTANCE:
        return rejection.UniformRejection(labels, kernel), f"uniform proposals are accepted at {accepted:.2g}"
    if d <= MAX_KD_DIMENSIONS and kd.bytes_needed(labels) <= budget:
        leaves = kd.KDCells(labels, kernel, budget)
        accepted = leaves.pilot()
        if accepted >= MIN_KD_ACCEPTANCE:
            return leaves, f"{d} dimensions, proposals are accepted at {accepted:.2g}"
    if 4 * n * n <= budget and not slots_alone:
        return CdfRows(labels, kernel, budget), f"{4 * n * n} bytes of rows fit the budget"
    if not slots_alone and (accepted := sparse.pilot(labels, kernel, budget)) >= MIN_SPARSE_ACCEPTANCE:
        return sparse.SparseRows(labels, kernel, budget), f"stored partners hold {accepted:.2g} of the envelope"
    return StreamedSampler(labels, kernel), "no table fits the budget"
