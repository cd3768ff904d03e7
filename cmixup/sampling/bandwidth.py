"""What a bandwidth does to the pairs, before any training; and the bandwidth with a wanted effect.

Effective partners of a row are 1 / sum_j P_ij^2: N under plain mixup, 1 where an example only ever meets
itself. Many published bandwidths sit at one of these ends.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cmixup.errors import InputError, as_number, check_choice, check_positive
from cmixup.sampling.distance import Distances
from cmixup.sampling.inputs import as_labels, for_kernel, to_numpy
from cmixup.sampling.kernels import KERNELS, Kernel, check_kernel_bandwidth, make_kernel
from cmixup.sampling.stream import Rows

#: The fraction behind bandwidth="auto": clearly local, with partners to spare (Airfoil's 1.75 has 0.27).
AUTO_FRACTION = 0.2
#: Effective fractions between which C-Mixup differs from both ERM and mixup: the range the doctor suggests.
SUGGESTED_FRACTIONS = (0.03, 0.6)

# Entries (rows x labels x dimensions) that a diagnosis may cost, and the fewest rows it looks at.
ENTRIES, FEWEST_ROWS = 20_000_000, 16
# Labels that the search for a bandwidth looks at, and entries (rows x labels) of its table of distances.
SEARCH_LABELS, SEARCH_ENTRIES = 8192, 1 << 21


@dataclass(frozen=True)
class BandwidthReport:
    """What pairs look like under a bandwidth.

    Attributes:
        bandwidth: label units.
        n: labels.
        rows: how many rows were looked at (all, or a seeded sample; columns are never sampled).
        effective_fraction: median over rows of 1 / sum_j P_ij^2, divided by n.
        self_probability: median of P(i|i).
        equal_label_probability: median probability that the partner has the same label.
        pair_gap: mean label distance of drawn pairs (label units).
        uniform_gap: mean label distance of uniform pairs (label units).
        verdict: the same in words, see `verdict`.
    """

    bandwidth: float
    n: int
    rows: int
    effective_fraction: float
    self_probability: float
    equal_label_probability: float
    pair_gap: float
    uniform_gap: float
    verdict: str


def diagnose(labels: Any, bandwidth: Any, *, kernel: str = "gaussian", seed: int = 0) -> BandwidthReport:
    """Say what `bandwidth` does to pairs of these labels; seconds at any N.

    Args:
        labels: (N,) or (N, d) array or tensor.
        bandwidth: as for `PartnerSampler`.
        kernel: as for `PartnerSampler`.
        seed: chooses the rows looked at, where they are not all.

    Raises:
        InputError: an argument that cannot be used, by name and value.
    """
    check_choice("kernel", kernel, KERNELS)
    data = to_numpy(for_kernel("labels", as_labels("labels", labels), kernel))
    sigma = resolve_bandwidth(data, bandwidth, kernel, seed=seed)
    n = len(data)
    wanted = max(FEWEST_ROWS, ENTRIES // data.size)
    anchors = np.arange(n)
    if wanted < n:
        anchors = np.sort(np.random.default_rng(seed).choice(n, size=wanted, replace=False))
    mass, squares, equal, gap, uniform = Rows(data, make_kernel(kernel, sigma)).statistics(anchors).T
    fraction = float(np.median(mass**2 / squares)) / n
    own, ties = float(np.median(1 / mass)), float(np.median(equal / mass))
    return BandwidthReport(
        bandwidth=sigma,
        n=n,
        rows=len(anchors),
        effective_fraction=fraction,
        self_probability=own,
        equal_label_probability=ties,
        pair_gap=float(np.mean(gap / mass)),
        uniform_gap=float(np.mean(uniform)) / n,
        verdict=verdict(fraction, own, ties),
    )


def verdict(effective_fraction: float, self_probability: float, equal_label_probability: float) -> str:
    """Say in words what medians as in `BandwidthReport` mean."""
    if self_probability >= 0.99:
        return "self-pairing only: this is ERM"
    if effective_fraction >= 0.99:
        return "indistinguishable from mixup"
    if equal_label_probability >= 0.99:
        return "equal labels only"
    if effective_fraction >= 0.9:
        return "close to mixup"
    if effective_fraction >= 0.4:
        return "moderately local"
    return "local"


def resolve_bandwidth(labels: Any, bandwidth: Any, kernel: str = "gaussian", *, seed: int = 0) -> float:
    """Turn a number, "auto", ("fraction", f) or ("std", c) into a bandwidth in label units.

    ("std", c) is c times the labels' standard deviation, pooled over their dimensions.

    Raises:
        InputError: none of these, or a number that is negative or NaN.
    """
    if isinstance(bandwidth, str) and bandwidth == "auto":
        bandwidth = ("fraction", AUTO_FRACTION)
    if isinstance(bandwidth, (tuple, list)) and len(bandwidth) == 2:
        if bandwidth[0] == "fraction":
            return bandwidth_for_fraction(labels, bandwidth[1], kernel=kernel, seed=seed)
        if bandwidth[0] == "std":
            spread = np.std(to_numpy(as_labels("labels", labels)), dtype=np.float64)
            return check_positive("c", bandwidth[1]) * float(spread)
    if isinstance(bandwidth, (str, tuple, list)):
        raise InputError(f'bandwidth must be a number, "auto", ("fraction", f) or ("std", c), got {bandwidth!r}')
    return check_kernel_bandwidth(bandwidth)


def bandwidth_for_fraction(labels: Any, fraction: float, *, kernel: str = "gaussian", seed: int = 0) -> float:
    """The smallest bandwidth whose median effective-partner fraction is `fraction`, by bisection.

    Above 8,192 labels a seeded subsample stands for them: fractions of a few thousandths and less are then
    not resolved. Ties may hold more than `fraction` already: the answer is then 0.

    Args:
        labels: (N,) or (N, d) array or tensor.
        fraction: above 0, up to 1 (which needs an infinite bandwidth, unless labels are constant).
        kernel: as for `PartnerSampler`.
        seed: chooses the subsample.

    Returns:
        Bandwidth in label units, to one part in ten thousand.

    Raises:
        InputError: `fraction` outside (0, 1], or labels that cannot be used.
    """
    fraction = as_number("fraction", fraction)
    if not 0 < fraction <= 1:
        raise InputError(f"fraction must be above 0 and at most 1, got {fraction!r}")
    labels = to_numpy(for_kernel("labels", as_labels("labels", labels), kernel))
    rng = np.random.default_rng(seed)
    chosen = rng.permutation(len(labels))[:SEARCH_LABELS]
    sample = np.asarray(labels[np.sort(chosen)], dtype=np.float64)
    anchors = rng.permutation(len(sample))[: SEARCH_ENTRIES // len(sample)]
    rows = Distances(sample, Kernel("laplace", 1.0))  # laplace: differences, no matrix product
    distance = rows.to(rows.at(anchors), 0, len(sample))

    def reached(bandwidth: float) -> bool:
        weight = np.exp(-make_kernel(kernel, bandwidth).excess(distance, 0.0))
        effective = weight.sum(axis=1) ** 2 / np.einsum("bm,bm->b", weight, weight)
        return bool(np.median(effective) >= fraction * len(sample))

    if reached(0.0):
        return 0.0
    if fraction == 1:  # rounding would reach it earlier
        return np.inf
    high = float(distance.max())
    while not reached(high):
        high *= 2
        if high > 1e9 * distance.max():
            return np.inf
    low = high
    while reached(low):
        low /= 4
    while high / low > 1.0001:
        middle = float(np.sqrt(low) * np.sqrt(high))
        low, high = (low, middle) if reached(middle) else (middle, high)
    return high
