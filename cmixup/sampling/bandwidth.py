"""Bandwidths: their forms, the effect of one on the pairs before any training, and the one with a wanted effect.

A row has 1 / sum_j P_ij^2 effective partners: N under plain mixup, 1 where an example only ever meets
itself. Many published bandwidths sit at one of these ends.
"""

from dataclasses import dataclass

import numpy as np

from cmixup.errors import (
    MIN_BANDWIDTH,
    InputError,
    as_number,
    check_bandwidth,
    check_count,
    check_positive,
    format_value,
)
from cmixup.sampling.distance import FAR, Distances, Kernel
from cmixup.sampling.inputs import Given, Ints, Labels, as_labels, has_gaps
from cmixup.sampling.stream import StreamedSampler

#: A bandwidth as callers may give it, see `parse_bandwidth`.
Bandwidth = float | str | tuple | list

#: The effective-partner fraction that "auto" stands for: clearly local, with partners to spare (Airfoil's published
#: bandwidth of 1.75 has 0.27).
AUTO_FRACTION = 0.2
#: The effective fractions between which C-Mixup differs from both ERM and mixup: the range that the report suggests.
SUGGESTED_FRACTIONS = (0.03, 0.6)

# A diagnosis costs about so many coordinate differences (rows x labels x dimensions), and looks at no fewer rows.
COORDINATES_PER_DIAGNOSIS, MIN_ROWS = 20_000_000, 16
MAX_SORTED = 1 << 20  # more labels are not sorted to choose among them, but a seeded sample
# The search for a bandwidth looks at so many labels at most, and holds so many distances (rows x labels).
MAX_SEARCH_LABELS, MAX_SEARCH_DISTANCES = 8192, 1 << 21
MAX_MEDIAN_LABELS = 2048


@dataclass(frozen=True)
class BandwidthReport:
    """Statistics of the pairs under a bandwidth."""

    bandwidth: float  #: s in label units
    n: int  #: number of labels
    rows: int  #: number of rows looked at: all, or some that stand for them; columns are never sampled
    effective_fraction: float  #: median over rows of 1 / sum_j P_ij^2, divided by n
    self_probability: float  #: median of P(i|i)
    equal_label_probability: float  #: median probability that the partner has the same label
    pair_gap: float  #: mean label distance of drawn pairs (label units)
    uniform_gap: float  #: that of uniform pairs
    verdict: str  #: the same in words


