"""Groups of the rows of a batch, such as domains and clusters: means over them, and clusters by k-means."""

import numpy as np
import torch
from torch import Tensor

LLOYD_STEPS = 10  # of k-means, at most


class Means:
    """Takes means over the rows of a domain and over the domains of a batch, whatever their ids, sizes and order.

    Args:
        domain: `(..., B)` domain of each row; leading axes are models of a stack.
        dtype: of the values that means are taken of.

    Attributes:
        same_domain: `(..., B, B)` float, 1 where two rows are of one domain.
        domain_size: `(..., B)` rows of each row's domain.
        weight: `(..., B)` 1 / (n_domains * domain_size); `sum_i weight_i v_i` is the mean of the domain means.
        n_domains: `(...)` domains in the batch.
    """

    def __init__(self, domain: Tensor, dtype: torch.dtype = torch.float32):
        self.same_domain = (domain.unsqueeze(-1) == domain.unsqueeze(-2)).to(dtype)
        self.domain_size = self.same_domain.sum(dim=-1)
        self.n_domains = self.domain_size.reciprocal().sum(dim=-1).round()
        self.weight = 1 / (self.domain_size * self.n_domains.unsqueeze(-1))

    def within(self, values: Tensor, weight: Tensor | None = None) -> Tensor:
        """Return for each row the mean over its domain of `values: (..., B)`, weighted by `weight: (..., B)`.

        Where the weights of a domain are all 0 the mean is 0.
        """
        if weight is None:
            return (self.same_domain @ values.unsqueeze(-1)).squeeze(-1) / self.domain_size
        total = self.same_domain @ torch.stack([values * weight, weight], dim=-1)
        return total[..., 0] / total[..., 1].clamp_min(1e-12)

    def centred(self, values: Tensor) -> tuple[Tensor, Tensor]:
        """Return `values: (..., B, D)` minus the mean of their domain, and these means, `(..., B, D)`."""
        mean = self.same_domain @ values / self.domain_size.unsqueeze(-1)
        return values - mean, mean

    def across(self, values: Tensor) -> Tensor:
        """Return the mean over domains of the mean of `values: (..., B)` in each, `(...)`."""
        return (self.weight * values).sum(dim=-1)


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
        away = np.square(points - points[batch, start[:, step]][:, None]).sum(axis=2)
        weight = away if step == 0 else np.minimum(weight, away)
    centres = points[batch[:, None], start]
    cluster = np.full(points.shape[:2], -1)
    for _ in range(LLOYD_STEPS):
        # Squared distances up to the point's own square, which is the same for every centre.
        distance = np.square(centres).sum(axis=2)[:, None, :] - 2 * points @ centres.transpose(0, 2, 1)
        nearest = distance.argmin(axis=2)
        if np.array_equal(nearest, cluster):
            break
        cluster = nearest
        member = (cluster[:, :, None] == np.arange(k)).astype(points.dtype)
        count = member.sum(axis=1)[..., None]
        centres = np.where(count > 0, member.transpose(0, 2, 1) @ points / np.maximum(count, 1), centres)
    return cluster
