"""ADA, anchor data augmentation (Schneider, Goshtasbpour and Perez-Cruz 2023, NeurIPS, arXiv 2311.06965).

In every batch, rows are clustered by k-means, and rows and labels move along the line from the mean of their cluster:
`x~ = m + (x - m) / sqrt(gamma)`, labels alike, with one gamma a batch. This is the paper's anchor regression with
one-hot anchors. Gammas are `a - i (a - 1) / n`, i = 0..n-1, and their reciprocals, equally likely; the last partial
batch is left out.

Written from the formulas; the authors' code (NoraSchneider/anchordataaugmentation) has no licence of its own and was
not used. Differences: k-means takes at most `LLOYD_STEPS` steps from one k-means++ start, for all
batches of an epoch at once; where rows are clustered by inputs, too, these and labels are standardised first; at a
hidden layer clusters are still those of labels (and inputs), and the layer is the backbone's own mix point.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from cmixup.backbone import decode_from, encode_to
from cmixup.data import RegressionData, Split
from cmixup.errors import InputError, check_choice, check_count, check_positive
from cmixup.methods.domains import Means
from cmixup.methods.erm import ERM
from cmixup.mixing.linear import in_32_bits
from cmixup.pairing.flat import Standardised
from cmixup.seeding import Streams
from cmixup.training.batch import Batch, EpochBatches

LLOYD_STEPS = 10  # of k-means, at most


class ADA(ERM):
    """Fits rows that are moved towards or away from the mean of their cluster.

    Args:
        clusters: k of k-means, at most the batch size. As many as rows is ERM.
        a: the largest gamma, 1 or more; 1 is ERM.
        n: how many gammas lie between 1 (left out) and `a`.
        layer: "input", "hidden" for the backbone's own mix point, or the name of one.
        by: cluster by "labels" (tables) or "both" inputs and labels (series).
    """

    gaps = False  # every label takes part in how all others change

    def __init__(self, clusters: int = 8, a: float = 2.0, n: int = 10, layer: str = "input", *, by: str = "labels"):
        super().__init__(layer=layer)
        self.clusters, self.n = check_count("clusters", clusters, 1), check_count("n", n, 1)
        self.a = check_positive("a", a)
        if self.a < 1:
            raise InputError(f"a must be 1 or more, got {a!r}")
        self.by = check_choice("by", by, ("labels", "both"))

    def check_batch(self, batch_size: int) -> None:
        if batch_size < self.clusters:
            raise InputError(f"batch_size must be clusters = {self.clusters} or more, got {batch_size}")

    def fit(self, data: RegressionData, model: nn.Module, streams: Streams | None) -> None:
        super().fit(data, model, streams)
        self._labels = data.train.y.double().numpy()
        self._inputs = Standardised(data.train.x) if self.by == "both" else None
        if self._inputs is not None:
            spread = self._labels.std(axis=0)
            self._labels = (self._labels - self._labels.mean(axis=0)) / np.where(spread > 0, spread, 1.0)

    def order(self, train: Split, batch_size: int, streams: Streams, **batching: bool) -> EpochBatches:
        """Return full batches only, where there is one."""
        batching["drop_last"] |= len(train) >= batch_size
        return super().order(train, batch_size, streams, **batching)

    def draw(self, order: EpochBatches, streams: Streams) -> dict[str, np.ndarray]:
        """Return the rows' `cluster: (M,)` int64 in their batch, and `gamma: (M,)` float32, one value a batch."""
        steps = self.a - np.arange(self.n) * (self.a - 1) / self.n
        gamma = streams.lam.choice(np.concatenate([steps, 1 / steps]), size=len(order.sizes))
        cluster = np.empty(len(order.index), dtype=np.int64)
        starts = np.cumsum(order.sizes) - order.sizes
        for size in np.unique(order.sizes):
            places = starts[order.sizes == size][:, None] + np.arange(size)
            points = self._labels[rows := order.index[places]]
            if self._inputs is not None:
                inputs = self._inputs.read(rows.ravel()).double().numpy().reshape(*rows.shape, -1)
                points = np.concatenate([inputs, points], axis=-1)
            cluster[places] = k_means(points, min(self.clusters, int(size)), streams.mixing)
        return {"cluster": cluster, "gamma": np.repeat(gamma, order.sizes).astype(np.float32)}

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        means, gamma = Means(batch.draws["cluster"], batch.y.dtype), batch.draws["gamma"]
        y = move_rows(batch.y, means, gamma)
        state = move_rows(encode_to(model, batch.x, self.point), means, gamma)
        return self.error(decode_from(model, state, self.point), y)


def move_rows(state: Any, means: Means, gamma: Tensor) -> Any:
    """Return `m + (v - m) / sqrt(gamma)`, gamma `(..., B)` and m the means of clusters, for the rows of a state.

    The state is `(..., B, *features)`, or a tuple of such tensors.
    """
    if isinstance(state, tuple):
        return tuple(move_rows(part, means, gamma) for part in state)
    flat = state.flatten(start_dim=gamma.ndim) if state.ndim > gamma.ndim + 1 else state
    with in_32_bits(state.device):
        _, mean = means.centred(promoted := flat.to(gamma.dtype))
        moved = torch.lerp(mean, promoted, gamma.rsqrt().unsqueeze(-1))  # exact at gamma = 1
    return moved.to(state.dtype).reshape(state.shape)


def k_means(points: np.ndarray, k: int, rng: np.random.Generator) -> np.ndarray:
    """Return the clusters `(G, B)` int64 of the points `(G, B, D)` of G batches, each by itself.

    Centres start at k rows, each drawn with a probability in proportion to its squared distance to those drawn before
    (k-means++); a cluster that loses its rows keeps its centre.
    """
    batch, level = np.arange(len(points)), rng.random((k, len(points), 1))
    weight, start = np.ones(points.shape[:2]), np.empty((len(points), k), dtype=np.int64)
    for step in range(k):
        total = weight.cumsum(axis=1)
        start[:, step] = (total <= level[step] * total[:, -1:]).sum(axis=1).clip(max=points.shape[1] - 1)
        squared = np.square(points - points[batch, start[:, step]][:, None]).sum(axis=2)
        weight = squared if step == 0 else np.minimum(weight, squared)
    centres = points[batch[:, None], start]
    cluster = np.full(points.shape[:2], -1)
    for _ in range(LLOYD_STEPS):
        # Squared distances up to the point's own square, which is the same for every centre.
        distance = np.square(centres).sum(axis=2)[:, None, :] - 2 * points @ centres.transpose(0, 2, 1)
        nearest = distance.argmin(axis=2)
        if np.array_equal(nearest, cluster):
            break
        cluster = nearest
        membership = (cluster[:, :, None] == np.arange(k)).astype(points.dtype)
        count = membership.sum(axis=1)[..., None]
        centres = np.where(count > 0, membership.transpose(0, 2, 1) @ points / np.maximum(count, 1), centres)
    return cluster
