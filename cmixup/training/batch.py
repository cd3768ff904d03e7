"""Which rows make which batch, the rows of a step on the device, and the draws that the library itself reads.

A method draws for an epoch of M rows by name (`Method.draw`). These names have a meaning; any other is free for the
part that draws it:

    partner, other_partner   (M,) int64     training row that each row is mixed with, and a second one; see `Batch`
    candidates               (M, f) int64   training rows, from which the pairing chooses partners in the step
    view, partner_view, other_partner_view
                             (M,) int64     view of each of these rows where inputs are `Sampled`; the trainer draws it
    lam, other_lam           (M,) float32   weight of a row beside its partner, and beside its other partner
    layer                    (M,) int64     place of the mix point in the method's `layers`, one a batch
    weight                   (M,) float32   weight of a row in the loss
    seed                     (M,) int64     seed of `Batch.rng`, one a batch; see `step_seeds`
    pair                     (M, Q) int64   support example that each of a task's Q queries is mixed with

On tasks `lam` and `weight` are (M, Q).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from torch import Tensor, nn

from cmixup.errors import InputError, check_count
from cmixup.seeding import StepRandom


@dataclass(frozen=True)
class EpochBatches:
    """The rows of one epoch, batch after batch."""

    index: np.ndarray  #: `(M,)` int64 rows of the training split, in the order they are used
    sizes: np.ndarray  #: `(n_batches,)` int64 batch sizes; they sum to M

    def batches(self) -> Iterator[np.ndarray]:
        """Yield the rows of each batch in turn (for pairings inside a batch)."""
        yield from np.split(self.index, np.cumsum(self.sizes)[:-1])


def shuffled(n: int, batch_size: int, rng: np.random.Generator | None, *, drop_last: bool = False) -> EpochBatches:
    """Return an epoch with each of `n` rows once, in random order, or without `rng` in their own.

    `drop_last` leaves out a smaller last batch.
    """
    sizes = _sizes(n, batch_size, drop_last)
    rows = np.arange(n) if rng is None else rng.permutation(n)
    return EpochBatches(rows[: sizes.sum()], sizes)


def domain_batches(domain: np.ndarray, groups: int, rows: int, rng: np.random.Generator) -> EpochBatches:
    """Return batches of `groups` different domains with as many rows of each, domain after domain (WILDS GroupSampler).

    Domains `domain: (N,)` are drawn uniformly, whatever their size, and their order in the batch is random. Rows of one
    are drawn without replacement, or with it where it has no more than `rows`. An epoch is floor(N / (groups * rows))
    batches, at least one.
    """
    _, counts = np.unique(domain, return_counts=True)
    if groups > len(counts):
        raise InputError(f"groups must be at most the number of training domains, got {groups} for {len(counts)}")
    n_batches = len(domain) // (groups * rows)
    if n_batches == 0:
        raise InputError(f"a batch of {groups} domains x {rows} rows is larger than the {len(domain)} training rows")
    chosen = rng.random((n_batches, len(counts))).argsort(axis=1)[:, :groups].ravel()
    n = counts[chosen]
    unique, repeats = without_replacement(np.maximum(n, rows), rows, rng), rng.integers(n[:, None], size=(len(n), rows))
    place = np.where((n > rows)[:, None], unique, repeats)
    by_domain, starts = np.argsort(domain, kind="stable"), np.cumsum(counts) - counts
    index = by_domain[starts[chosen][:, None] + place].ravel()
    return EpochBatches(index, np.full(n_batches, groups * rows, dtype=np.int64))


def domain_balanced(
    domain: np.ndarray, batch_size: int, rng: np.random.Generator, *, drop_last: bool = False
) -> EpochBatches:
    """Return N rows drawn with replacement, each of the domains `domain: (N,)` with equal probability.

    The weight of a row is 1/n_e, as in the sampler that WILDS uses for GroupDRO; batches are those of `shuffled`.
    """
    sizes = _sizes(len(domain), batch_size, drop_last)
    _, counts = np.unique(domain, return_counts=True)
    chosen = rng.integers(len(counts), size=sizes.sum())
    by_domain, starts = np.argsort(domain, kind="stable"), np.cumsum(counts) - counts
    return EpochBatches(by_domain[starts[chosen] + rng.integers(counts[chosen])], sizes)


def without_replacement(n: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    """Return `(M, k)` int64: for each of `n: (M,)`, k distinct numbers below it, uniformly and in random order.

    Floyd's algorithm: k draws a row, however large n is. Every n must be k or more.
    """
    chosen = np.empty((len(n), k), dtype=np.int64)
    for i in range(k):
        last = n - k + i
        drawn = rng.integers(last + 1)
        taken = (chosen[:, :i] == drawn[:, None]).any(axis=1)
        chosen[:, i] = np.where(taken, last, drawn)
    return rng.permuted(chosen, axis=1)


def _sizes(n: int, batch_size: int, drop_last: bool) -> np.ndarray:
    check_count("batch_size", batch_size, 1)
    if drop_last and n < batch_size:
        raise InputError(f"batch_size {batch_size} is larger than the {n} training rows, and drop_last leaves none")
    full, rest = divmod(n, batch_size)
    sizes = [batch_size] * full + ([rest] if rest and not drop_last else [])
    return np.asarray(sizes, dtype=np.int64)


# A function from a model (or a stack of models) and inputs to predictions `(..., B, d_y)`.
PredictFn = Callable[[nn.Module, Any], Tensor]

# Draws of rows to read, by their name in `Batch`.
DRAWN_ROWS = {"partner": "partner", "other": "other_partner", "candidates": "candidates"}
# Draws that the trainer uses up, so that they are not among those of a `Batch`.
GATHER_KEYS = (*DRAWN_ROWS.values(), "seed", "view", "partner_view", "other_partner_view")


@dataclass(frozen=True)
class Batch:
    """Rows of the training split on the device; `(B, ...)`, or `(E, B, ...)` for a stack of E models."""

    x: Tensor  #: inputs; those of tasks are a `cmixup.data.Episode`
    y: Tensor  #: labels as the loss sees them (`train.label_scaling`)
    domain: Tensor  #: `(..., B)` int64
    partner: "Batch | None" = None  #: the rows that the draw `partner` points to
    #: Other draws of the method, each `(..., B)`, or `(..., B, n)` for n numbers a row.
    draws: Mapping[str, Tensor] = field(default_factory=dict)
    other: "Batch | None" = None  #: the rows that the draw `other_partner` points to
    candidates: "Batch | None" = None  #: those of the draw `candidates`, `(..., C, ...)` for the whole batch
    rng: StepRandom | None = None  #: numbers of a shape that only the step knows, where the method drew a `seed`
    labels: Tensor = None  # type: ignore[assignment]  #: in their own unit, which pairings compare; else `y`

    def __post_init__(self) -> None:
        if self.labels is None:
            object.__setattr__(self, "labels", self.y)

    def rows(self, name: str, part: str) -> "Batch":
        """Return `partner`, `other` or `candidates`, or raise `InputError` that a part of the method has none."""
        rows: Batch | None = getattr(self, name)
        if rows is None:
            raise InputError(f"{part} needs the rows of the draw {DRAWN_ROWS[name]!r}, and the batch has none")
        return rows

    def picked(self, pick: Callable[[Tensor], Tensor]) -> "Batch":
        """Return the rows that `pick` takes of inputs, labels and domains, without partners and draws."""
        return Batch(pick(self.x), pick(self.y), pick(self.domain), labels=pick(self.labels))


def step_seeds(sizes: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the draw `seed` of an epoch with batches of `sizes`, `(M,)` int64."""
    return np.repeat(rng.integers(2**63, size=len(sizes)), sizes)
