"""The choice of the sampling algorithm: by the seconds that each is expected to take for a whole training.

A training draws a partner for every row in each epoch, so a set-up is spread over `EPOCHS`. Algorithms of accept/reject
are tried on a pilot: a mean acceptance does not tell their cost, because rows in the tails are refused for
`round_limit` rounds and then read all labels.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from cmixup.errors import InputError
from cmixup.sampling import kd, rejection, sparse
from cmixup.sampling.cdf import CdfRows
from cmixup.sampling.cells import Cells
from cmixup.sampling.inputs import Ints, Labels, has_gaps
from cmixup.sampling.kernels import Kernel
from cmixup.sampling.rejection import SECONDS_A_COORDINATE, SECONDS_A_PROPOSAL, SECONDS_A_ROUND
from cmixup.sampling.stream import SamplingAlgorithm, StreamedSampler, round_limit

ALGORITHMS = ("auto", "cells", "uniform", "kd", "cdf", "sparse", "rows")
#: 1 GiB: lets Electricity (15,591 x 321) keep its cumulative rows, 0.97 GB.
DEFAULT_BUDGET_BYTES = 1 << 30
#: The epochs of a training, over which the set-up of an algorithm is spread.
EPOCHS = 100

MAX_KD_DIMENSIONS = 16
# A pilot begins with so many rows. From the ninth round on it keeps so many of those that are refused, and weighs them
# for all: rare rows in the tails can cost more than all others.
PILOT_ROWS, PILOT_KEPT, WHOLE_ROUNDS = 1 << 14, 512, 8
# Seconds on one core, of which only the ratios decide.
KD_SECONDS_A_SLOT, KD_SECONDS_A_ROW, KD_SECONDS_A_PROPOSAL = 0.17e-6, 2e-6, 90e-9
CDF_SECONDS_A_PAIR, CDF_SECONDS_A_DRAW, SPARSE_SECONDS_A_PAIR = 20e-9, 250e-9, 27e-9
#: Tables of all pairs have to be faster by this factor than what needs less memory.
PREFERRED = 1.4

#: One round for rows (B,): the partners proposed, and whether each is refused.
Propose = Callable[[Ints, np.random.Generator], tuple[Ints, NDArray[np.bool_]]]


def choose(labels: Labels, kernel: Kernel, name: str, budget: int) -> tuple[SamplingAlgorithm, str]:
    """Build a sampling algorithm.

    Args:
        labels: (N,) or (N, d) float32 or float64.
        kernel: the kernel that gives the weights.
        name: one of `ALGORITHMS`; "auto" takes the one whose training is expected to cost least.
        budget: bytes that tables may take beside the labels.

    Returns:
        The algorithm, and the reason for it in words.

    Raises:
        InputError: the algorithm asked for does not take these labels, or not within the budget.
    """
    if name != "auto":
        return _build(labels, kernel, name, budget), "as given"
    if labels.ndim == 1:
        return Cells(labels, kernel, budget), "one-dimensional labels"
    return _cheapest(labels, kernel, budget)


def _build(labels: Labels, kernel: Kernel, name: str, budget: int) -> SamplingAlgorithm:
    if name in ("kd", "sparse") and has_gaps(labels):
        raise InputError(f"method must be auto, uniform, cdf or rows for labels with gaps (NaN), got {name!r}")
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


def _cheapest(labels: Labels, kernel: Kernel, budget: int) -> tuple[SamplingAlgorithm, str]:
    """Return the algorithm that is expected to cost least; leaves are built only where their set-up is cheaper."""
    n, d = labels.shape
    an_epoch = EPOCHS * n
    a_row = n * (23e-9 if d <= 3 else 12e-9 + 0.1e-9 * d)  # reading all labels: differences, or a matrix product
    coordinates = SECONDS_A_COORDINATE * d
    uniform = rejection.UniformRejection(labels, kernel)
    costs = {
        "rows": an_epoch * a_row,
        "uniform": expected_seconds(labels, uniform.propose, SECONDS_A_PROPOSAL + coordinates, a_row),
    }
    if 4 * n * n <= budget:
        costs["cdf"] = PREFERRED * (CDF_SECONDS_A_PAIR * n * n + CDF_SECONDS_A_DRAW * an_epoch)
    elif not has_gaps(labels) and SPARSE_SECONDS_A_PAIR * n * n < min(costs.values()):
        accepted = max(sparse.pilot(labels, kernel, budget), 1e-9)
        draw = min(CDF_SECONDS_A_DRAW / accepted, a_row)
        costs["sparse"] = PREFERRED * (SPARSE_SECONDS_A_PAIR * n * n + an_epoch * draw)
    leaves: SamplingAlgorithm | None = None
    setup = KD_SECONDS_A_SLOT * kd.n_leaves(n) ** 2 + KD_SECONDS_A_ROW * n
    a_proposal = KD_SECONDS_A_PROPOSAL + coordinates
    fits = d <= MAX_KD_DIMENSIONS and kd.bytes_needed(labels) <= budget and not has_gaps(labels)
    if fits and setup + an_epoch * a_proposal < min(costs.values()):
        leaves = kd.KDCells(labels, kernel, budget)
        costs["kd"] = setup + expected_seconds(labels, leaves.propose, a_proposal, a_row)
    name = min(costs, key=costs.__getitem__)
    built = leaves if name == "kd" and leaves else _build(labels, kernel, name, budget)
    return built, f"{EPOCHS} epochs are expected to take {costs[name]:.2g} s, the least of {', '.join(sorted(costs))}"


def expected_seconds(labels: Labels, propose: Propose, a_proposal: float, a_row: float) -> float:
    """Return the seconds that accept/reject takes for `EPOCHS` epochs, by playing a pilot to its end.

    Args:
        labels: (N, d) labels.
        propose: one round of the algorithm.
        a_proposal: seconds of one proposal.
        a_row: seconds of an exact row, which an anchor takes that every round refused.
    """
    rng = np.random.default_rng(0)  # fixed: the algorithm chosen must not vary
    n = len(labels)
    rows = np.arange(n) if n <= PILOT_ROWS else rng.choice(n, size=PILOT_ROWS, replace=False)
    weight = n / len(rows)  # the rows of an epoch for which each of the pilot stands
    proposals, rounds = 0.0, 0.0
    for number in range(round_limit(labels)):
        if not len(rows):
            break
        proposals += weight * len(rows)
        rounds += min(1.0, weight * len(rows))
        rows = rows[propose(rows, rng)[1]]
        if number >= WHOLE_ROUNDS and len(rows) > PILOT_KEPT:
            weight *= len(rows) / PILOT_KEPT
            rows = rng.choice(rows, size=PILOT_KEPT, replace=False)
    return EPOCHS * (proposals * a_proposal + rounds * SECONDS_A_ROUND + weight * len(rows) * a_row)
