"""Partners with near representations: d(h), Euclidean or cosine, and d(h+y) (Yao et al. 2022, Table 5).

In every step the batch and its candidates are encoded with the current weights, in evaluation mode and without
gradients; then P is built, partners are drawn from it, and the model takes its step.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

from cmixup.backbone import Backbone, evaluating
from cmixup.data import Split
from cmixup.errors import InputError, check_choice, check_count
from cmixup.pairing.base import Pairing
from cmixup.pairing.flat import euclidean, weights_of
from cmixup.sampling.bandwidth import parse_bandwidth
from cmixup.training.batch import Batch, EpochBatches


class RepresentationDistance(Pairing):
    """Draws with P(j|i) ~ exp(-d(h_i, h_j) / (2 bandwidth^2)) over fresh candidates, h the last hidden layer.

    The candidates of a batch are `factor` rows for each of its own, different ones from outside the batch. Where fewer
    lie outside, they are drawn from there with replacement, and a batch of all rows draws from all.

    Args:
        bandwidth: sigma in the unit of sqrt(d), or ("median", c) for sigma^2 of c times the median d between the batch
            and its candidates.
        distance: "euclidean", d = ||h_i - h_j||^2, or "cosine", d = 1 - cos(h_i, h_j).
        labels: compare [h; y], neither of them scaled, instead of h.
        factor: candidates for each row of the batch, 1 or more.
    """

    in_step = True

    def __init__(
        self, bandwidth: float | list | tuple, distance: str = "euclidean", *, labels: bool = False, factor: int = 4
    ):
        super().__init__()
        parsed = parse_bandwidth(bandwidth)
        if isinstance(parsed, tuple) and parsed[0] != "median":
            raise InputError(f'bandwidth must be a number or ("median", c) for representations, got {bandwidth!r}')
        self.bandwidth, self.labels = bandwidth, labels
        self.distance = check_choice("distance", distance, ("euclidean", "cosine"))
        self.factor = check_count("factor", factor, 1)

    def check_model(self, model: nn.Module) -> None:
        if not isinstance(model, Backbone) or type(model).features is Backbone.features:
            name = type(model).__name__
            raise InputError(f"pairing RepresentationDistance needs hidden representations, model {name} has none")

    def fit(self, train: Split) -> None:
        if self.labels:
            self.refuse_gaps(train)
        self._n = len(train)

    def named_draws(self, order: EpochBatches, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Return `candidates: (M, factor)` int64 rows, and `level: (M,)` uniform numbers that choose among them."""
        candidates = []
        for rows in order.batches():
            size, outside = self.factor * len(rows), np.ones(self._n, dtype=bool)
            outside[rows] = False
            free = np.flatnonzero(outside) if outside.any() else np.arange(self._n)
            candidates.append(rng.choice(free, size, replace=len(free) < size).reshape(len(rows), self.factor))
        return {"candidates": np.concatenate(candidates), "level": rng.random(len(order.index))}

    def with_partners(self, model: nn.Module, batch: Batch) -> Batch:
        return choose(batch, batch.rows("candidates", "pairing"), self.weights(model, batch))

    def weights(self, model: nn.Module, batch: Batch) -> Tensor:
        """Return unnormalised P, `(..., B, C)` float64, relative to the nearest candidate of each row."""
        pool = batch.rows("candidates", "pairing")
        rows = batch.y.shape[-2]
        h = encode(model, torch.cat([batch.x, pool.x], dim=batch.y.ndim - 2))
        if self.labels:
            h = torch.cat([h, torch.cat([batch.labels, pool.labels], dim=-2)], dim=-1)  # in their 32 bits
        d = self.distances(h[..., :rows, :], h[..., rows:, :])
        return weights_of(d, self.variance(d))

    def distances(self, h: Tensor, other: Tensor) -> Tensor:
        """Return d between `h: (..., B, D)` and `other: (..., C, D)`, `(..., B, C)` float64."""
        if self.distance == "cosine":
            a, b = normalize(h.double(), dim=-1), normalize(other.double(), dim=-1)
            return (1 - a @ b.mT).clamp_min(0.0)
        return euclidean(h, other).double().square()

    def variance(self, d: Tensor) -> float | Tensor:
        """Return sigma^2, for the median form `(..., 1, 1)` by the finite ones of the distances `d: (..., B, C)`."""
        parsed = parse_bandwidth(self.bandwidth)
        if isinstance(parsed, float):
            return parsed * parsed  # infinite above 1e154, where ** would raise
        finite = torch.where(d.isinf(), torch.nan, d)
        return parsed[1] * finite.flatten(-2).nanmedian(dim=-1).values[..., None, None]


def encode(model: nn.Module, x: Tensor) -> Tensor:
    """Return the last hidden layer `(..., B, D)` in evaluation mode, without gradients; the mode is put back."""
    with evaluating(model):
        return model.features(x)  # type: ignore[operator]


def choose(batch: Batch, pool: Batch, weight: Tensor) -> Batch:
    """Return the batch with partners from `pool`, by its draw `level: (..., B)` and `weight: (..., B, C)`."""
    with torch.no_grad():
        cumulative = weight.cumsum(dim=-1)
        level = batch.draws["level"].unsqueeze(-1) * cumulative[..., -1:]
        chosen = (cumulative <= level).sum(dim=-1).clamp_max(cumulative.shape[-1] - 1)
    return replace(batch, partner=pool.picked(picker(chosen)), candidates=None)


def picker(chosen: Tensor) -> Callable[[Tensor], Tensor]:
    """Return a function that takes the rows `chosen: (..., B)` of `(..., C, *)`, of each model its own."""
    if chosen.ndim == 1:
        return lambda rows: rows[chosen]
    stack = torch.arange(len(chosen), device=chosen.device)[:, None]
    return lambda rows: rows[stack, chosen]
