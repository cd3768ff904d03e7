"""Partners with near representations among all training rows, which are encoded again every few steps."""

import numpy as np
import torch
from torch import nn

from cmixup.data import Split
from cmixup.errors import InputError, check_count
from cmixup.pairing.flat import weights_of
from cmixup.pairing.representation import RepresentationDistance, choose, encode, picker
from cmixup.training.batch import Batch, EpochBatches
from cmixup.training.training import Training

BLOCK = 1024  # rows encoded at once
MAX_BYTES = 2**31  # of the inputs of all rows


class WholePool(RepresentationDistance):
    """Draws with P(j|i) ~ exp(-d(h_i, h_j) / (2 bandwidth^2)) over all other training rows.

    All rows are encoded at the first step of an epoch and then every `every` steps; between these, representations are
    as old as that. A step costs `B * N` distances, and inputs of all rows stay on the device.

    Args:
        bandwidth: as for `RepresentationDistance`; the median is of d between the batch and all other rows.
        distance: "euclidean" or "cosine".
        labels: compare [h; y], neither of them scaled, instead of h.
        every: steps between two encodings, 1 or more.
    """

    def __init__(
        self, bandwidth: float | list | tuple, distance: str = "euclidean", *, labels: bool = False, every: int = 10
    ):
        super().__init__(bandwidth, distance, labels=labels)
        self.every = check_count("every", every, 1)
        self.encoded = torch.zeros(0)

    def fit(self, train: Split) -> None:
        super().fit(train)
        if len(train) < 2:
            raise InputError(f"pairing WholePool needs 2 training rows or more, got {len(train)}")
        size = train.x[torch.arange(1)].nbytes * len(train)
        if size > MAX_BYTES:
            limit = f"a tensor of {MAX_BYTES / 2**30:g} GiB at most, got {size / 2**30:.1f} GiB of {train.name}"
            raise InputError(f"pairing WholePool keeps the inputs of all rows, {limit}: take pairing representation")

    def begin(self, training: Training) -> None:
        self.pool = training.read("train", np.arange(len(training.data[0].train)))

    def named_draws(self, order: EpochBatches, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Return `level: (M,)` uniform numbers, the rows `row: (M,)`, and `step: (M,)` of the epoch, from 0."""
        step = np.repeat(np.arange(len(order.sizes)), order.sizes)
        return {"level": rng.random(len(order.index)), "row": order.index, "step": step}

    def with_partners(self, model: nn.Module, batch: Batch) -> Batch:
        if int(batch.draws["step"].flatten()[0]) % self.every == 0:
            blocks = torch.split(self.pool.x, BLOCK, dim=self.pool.y.ndim - 2)
            h = torch.cat([encode(model, block) for block in blocks], dim=-2)  # (..., N, D)
            self.encoded = torch.cat([h, self.pool.labels], dim=-1) if self.labels else h
        row = batch.draws["row"]
        d = self.distances(picker(row)(self.encoded), self.encoded)
        d.scatter_(-1, row.unsqueeze(-1), torch.inf)
        return choose(batch, self.pool, weights_of(d, self.variance(d)))
