"""The choice of the sampling algorithm: by the seconds that each is expected to take for a whole training.

A training draws a partner for every row in each epoch, so a set-up is spread over `EPOCHS`. Algorithms of accept/reject
are tried on a pilot: a mean acceptance does not tell their cost, because rows in the tails are refused for
`round_limit` rounds and then read all labels.
"""

from collections.abc import Callable

import numpy as np

from cmixup.errors import InputError
from cmixup.sampling.cells import Cells, KDCells, bytes_needed, n_leaves
from cmixup.sampling.distance import Kernel
from cmixup.sampling.inputs import Ints, Labels, has_gaps
from cmixup.sampling.stored_rows import SparseRows, n_stored
from cmixup.sampling.stream import Round, SamplingAlgorithm, StreamedSampler, UniformRejection, round_limit

ALGORITHMS = ("auto", "cells", "uniform", "kd", "sparse", "rows")
#: 1 GiB: lets 11,500 rows keep their cumulative rows whole.
DEFAULT_BUDGET_BYTES = 1 << 30
#: The epochs of a training, over which the set-up of an algorithm is spread.
EPOCHS = 100

MAX_KD_DIMENSIONS = 16
# A pilot begins with so many rows. From the ninth round on it keeps so many of those that are refused, and weighs them
# for all: rare rows in the tails can cost more than all others.
PILOT_ROWS, PILOT_KEPT, WHOLE_ROUNDS = 1 << 14, 512, 8
# Seconds on one core, whose ratios alone decide: of a round, a proposal in it, and a coordinate of that.
SECONDS_A_ROUND, SECONDS_A_PROPOSAL, SECONDS_A_COORDINATE = 15e-6, 60e-9, 10e-9
KD_SECONDS_A_SLOT, KD_SECONDS_A_ROW, KD_SECONDS_A_PROPOSAL = 0.17e-6, 2e-6, 90e-9
SPARSE_SECONDS_A_PAIR, SPARSE_SECONDS_A_DRAW = 27e-9, 250e-9
#: Tables of all pairs have to be faster by this factor than algorithms that need less memory.
PREFERRED = 1.4


def choose(labels: Labels, kernel: Kernel, name: str, budget: int) -> tuple[SamplingAlgorithm, str]:
    """Return the sampling algorithm `name`, "auto" for the one that is expected to cost least, and the reason in words.

    Its tables take at most `budget` bytes.
    """
    if name != "auto":
        return _build(labels, kernel, name, budget), "as given"
    if labels.ndim == 1:
        return Cells(labels, kernel, budget), "one-dimensional labels"
    return _cheapest(labels, kernel, budget)


def _build(labels: Labels, kernel: Kernel, name: str, budget: int) -> SamplingAlgorithm:
    if name == "kd" and has_gaps(labels):
        raise InputError("method must be auto, uniform, sparse or rows for labels with gaps (NaN), got 'kd'")
    if name == "cells" and labels.ndim == 2:
        raise InputError(f"method 'cells' needs one-dimensional labels, got shape {tuple(labels.shape)}")
    if name in ("uniform", "rows"):
        return (UniformRejection if name == "uniform" else StreamedSampler)(labels, kernel)
    tables: dict[str, type[Cells | KDCells | SparseRows]] = {"cells": Cells, "kd": KDCells, "sparse": SparseRows}
    return tables[name](labels, kernel, budget)


def _cheapest(labels: Labels, kernel: Kernel, budget: int) -> tuple[SamplingAlgorithm, str]:
    """Return the algorithm that is expected to cost least.

    Tables are built and tried only where they would be cheaper if no proposal were refused.
    """
    n, d = labels.shape
    row_seconds = n * (23e-9 if d <= 3 else 12e-9 + 0.1e-9 * d)  # reading all labels: differences, or a matrix product
    coordinates = SECONDS_A_COORDINATE * d
    uniform = UniformRejection(labels, kernel)
    costs = {
        "rows": EPOCHS * n * row_seconds,
        "uniform": expected_seconds(labels, uniform.propose, SECONDS_A_PROPOSAL + coordinates, row_seconds),
    }
    tables: list[tuple[type[KDCells | SparseRows], float, float]] = []  # and the seconds of set-up and proposal
    if d <= MAX_KD_DIMENSIONS and bytes_needed(labels) <= budget and not has_gaps(labels):
        setup = KD_SECONDS_A_SLOT * n_leaves(n) ** 2 + KD_SECONDS_A_ROW * n
        tables.append((KDCells, setup, KD_SECONDS_A_PROPOSAL + coordinates))
    if n_stored(n, budget) > 0:
        tables.append((SparseRows, PREFERRED * SPARSE_SECONDS_A_PAIR * n * n, PREFERRED * SPARSE_SECONDS_A_DRAW))
    built: dict[str, SamplingAlgorithm] = {"uniform": uniform}
    for algorithm, setup, proposal_seconds in tables:
        if setup + EPOCHS * n * proposal_seconds < min(costs.values()):
            table = built[algorithm.name] = algorithm(labels, kernel, budget)
            costs[algorithm.name] = setup + expected_seconds(labels, table.propose, proposal_seconds, row_seconds)
    name = min(costs, key=costs.__getitem__)
    reason = f"{EPOCHS} epochs are expected to take {costs[name]:.2g} s, the least of {', '.join(sorted(costs))}"
    return built.get(name) or _build(labels, kernel, name, budget), reason


def expected_seconds(
    labels: Labels, propose: Callable[[Ints, np.random.Generator], Round], proposal_seconds: float, row_seconds: float
) -> float:
    """Return the seconds that accept/reject takes for `EPOCHS` epochs, by playing a pilot to its end.

    A round costs `proposal_seconds` a row, and an anchor that every round refused `row_seconds`, its exact row.
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
    return EPOCHS * (proposals * proposal_seconds + rounds * SECONDS_A_ROUND + weight * len(rows) * row_seconds)
