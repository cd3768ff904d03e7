"""FOMA, first-order manifold augmentation (Kaufman and Azencot 2024, ICML, arXiv 2406.10914).

The rows of a batch and their labels make a matrix `Z = [X, Y]`, or `[h, Y]` at a hidden layer, `Z = U diag(s) V^T`.
One lam ~ Beta(a, a) a batch multiplies some of the singular values, and the network fits the rows that result:
the trailing ones, whose cumulative share of sum(s) is above `rho`, or the leading ones, whose share is `rho` at most.

Written from the formulas; the authors' repository runs batches of rows with near labels on some datasets, and so does
`batches`. Differences: gradients flow through Z and not through its singular vectors, whose derivative is unbounded
where singular values meet; these come from the Gram matrix of the rows in float64; batches of near labels start from
rows drawn without repetition; the original's `both`, inputs and hidden states in one step, is not offered. Labels are
scaled, too, as the paper writes it, where one copy of the original function returns them unscaled.
A share that equals `rho` counts as leading, where the repository asks for one below: that matters with `rho` 1 alone,
with which `leading` shrinks the last direction here, too.
"""

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from cmixup.backbone import decode_from, encode_to
from cmixup.data import RegressionData, Split
from cmixup.errors import check_between, check_choice, check_positive
from cmixup.methods.erm import ERM
from cmixup.mixing.lam import Beta
from cmixup.mixing.linear import in_32_bits
from cmixup.pairing.label import LabelDistance
from cmixup.seeding import Streams
from cmixup.training.batch import Batch, EpochBatches


class FOMA(ERM):
    """Fits rows and labels whose small (or large) directions of variation are shrunk together.

    Args:
        a: lam ~ Beta(a, a), one a batch. lam = 1 is ERM.
        rho: share of the singular values' sum that parts leading from trailing ones, in [0, 1].
        part: which are multiplied, "trailing" or "leading".
        layer: "input", "hidden" for the backbone's own mix point, or the name of one.
        batches: "shuffled"; "neighbours": a row and the rows with the nearest labels; "kernel": a row and rows drawn by
            C-Mixup's kernel.
        bandwidth: of that kernel, see `LabelDistance`.
    """

    gaps = False  # every label takes part in how all others change

    def __init__(
        self, a: float = 1.0, rho: float = 0.95, part: str = "trailing", layer: str = "input", *,
        batches: str = "shuffled", bandwidth: float | str | list = "auto",
    ):  # fmt: skip
        super().__init__(layer=layer)
        self.lam, self.rho = Beta(check_positive("a", a), "batch"), check_between("rho", rho, 0, 1)
        self.part = check_choice("part", part, ("trailing", "leading"))
        self.batches = check_choice("batches", batches, ("shuffled", "neighbours", "kernel"))
        self.near = LabelDistance(bandwidth)

    def fit(self, data: RegressionData, model: nn.Module, streams: Streams | None) -> None:
        super().fit(data, model, streams)
        self._labels = data.train.y.double().numpy()
        if self.batches == "kernel":
            self.near.fit(data.train)

    def order(self, train: Split, batch_size: int, streams: Streams, **batching: bool) -> EpochBatches:
        """Return shuffled batches, or as many batches of near labels, which hold some rows twice and others not."""
        shuffled = super().order(train, batch_size, streams, **batching)
        if self.batches == "shuffled":
            return shuffled
        starts = np.cumsum(shuffled.sizes) - shuffled.sizes
        rows = zip(shuffled.index[starts], shuffled.sizes.tolist(), strict=True)
        return EpochBatches(np.concatenate([self._near_rows(row, size, streams) for row, size in rows]), shuffled.sizes)

    def draw(self, order: EpochBatches, streams: Streams) -> dict[str, np.ndarray]:
        """Return `lam: (M,)` float32, one value a batch."""
        return {"lam": self.lam.draw(order.sizes, streams.lam)}

    def loss(self, model: nn.Module, batch: Batch) -> Tensor:
        state = encode_to(model, batch.x, self.point)
        leaves = state if isinstance(state, tuple) else (state,)
        row_axes = batch.y.ndim - 1  # axes before the features
        parts = [leaf.flatten(start_dim=row_axes) for leaf in (*leaves, batch.y)]
        shrunk = shrink(torch.cat(parts, dim=-1), batch.draws["lam"][..., 0], self.rho, leading=self.part == "leading")
        *flat_leaves, y = torch.split(shrunk, [part.shape[-1] for part in parts], dim=-1)
        new_leaves = tuple(flat.reshape(leaf.shape) for flat, leaf in zip(flat_leaves, leaves, strict=True))
        mixed: Any = new_leaves if isinstance(state, tuple) else new_leaves[0]
        return self.error(decode_from(model, mixed, self.point), y)

    def _near_rows(self, row: int, size: int, streams: Streams) -> np.ndarray:
        """Return `row` and `size - 1` rows with labels near its own."""
        if self.batches == "kernel":
            repeated = EpochBatches(np.full(size - 1, row), np.array([size - 1]))
            return np.concatenate([[row], self.near.draw(repeated, streams.partners)])
        distance = np.square(self._labels - self._labels[row]).sum(axis=1)
        distance[row] = -1.0
        return np.argpartition(distance, size - 1)[:size] if size < len(distance) else np.arange(len(distance))


def shrink(z: Tensor, lam: Tensor, rho: float, *, leading: bool) -> Tensor:
    """Return `U diag(m s) V^T` for `z = U diag(s) V^T` `(..., B, D)`; m is lam `(...)` for the values chosen, else 1.

    Chosen are the trailing values, whose cumulative share of sum(s), from the largest on, is above rho, or the others.
    """
    with torch.no_grad():
        z64 = z.detach().double()
        square, u = torch.linalg.eigh(z64 @ z64.mT)  # ascending
        s, u = square.clamp_min(0).sqrt().flip(-1), u.flip(-1)
        share = s.cumsum(dim=-1) / s.sum(dim=-1, keepdim=True).clamp_min(torch.finfo(s.dtype).tiny)
        share = share.clamp_max(1.0)  # two sums round differently, and rho = 1 chooses no trailing value
        chosen = share <= rho if leading else share > rho
        change = torch.where(chosen, lam.double().unsqueeze(-1) - 1, 0.0)
        projection = ((u * change.unsqueeze(-2)) @ u.mT).to(z.dtype)
    with in_32_bits(z.device):
        return z + projection @ z
