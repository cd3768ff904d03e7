"""Labels that go round a circle: exact draws by proposals on the chord.

With radius R = P / 2 pi, a label y of period P is the point (R cos, R sin)(y / R) of the plane. A chord is never longer
than its arc, so the kernel of the chord is an envelope of the kernel of the arc: any algorithm of this package proposes
j on the chords, and j is kept with probability K(arc) / K(chord). Outputs that do not go round stay as they are.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cmixup.sampling.choice import choose
from cmixup.sampling.distance import pair_distance
from cmixup.sampling.inputs import Floats, Ints, Labels
from cmixup.sampling.kernels import Kernel
from cmixup.sampling.stream import Rejection, StreamedSampler


class Circular(Rejection):
    """Exact partner draws for labels of which some outputs go round a circle.

    Args:
        labels: (N,) or (N, d) float64, circular outputs in [0, period).
        period: (d,) float64, in label units, 0 for outputs that do not go round.
        kernel: the kernel that gives the weights, of the shorter way round.
        name: the algorithm that proposes, one of `ALGORITHMS` but "cells".
        budget: bytes that its tables may take.
    """

    def __init__(self, labels: Labels, period: Floats, kernel: Kernel, name: str, budget: int) -> None:
        self.kernel = kernel
        self._chords = on_circles(labels, period)
        self._streamed = StreamedSampler(labels, kernel, period)
        self._proposing, reason = choose(self._chords, kernel, name, budget)
        self.name = self._proposing.name
        self.reason = f"circular labels, proposals on the chord; {reason}"

    def propose(self, anchors: Ints, rng: np.random.Generator) -> tuple[Ints, NDArray[np.bool_]]:
        """Propose by the chords, and refuse by the arcs."""
        proposal = self._proposing.draw(anchors, rng)
        arc = self._streamed.distances.between(proposal, anchors)
        chord = pair_distance(self._chords[proposal], self._chords[anchors], self._chords.shape[1])
        return proposal, rng.standard_exponential(len(anchors)) < self.kernel.excess(arc, chord)


def on_circles(labels: Labels, period: Floats) -> Floats:
    """Return labels (N,) or (N, d) with the columns R cos and R sin in the place of each circular output."""
    columns = []
    for column, length in zip(labels.reshape(len(labels), -1).astype(np.float64).T, period, strict=True):
        if length == 0:
            columns.append(column)
        else:
            radius = length / (2 * np.pi)
            columns += [radius * np.cos(column / radius), radius * np.sin(column / radius)]
    return np.stack(columns, axis=1)
