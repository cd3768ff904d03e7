"""The kernel over label distance, and Euclidean distances of pairs, and of points to blocks of labels, in label units.

A weight is exp(-energy(d)) with the energy d^2 / (2 s^2), C-Mixup Eq. 6 (Yao et al., NeurIPS 2022). Of unit vectors the
squared distance is 2 (1 - cos): the kernel then compares angles.
"""

from dataclasses import dataclass

import numpy as np

from cmixup.sampling.inputs import Floats, Ints, Labels, has_gaps

# A temporary block holds (points x labels x dimensions) coordinate differences: 16 MiB in float64.
COORDINATES_PER_BLOCK = 1 << 21
#: The distance of two rows with no output in common: no kernel gives it weight, and it is not infinite, so that
#: differences of energies stay numbers. Bandwidths are at most `WIDEST` where labels have gaps.
FAR, WIDEST = 1e200, 1e190
# A matrix product may leave no larger error in an energy.
MAX_ENERGY_ERROR = 1e-10


@dataclass(frozen=True)
class Kernel:
    """The kernel with its bandwidth s in label units, as `check_bandwidth` allows it."""

    bandwidth: float

    @np.errstate(over="ignore")  # beyond float64 a weight is 0, as for infinity
    def excess(self, distance: Floats, nearest: Floats | float) -> Floats:
        """Return the energy of `distance` above that of `nearest`, elementwise with broadcasting; infinite: weight 0.

        Weights relative to the nearest point never underflow to an all-zero row. With bandwidth 0 the limit is taken:
        only points as near as the nearest keep weight. The result is monotone in `distance` under rounding, as
        accept/reject needs.
        """
        s = self.bandwidth
        if s == 0:
            return np.where(distance > nearest, np.inf, 0.0)
        # (d - n)(d + n) rather than d^2 - n^2: exact even when both are millions of bandwidths.
        excess = distance - nearest
        excess /= s
        excess *= distance + nearest
        excess *= 0.5 / s
        return excess


def pair_distance(a: Labels, b: Floats, d: int, *, gaps: bool = False) -> Floats:
    """Return the distances (...) float64 of `a` and `b`, (..., d) each or, with d = 1, (...); broadcasts.

    Args:
        a, b: labels.
        d: number of outputs.
        gaps: whether NaN stands for a missing output. The mean square of the c differences in outputs that both have is
            then taken for all: sqrt(d / c * sum), as scikit-learn's `nan_euclidean_distances` does; `FAR` for c = 0.
    """
    difference: Floats = np.subtract(a, b)
    if d == 1:
        return np.abs(difference, out=difference)  # whose square could underflow
    if gaps:
        common = d - np.isnan(difference).sum(axis=-1)
        np.nan_to_num(difference, copy=False)
        squares = np.einsum("...d,...d->...", difference, difference)
        return np.where(common > 0, np.sqrt(squares * (d / np.maximum(common, 1))), FAR)
    # Pairs, rows and boxes are summed in one order, so that their distances are equal to the last bit.
    return np.sqrt(np.einsum("...d,...d->...", difference, difference))


class Distances:
    """Distances from any points to blocks of the labels, exact or accurate enough for `kernel`.

    A matrix product (centred, float64) is used where its cancellation error, eps * |y|^2 / s^2, is below
    1e-10 in the energy; else (outliers, tiny bandwidths, few dimensions) differences are used.

    Labels (N,) or (N, d), NaN for a missing output, are read in blocks, never copied whole: they may be a memory map.
    Without a kernel, differences are used throughout.
    """

    def __init__(self, labels: Labels, kernel: Kernel | None = None) -> None:
        self.labels = labels
        self.d = 1 if labels.ndim == 1 else int(labels.shape[1])
        self.gaps = has_gaps(labels)
        smooth = kernel is not None and kernel.bandwidth > 0
        self._product = self.d > 3 and smooth and not self.gaps
        self._max_squared_norm = 0.0
        if kernel is not None and self._product:
            squared_bandwidth = kernel.bandwidth * kernel.bandwidth  # infinite above 1e154, where ** would raise
            self._max_squared_norm = float(MAX_ENERGY_ERROR / np.finfo(np.float64).eps) * squared_bandwidth
            n, step = len(labels), max(1, COORDINATES_PER_BLOCK // self.d)
            parts = [slice(start, start + step) for start in range(0, n, step)]
            self._centre = sum(self.at(part).sum(axis=0) for part in parts) / n
            self._squared_norms = np.concatenate([_squared_norm(self.at(part) - self._centre) for part in parts])
            self._product = bool(self._squared_norms.max() <= self._max_squared_norm)

    def at(self, index: Ints | slice) -> Floats:
        """Return the labels at `index` (B,) as float64, (B,) or (B, d)."""
        return np.asarray(self.labels[index], dtype=np.float64)

    def between(self, first: Ints, second: Ints) -> Floats:
        """Return the distance of label first[b] and label second[b] for each b, (B,) float64."""
        return pair_distance(self.at(first), self.at(second), self.d, gaps=self.gaps)

    def to(self, points: Floats, start: int, stop: int, anchors: Ints | None = None) -> Floats:
        """Return the distances (B, stop - start) float64 from points (B,) or (B, d) to labels start..stop-1.

        `anchors` (B,) are the points' own indices, where they have one: that distance is exactly 0.
        """
        block = self.at(slice(start, stop))
        if self.d == 1:
            return pair_distance(points[:, None], block, 1)
        if self._product:
            centred = points - self._centre
            squared_norms = _squared_norm(centred)
            if squared_norms.max() <= self._max_squared_norm:
                return self._by_product(centred, squared_norms, block - self._centre, start, anchors)
        rows = max(1, COORDINATES_PER_BLOCK // block.size)
        parts = (points[r : r + rows, None, :] for r in range(0, len(points), rows))
        return np.concatenate([pair_distance(part, block, self.d, gaps=self.gaps) for part in parts])

    def _by_product(
        self, points: Floats, squared_norms: Floats, block: Floats, start: int, anchors: Ints | None
    ) -> Floats:
        squared = points @ block.T
        squared *= -2.0
        squared += squared_norms[:, None]
        squared += self._squared_norms[start : start + len(block)]
        np.maximum(squared, 0.0, out=squared)
        if anchors is not None:
            inside = np.flatnonzero((anchors >= start) & (anchors < start + len(block)))
            squared[inside, anchors[inside] - start] = 0.0
        return np.sqrt(squared, out=squared)


def _squared_norm(values: Floats) -> Floats:
    return np.einsum("nd,nd->n", values, values)
