"""PuzzleMix (Kim, Choo and Song 2020, arXiv 2009.06962; snu-mllab/PuzzleMix mixup.py, main.py).

Both images of a pair are cut into n x n blocks. A graph cut gives each block the image that is more salient there, with
neighbours alike and a share of lambda in all; then each image moves its salient blocks into its own part of the mask.
The label weight is the mask's mean.

Differences from the original: labels are regression targets, mixed as values. The saliency is the gradient of the
prediction (summed over label dimensions), which is defined where the residual is 0. For one label the squared error's
is a multiple of it, and maps are divided by their sums. Partners are any training rows, so both images get a saliency
of their own. The cut is the global minimum of the original's energy for every number of levels,
where its alpha-beta swaps find a local one. Block counts are divisors of the image's size, and any number of channels
goes. Whole blocks are moved, as the original's code does by default; its commands for CIFAR move tiles of 4 pixels
(`--t_size 4`). Borders are compared on inputs as they are, where the original undoes the standardisation first, so that
its pixels lie in [0, 1]: on standardised images (PovertyMap) `gamma` counts for more here, by one over their standard
deviation. A block that no block is moved to keeps its content instead of turning black. There is no adversarial part.
"""

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import avg_pool2d

from cmixup.data import Split
from cmixup.errors import InputError, check_count, check_nonnegative
from cmixup.mixing.base import Loss, Mixing
from cmixup.mixing.linear import mix
from cmixup.seeding import Streams
from cmixup.training.batch import Batch, EpochBatches
from cmixup.training.model_stack import ModelStack

EPS = 1e-12  # added to saliency maps, so that a flat one can be divided by its sum
PRIOR_EPS = 1e-8  # added to probabilities whose logarithm is taken; the original's
CAPACITY = 2**28  # of all edges between a grid and the source or the sink, together; flows are int32
FORBIDDEN = 2**29  # more than any flow through a grid