def diagnose(labels: Given, bandwidth: Bandwidth, *, seed: int = 0) -> BandwidthReport:
    """Return statistics of the pairs of these labels under `bandwidth`; this takes seconds at any N.

    Args:
        labels: (N,) or (N, d) array or tensor; NaN stands for a missing output of several.
        bandwidth: see `parse_bandwidth`.
        seed: a whole number that chooses the rows looked at, where they are not all; of labels that are one number
            (and not above a million) rows are taken at even steps of their order, whatever the seed.

    Raises:
        InputError: an argument cannot be used; the message gives its name and value.
    """
    check_count("seed", seed)
    data = as_labels("labels", labels, gaps=True)
    sigma, n = resolve_bandwidth(data, bandwidth, seed=seed), len(data)
    anchors = _subsample(data, max(MIN_ROWS, COORDINATES_PER_DIAGNOSIS // data.size), np.random.default_rng(seed))
    sampler = StreamedSampler(data, Kernel(sigma))
    sampler.distances = Distances(data)  # a matrix product leaves rounding between equal labels
    mass, squares, equal, gap, uniform = sampler.statistics(anchors).T
    fraction = float(np.median(mass**2 / squares)) / n
    itself, ties = float(np.median(1 / mass)), float(np.median(equal / mass))
    return BandwidthReport(
        bandwidth=sigma, n=n, rows=len(anchors), effective_fraction=fraction, self_probability=itself,
        equal_label_probability=ties, pair_gap=float(np.mean(gap / mass)), uniform_gap=float(np.mean(uniform)) / n,
        verdict=_verdict(fraction, itself, ties),
    )  # fmt: skip


def _subsample(data: Labels, count: int, rng: np.random.Generator) -> Ints:
    """Return at most `count` rows, ascending, that stand for all: of labels of several outputs a sample.

    Of labels that are one number they lie at even steps of the labels' order: a median over them is much nearer to that
    over all rows than a sample's, and does not depend on the order of the rows.
    """
    n = len(data)
    if count >= n:
        return np.arange(n)
    if data.size > n:
        return np.sort(rng.choice(n, size=count, replace=False))
    rows = np.sort(rng.choice(n, size=MAX_SORTED, replace=False)) if n > MAX_SORTED else np.arange(n)
    ascending = rows[np.argsort(data[rows].reshape(-1), kind="stable")]
    return np.sort(ascending[(2 * np.arange(count) + 1) * len(rows) // (2 * count)])


def _verdict(effective_fraction: float, self_probability: float, equal_label_probability: float) -> str:
    if self_probability >= 0.99:
        return "self-pairing only: this is ERM"
    if effective_fraction >= 0.99:
        return "indistinguishable from mixup"
    if equal_label_probability >= 0.99:
        return "equal labels only"
    if effective_fraction >= 0.9:
        return "close to mixup"
    return "moderately local" if effective_fraction >= 0.4 else "local"


def parse_bandwidth(bandwidth: Bandwidth) -> float | tuple[str, float]:
    """Check the form of a bandwidth, without any labels.

    Args:
        bandwidth: a number in label units, 0 and infinity allowed; ("fraction", f) for the bandwidth at which the
            median effective-partner fraction is f; "auto" for ("fraction", 0.2); ("std", c) for c times the labels'
            standard deviation, pooled over their dimensions; or ("median", c) for the bandwidth whose square is c times
            the median squared distance of two labels. Lists stand for tuples.

    Returns:
        The number as a float, or ("fraction", f), ("std", c) or ("median", c) with a float.

    Raises:
        InputError: `bandwidth` is none of these, or its number is NaN or out of range.
    """
    if isinstance(bandwidth, str) and bandwidth == "auto":
        return "fraction", AUTO_FRACTION
    if isinstance(bandwidth, (tuple, list)) and len(bandwidth) == 2:
        form, value = bandwidth
        if form == "fraction":
            fraction = as_number("fraction", value)
            if not 0 < fraction <= 1:
                raise InputError(f"fraction must be above 0 and at most 1, got {fraction!r}")
            return "fraction", fraction
        if form in ("std", "median"):
            return form, check_positive("c", value)
    if isinstance(bandwidth, (str, tuple, list)):
        forms = '"auto", ("fraction", f), ("std", c) or ("median", c)'
        raise InputError(f"bandwidth must be a number, {forms}, got {format_value(bandwidth)}")
    return check_bandwidth(bandwidth)


def resolve_bandwidth(labels: Given, bandwidth: Bandwidth, *, seed: int = 0, itself: bool = True) -> float:
    """Turn a bandwidth of any form that `parse_bandwidth` allows into a number in label units.

    A number is returned without looking at the labels. `seed` is that of `bandwidth_for_fraction`.
    `itself` says whether a row is among its own partners, as fractions count them.
    """
    parsed = parse_bandwidth(bandwidth)
    if isinstance(parsed, float):
        return parsed
    form, value = parsed
    if form == "fraction":
        return _search_bandwidth(as_labels("labels", labels, gaps=True), value, seed, itself=itself)
    if form == "median":
        return float(np.sqrt(value * median_squared_distance(labels, seed=seed)))
    values = as_labels("labels", labels, gaps=True)
    deviation = np.nanstd if has_gaps(values) else np.std
    return check_bandwidth(value * float(deviation(values, dtype=np.float64)))


def bandwidth_for_fraction(labels: Given, fraction: float, *, seed: int = 0) -> float:
    """Return the smallest bandwidth whose median effective-partner fraction is `fraction`, by bisection.

    Above 8,192 labels some stand for them, chosen as by `diagnose`: fractions of a few thousandths and less are then
    not resolved. Where equal labels alone hold more than `fraction`, the answer is 0.

    Args:
        labels: (N,) or (N, d) array or tensor.
        fraction: above 0, up to 1 (which needs an infinite bandwidth, unless labels are constant).
        seed: a whole number that chooses the labels and rows looked at, see `diagnose`.

    Returns:
        The bandwidth in label units, to one part in ten thousand. Labels nearer than `MIN_BANDWIDTH` count as equal.
    """
    parse_bandwidth(("fraction", fraction))  # refuses a bad value before any work
    return _search_bandwidth(as_labels("labels", labels, gaps=True), float(fraction), check_count("seed", seed))


def _search_bandwidth(data: Labels, fraction: float, seed: int, *, itself: bool = True) -> float:
    """Return the result of `bandwidth_for_fraction`, for checked labels."""
    rng = np.random.default_rng(seed)
    sample = np.asarray(data[_subsample(data, MAX_SEARCH_LABELS, rng)], dtype=np.float64)
    anchors = _subsample(sample, MAX_SEARCH_DISTANCES // len(sample), rng)
    rows = Distances(sample)
    distance = rows.to(rows.at(anchors), 0, len(sample))
    distance[distance < MIN_BANDWIDTH] = 0.0
    if not itself:
        distance[np.arange(len(anchors)), anchors] = FAR
    nearest = distance.min(axis=1, keepdims=True)
    longest = float(distance[distance < FAR].max())

    def is_wide_enough(bandwidth: float) -> bool:
        weight = np.exp(-Kernel(bandwidth).excess(distance, nearest))
        effective = weight.sum(axis=1) ** 2 / np.einsum("bm,bm->b", weight, weight)
        return bool(np.median(effective) >= fraction * len(sample))

    if is_wide_enough(0.0):
        return 0.0
    if fraction == 1:  # rounding would be satisfied earlier
        return np.inf
    high = longest
    while not is_wide_enough(high):
        high *= 2
        if high >= 1e9 * longest:  # also where labels that can be compared are all equal
            return np.inf
    low = high
    while is_wide_enough(low):
        if low == MIN_BANDWIDTH:
            return low
        low = max(low / 4, MIN_BANDWIDTH)
    while high / low > 1.0001:
        middle = float(np.sqrt(low) * np.sqrt(high))
        low, high = (low, middle) if is_wide_enough(middle) else (middle, high)
    return high


def median_squared_distance(labels: Given, *, seed: int = 0) -> float:
    """Return the median squared distance of two different rows; above 2,048 rows a seeded subsample stands for them."""
    data = as_labels("labels", labels, gaps=True)
    rows = np.sort(np.random.default_rng(seed).permutation(len(data))[:MAX_MEDIAN_LABELS])
    points = np.asarray(data[rows], dtype=np.float64).reshape(len(rows), -1)
    if has_gaps(points):
        pairs = np.triu_indices(len(rows), 1)
        distance = Distances(points).to(points, 0, len(rows))[pairs]
        known = distance[distance < FAR]
        return float(np.median(known**2)) if known.size else 0.0
    points -= points.mean(axis=0)
    norm = np.einsum("nd,nd->n", points, points)
    squared = (norm[:, None] + norm - 2 * points @ points.T)[np.triu_indices(len(rows), 1)]
    return float(np.median(squared.clip(min=0))) if squared.size else 0.0
