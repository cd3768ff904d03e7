"""Partners inside one batch, drawn once, so that no set-up pays: by all B x B weights where these are cheap."""

from collections.abc import Callable

import numpy as np
import torch

from cmixup.sampling.cells import Cells
from cmixup.sampling.choice import DEFAULT_BUDGET_BYTES
from cmixup.sampling.distance import MAX_ENERGY_ERROR, WIDEST, Kernel, pair_distance
from cmixup.sampling.inputs import Floats, Ints, Labels, has_gaps
from cmixup.sampling.stream import UniformRejection

# From so many labels on, the tables of sorted ones cost less than all weights; and rounds of rejection may.
SORTED_FROM, REJECTION_FROM = 1024, 256
# The cost of a round of rejection, and of each row in it, in weights: a weight is a multiplication, exp and a sum.
WEIGHTS_A_ROUND, WEIGHTS_A_ROW = 8000, 30
MAX_PRODUCT_ENERGY = 0.5 * MAX_ENERGY_ERROR / float(np.finfo(np.float64).eps)
LOWEST = -700.0  # below so small an exponent exp takes ten times as long, and no draw can tell it from 0
SMALL = 2048  # up to so many weights NumPy finds partners sooner than PyTorch does
WEIGHTS_AT_ONCE = 1 << 17  # 1 MiB, which the cache of a core holds


def draw_within(labels: Labels, bandwidth: float, rng: np.random.Generator) -> Ints:
    """Return a partner (B,) int64 for every row of checked labels (B, d) float64, from all B.

    Rounds of rejection are played as long as one more is expected to cost less than the rows that it saves; rows that
    all refused take their exact one. How many are played says nothing on who is accepted: the law stays the same.
    """
    n, d = labels.shape
    points = labels[:, 0] if d == 1 else labels
    if d == 1 and n >= SORTED_FROM:
        return Cells(points, Kernel(bandwidth), DEFAULT_BUDGET_BYTES).draw(np.arange(n), rng)
    exponents = _exponents(labels, bandwidth)
    if n < REJECTION_FROM:
        return _draw_columns(exponents(slice(None)), rng)
    rejection = UniformRejection(points, Kernel(bandwidth))
    partners, pending, saved = np.empty(n, dtype=np.int64), np.arange(n), n
    while saved * n > WEIGHTS_A_ROUND + WEIGHTS_A_ROW * len(pending):
        partners[pending], refused = rejection.propose(pending, rng)
        saved, pending = len(pending) - int(refused.sum()), pending[refused]
    step = max(1, WEIGHTS_AT_ONCE // n)
    for s in range(0, len(pending), step):
        part = pending[s : s + step]
        partners[part] = _draw_columns(exponents(part), rng)
    return partners


def _exponents(labels: Labels, bandwidth: float) -> Callable[[Ints | slice], Floats]:
    """Return the function from A of the B labels (B, d) to their negative energies (A, B); 0 is the most."""
    if bandwidth > 0:
        scaled = (labels - labels[0]) / bandwidth
        energy = 0.5 * np.einsum("nd,nd->n", scaled, scaled)

        def by_product(anchors: Ints | slice) -> Floats:
            exponent: Floats = scaled[anchors] @ scaled.T
            exponent -= energy
            exponent -= energy[anchors, None]
            return exponent

        if energy.max() < MAX_PRODUCT_ENERGY:  # there are neither outliers nor gaps
            return by_product
    points, gaps = np.asarray(labels[:, 0] if labels.shape[1] == 1 else labels, dtype=np.float64), has_gaps(labels)
    kernel = Kernel(min(bandwidth, WIDEST) if gaps else bandwidth)
    return lambda anchors: -kernel.excess(pair_distance(points[anchors, None], points, points[0].size, gaps=gaps), 0.0)


def _draw_columns(exponent: Floats, rng: np.random.Generator) -> Ints:
    """Return a column (A,) int64 for each row of exponents (A, B), which are overwritten."""
    weight = np.exp(np.maximum(exponent, LOWEST, out=exponent), out=exponent)
    level = 1 - rng.random((len(weight), 1))  # never 0, so that no partner of probability 0 is drawn
    if weight.size <= SMALL:
        cumulative = weight.cumsum(axis=1)
        return (cumulative >= level * cumulative[:, -1:]).argmax(axis=1)
    sums = torch.from_numpy(weight).cumsum_(1)  # in place: `weight`, too
    return torch.searchsorted(sums, torch.from_numpy(level * weight[:, -1:])).numpy()[:, 0]