class PuzzleMix(Mixing):
    """Mixes images block by block, with masks by graph cut on saliency.

    Each batch draws one of the block counts n: the divisors of the images' sides nearest to 2, 4, 8 and 16, and not
    above. Borders are compared on images averaged over 4 pixels a side, 2 for images with a side below 64, or over the
    largest divisor of the block's side below that.

    Args:
        levels: m, values that a block's weight can have, evenly spaced from 0 to 1; 2 or more.
        beta: of how much neighbours with different weights cost.
        gamma: of how much more they cost where the images would not fit together at the border.
        eta: of how much weights cost that are unlikely under Binomial(m - 1, lam) / (m - 1).
        transport: whether salient blocks move into their image's part of the mask.
        t_eps: of the cost of moving a block, by its squared distance.
    """

    images = True
    inputs = True

    def __init__(
        self, levels: int = 3, *, beta: float = 1.2, gamma: float = 0.5, eta: float = 0.2, transport: bool = True,
        t_eps: float = 0.8,
    ):  # fmt: skip
        super().__init__()
        self.levels = check_count("levels", levels, 2)
        self.beta, self.gamma = check_nonnegative("beta", beta), check_nonnegative("gamma", gamma)
        self.eta, self.t_eps = check_nonnegative("eta", eta), check_nonnegative("t_eps", t_eps)
        self.transport = transport

    def fit(self, train: Split, model: nn.Module, streams: Streams | None) -> None:
        height, width = train.x[torch.tensor([0])].shape[-2:]
        self.block_counts(height, width)

    def block_counts(self, height: int, width: int) -> list[int]:
        """Return the block counts n that batches of `height x width` images draw from, or raise `InputError`."""
        common = math.gcd(height, width)
        counts = sorted({_divisor(common, most) for most in (2, 4, 8, 16)} - {1})
        if not counts:
            raise InputError(f"PuzzleMix needs images whose sides share a divisor from 2 to 16, got {height} x {width}")
        return counts

    def draw(self, order: EpochBatches, rng: np.random.Generator) -> dict[str, np.ndarray]:
        """Return `blocks: (M,)` float32 in [0, 1), one number a batch: which of the block counts it gets."""
        return {"blocks": np.repeat(rng.random(len(order.sizes), dtype=np.float32), order.sizes)}

    def step(self, loss: Loss, stack: ModelStack, batch: Batch) -> Tensor:
        """Add the saliency of both images of each pair to the draws, then take a step."""
        lead, partner = batch.draws["lam"].ndim, batch.rows("partner", "mixing PuzzleMix")
        maps = saliency(stack.model, torch.cat([batch.x, partner.x], dim=lead - 1), lead, batch.y.shape[-1])
        first, second = maps.chunk(2, dim=lead - 1)
        draws = {**batch.draws, "saliency": first, "partner_saliency": second}
        return super().step(loss, stack, replace(batch, draws=draws))

    def forward(self, first: Any, second: Any, draws: Mapping[str, Tensor]) -> tuple[Any, Tensor]:
        """Return images `(..., B, C, H, W)` mixed block by block, and the masks' means `(..., B)`."""
        if "saliency" not in draws:
            raise InputError("mixing PuzzleMix looks at gradients before it mixes, and this method does not let it")
        lam, (height, width) = draws["lam"], first.shape[-2:]
        pair = torch.stack([image.reshape(lam.numel(), -1, height, width) for image in (first, second)])
        maps = torch.stack([draws[name].reshape(-1, height, width) for name in ("saliency", "partner_saliency")])
        counts = self.block_counts(height, width)
        chosen = (draws["blocks"].reshape(-1) * len(counts)).long().clamp(max=len(counts) - 1)
        mixed, weight = torch.empty_like(pair[0]), torch.empty_like(lam.reshape(-1))
        for k in sorted(set(chosen.tolist())):  # several where runs of a stack drew different ones
            rows = torch.nonzero(chosen == k).flatten()
            mixed[rows], mask = self.puzzle(pair[:, rows], maps[:, rows], lam.reshape(-1)[rows], counts[k])
            weight[rows] = mask.mean(dim=(1, 2))
        return mixed.reshape(first.shape), weight.reshape(lam.shape)

    def puzzle(self, pair: Tensor, maps: Tensor, lam: Tensor, n: int) -> tuple[Tensor, Tensor]:
        """Return images `(N, C, H, W)` mixed in n x n blocks, and the first ones' weights `(N, n, n)`.

        `pair: (2, N, C, H, W)` are first and second images, whose sides n divides, and `maps: (2, N, H, W)` their
        saliency; `lam: (N,)`.
        """
        salient = avg_pool2d(maps, (maps.shape[-2] // n, maps.shape[-1] // n)) + EPS
        salient = salient / salient.sum(dim=(-2, -1), keepdim=True)
        unary, down, right = self.energy(pair, salient, lam)
        labels = min_cut(*(cost.double().cpu().numpy() for cost in (unary, down, right)))
        mask = torch.from_numpy(labels).to(lam) / (self.levels - 1)
        tiles = _blocks(pair, n).movedim((-4, -2), (-5, -4)).flatten(-5, -4).flatten(-3)  # (2, N, n^2, C H W / n^2)
        if self.transport:
            shares = torch.stack([mask, 1 - mask]).flatten(2)
            source = move(salient.flatten(2).flatten(0, 1), shares.flatten(0, 1) > 0, self.t_eps)
            image = torch.arange(len(source), device=lam.device).unsqueeze(1)
            tiles = tiles.flatten(0, 1)[image, source].view_as(tiles)
        mixed = mix(tiles[0], tiles[1], mask.flatten(1)).unflatten(-1, (-1, *_blocks(pair, n).shape[-3::2]))
        return mixed.unflatten(1, (n, n)).permute(0, 3, 1, 4, 2, 5).reshape(pair.shape[1:]), mask

    def energy(self, pair: Tensor, salient: Tensor, lam: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the costs for `min_cut`; a block's label is its weight times m - 1.

        `sum_b z_b s^j_b + (1 - z_b) s^i_b + eta / n^2 sum_b -log Bin(m - 1, lam)(z_b) + sum_bb' w_bb' (z_b - z_b')^2`
        with `w = beta / (16 n) (1 + gamma / 2 (D_10 + D_01 - D_11 - D_00))`, at least 0; D_uv is the mean absolute
        difference across the border of two blocks where the first one comes from image u and the second from v (1 the
        first image). The rest of D is in the unary costs.

        Each map of `salient: (2, N, n, n)` sums to 1. Costs of levels are `(N, n, n, m)`, weights of neighbours
        `(N, n - 1, n)` and `(N, n, n - 1)`.
        """
        n, m = salient.shape[-1], self.levels
        smooth = self.beta / (16 * n)
        border = smooth * self.gamma
        high, low = salient[1].clone(), salient[0].clone()  # the costs of weight 1 and of weight 0
        weights = []
        for axis, (before, after) in zip((-2, -1), _borders(pair, n), strict=True):
            # Over channels and the edge of each block, with 0 for the first image.
            differences = {(u, v): (before[u] - after[v]).abs().mean(dim=(1, -1)) for u in (0, 1) for v in (0, 1)}
            for image, cost in enumerate((high, low)):
                same = differences[image, image]
                cost.narrow(axis, 0, n - 1).add_(border / 2 * (differences[image, 1 - image] + same))
                cost.narrow(axis, 1, n - 1).add_(border / 2 * (differences[1 - image, image] + same))
            gap = differences[0, 1] + differences[1, 0] - differences[0, 0] - differences[1, 1]
            weights.append((smooth + border / 2 * gap).clamp_min(0) / (m - 1) ** 2)
        level = torch.arange(m, device=lam.device)
        z = level / (m - 1)
        binomials = torch.tensor([math.comb(m - 1, k) for k in range(m)], device=lam.device)
        probability = binomials * lam.unsqueeze(-1) ** level * (1 - lam.unsqueeze(-1)) ** (m - 1 - level)
        prior = -self.eta / n**2 * (probability + PRIOR_EPS).log()
        unary = z * high.unsqueeze(-1) + (1 - z) * low.unsqueeze(-1) + prior.unsqueeze(-2).unsqueeze(-2)
        return unary, weights[0], weights[1]


def saliency(model: nn.Module, x: Tensor, lead: int = 1, means: int | None = None) -> Tensor:
    """Return `sqrt(mean_c (d sum_k f_k / d x)^2)`, `(..., B, H, W)`, of the model f in evaluation mode.

    The mode of the model and its gradients stay as they are. `lead` axes of `x: (..., B, C, H, W)` stand before C; all
    between them and H count as channels. Of the outputs the first `means` are summed, which are not those of variances.
    """
    training = model.training
    model.eval()
    x = x.detach().requires_grad_()
    (gradient,) = torch.autograd.grad(model(x)[..., :means].sum(), x)
    model.train(training)
    return gradient.square().mean(dim=tuple(range(lead, x.ndim - 2))).sqrt()


def move(salient: Tensor, inside: Tensor, t_eps: float) -> Tensor:
    """Return which block each block's content comes from, `(N, n^2)` int64.

    Blocks b choose the place b' of the least cost `t_eps |b - b'|^2 / (n - 1)^2 - s_b [b' is inside]`. Where several
    choose one, the cheapest (of these the first) gets it, and this place costs the others 1 more: n rounds. A place
    that no block got in the last round keeps its own content. `salient: (N, n^2)` is s of each block, and
    `inside: (N, n^2)` bool says where the image is seen.
    """
    count, size = salient.shape
    n = math.isqrt(size)
    blocks = torch.arange(size, device=salient.device)
    position = torch.stack([blocks // n, blocks % n], dim=-1).to(salient.dtype)
    distance = (position.unsqueeze(0) - position.unsqueeze(1)).square().sum(dim=-1) / max(n - 1, 1) ** 2
    gain = inside.to(salient.dtype).unsqueeze(-2)
    cost = torch.addcmul(t_eps * distance, salient.unsqueeze(-1), gain, value=-1).reshape(count * size, size)
    least, choice = cost.min(dim=-1)
    start = torch.arange(count, device=salient.device).repeat_interleave(size) * size  # of each block's image
    block = torch.arange(count * size, device=salient.device)
    for round_number in range(n):
        target = start + choice
        lowest = torch.full_like(least, math.inf).scatter_reduce(0, target, least, "amin")
        best = torch.where(least == lowest[target], block, count * size)
        winner = torch.full_like(block, count * size).scatter_reduce(0, target, best, "amin")
        losers = torch.nonzero(winner[target] != block).flatten()
        if round_number == n - 1 or not len(losers):
            break
        cost[losers, choice[losers]] += 1
        least[losers], choice[losers] = cost[losers].min(dim=-1)
    return torch.where(winner < count * size, winner, block).reshape(count, size) - start.reshape(count, size)


def min_cut(unary: np.ndarray, down: np.ndarray, right: np.ndarray) -> np.ndarray:
    """Return the labels `(N, h, w)` int64 in 0 .. m-1 of N grids that have the least energy; of several the lowest.

    A convex energy needs one minimum cut (Ishikawa 2003, IEEE PAMI 25(10)). The grids of a whole batch are one flow
    problem: they touch at source and sink alone, so each is solved by itself.

    The energy of a grid is `sum_b unary[b, l_b] + sum_bb' weight_bb' (l_b - l_b')^2` over its blocks and pairs of
    neighbours. This is its global minimum for every m, up to costs rounded to about 2^-28 of their sum.

    A block has m - 1 nodes; node k (1 to m - 1) is on the source's side where the block's label is k or more. The
    square of a difference is a sum of cuts: `(l - l')^2 = sum_k [k lies between them] + 2 sum_{k > k'} ([l >= k and
    l' < k'] + [l' >= k and l < k'])`.

    `unary: (N, h, w, m)` are the costs of the labels; `down: (N, h - 1, w)` and `right: (N, h, w - 1)` the weights, 0
    or more, of a block and the one below it, or to its right.
    """
    try:
        from scipy.sparse import csr_array
        from scipy.sparse.csgraph import breadth_first_order, maximum_flow
    except ImportError:
        raise InputError("graph cuts need SciPy, which is not installed: pip install scipy") from None
    if not all(np.isfinite(costs).all() for costs in (unary, down, right)):
        raise InputError("costs of a graph cut must be finite numbers")
    rises = np.diff(unary.astype(np.float64), axis=-1)  # the cost of a node on the source's side
    total = np.abs(rises).sum(axis=(1, 2, 3))
    scale = (CAPACITY / np.where(total > 0, total, 1)).reshape(-1, 1, 1, 1)
    rises = np.rint(rises * scale)
    node = np.arange(rises.size, dtype=np.int32).reshape(rises.shape)
    source, sink = np.int32(node.size), np.int32(node.size + 1)
    low, high = np.triu_indices(unary.shape[-1] - 1, 1)
    # Edges are a tail, a head and a capacity, which broadcast.
    edges: list[tuple[Any, Any, Any]] = [(source, node, np.maximum(-rises, 0)), (node, sink, np.maximum(rises, 0))]
    edges.append((node[..., 1:], node[..., :-1], FORBIDDEN))
    for first, second, pairs in ((node[:, :-1], node[:, 1:], down), (node[:, :, :-1], node[:, :, 1:], right)):
        weight = np.minimum(np.rint(pairs[..., None] * scale), CAPACITY)  # one above all of it is never cut
        for a, b in ((first, second), (second, first)):
            edges += [(a, b, weight), (a[..., high], b[..., low], 2 * weight)]
    columns = zip(*(map(np.ravel, np.broadcast_arrays(*edge)) for edge in edges), strict=True)
    tail, head, capacity = map(np.concatenate, columns)
    graph = csr_array((capacity.astype(np.int32), (tail, head)), shape=(node.size + 2, node.size + 2))
    residual = graph - maximum_flow(graph, source, sink).flow  # without the edges that are full
    on_source_side = np.zeros(node.size + 2, dtype=bool)
    on_source_side[breadth_first_order(residual, source, return_predecessors=False)] = True
    return on_source_side[:-2].reshape(node.shape).sum(axis=-1)


def _divisor(number: int, most: int) -> int:
    """Return the largest divisor of `number` that is not above `most`."""
    return max(k for k in range(1, min(number, most) + 1) if number % k == 0)


def _blocks(maps: Tensor, n: int) -> Tensor:
    """Return maps `(..., H, W)` as `(..., n, H / n, n, W / n)`."""
    return maps.reshape(*maps.shape[:-2], n, maps.shape[-2] // n, n, maps.shape[-1] // n)


def _borders(pair: Tensor, n: int) -> tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]:
    """Return the averaged pixels on both sides of the borders across rows, and across columns.

    They are `(2, N, C, n - 1, n, k)` and `(2, N, C, n, n - 1, k)`, k along the edge of each block.
    """
    most = 2 if min(pair.shape[-2:]) < 64 else 4
    means = avg_pool2d(pair.flatten(0, 1), [_divisor(side // n, most) for side in pair.shape[-2:]])
    means = _blocks(means.reshape(2, -1, *means.shape[1:]), n).transpose(-3, -2)  # (2, N, C, n, n, down, across)
    rows = means[..., :-1, :, -1, :], means[..., 1:, :, 0, :]
    return rows, (means[..., :, :-1, :, -1], means[..., :, 1:, :, 0])
