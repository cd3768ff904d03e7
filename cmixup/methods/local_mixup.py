"""Local Mixup (Baena et al. 2022, arXiv 2201.04368; raphael-baena/Local-Mixup).

Differences from the original code: the weights are applied, to the loss of each example, and the sum is divided by
theirs (the image scripts' model hands back ones, so they train plain mixup; the notebook multiplies a loss that is
already averaged); distances are measured on standardised inputs; the threshold is a quantile of the training pairs'
distances; partners come from the whole training set by default (`pairing: permutation` is the original's); labels are
regression targets, mixed as values; the batch keeps its size, so fewer pairs count in a step (`kept_fraction`).
A step in which no pair survives leaves the weights as they are; the optimiser's moments decay as by a zero gradient,
for a model of a stack as for one alone. Its loss counts as 0 in `train_loss`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from cmixup.batch import Batch
from cmixup.data import Split
from cmixup.errors import InputError, as_number, check_choice
from cmixup.methods.mix import Lam, Mix
from cmixup.mixing import Beta
from cmixup.order import Order
from cmixup.pairing.base import Pairing
from cmixup.pairing.flat import Standardised
from cmixup.pairing.uniform import Permutation, Uniform
from cmixup.seeding import Streams

if TYPE_CHECKING:
    from cmixup.learner import Learner

FORMS = ("threshold", "exponential", "knn")


class Decay(Protocol):
    """The weight of a pair, in [0, 1], which does not grow with its distance."""

    def fit(self, inputs: Standardised) -> None:
        """Take the scale of distances from the training inputs."""
        ...

    def __call__(self, rows: np.ndarray, distance: np.ndarray) -> np.ndarray:
        """Return weights `(M,)` of pairs with first rows `rows: (M,)` at `distance: (M,)`."""
        ...


class Distances(Protocol):
    """What the forms by distance alone need to know of the training data."""

    def pair_distances(self) -> np.ndarray:
        """Return distances of training pairs, all or a sample, `(n,)`."""
        ...


class Threshold:
    """1 up to a quantile of the distances of all training pairs, self pairs included; else 0.

    Args:
        quantile: in [0, 1]; 1 keeps every pair, 0 those at distance 0 (self pairs).
    """

    def __init__(self, quantile: float):
        self.quantile = as_number("quantile", quantile)
        if not 0 <= self.quantile <= 1:
            raise InputError(f"quantile must lie in [0, 1], got {quantile!r}")

    def fit(self, inputs: Distances) -> None:
        """Find the distance at the quantile; infinity at 1, since the largest pair may not be in the sample."""
        self.eps = float("inf") if self.quantile == 1 else float(np.quantile(inputs.pair_distances(), self.quantile))

    def __call__(self, rows: np.ndarray, distance: np.ndarray) -> np.ndarray:
        """Return 1 for pairs at most `eps` apart, else 0."""
        return distance <= self.eps


class Exponential:
    """exp(-a d / median(d)), the median over all training pairs.

    Args:
        a: 0 (every weight 1) or more.
    """

    def __init__(self, a: float):
        self.a = as_number("a", a)
        if not 0 <= self.a < float("inf"):
            raise InputError(f"a must be a finite number, 0 or more, got {a!r}")

    def fit(self, inputs: Distances) -> None:
        """Find the median distance."""
        self.median = float(np.median(inputs.pair_distances()))

    def __call__(self, rows: np.ndarray, distance: np.ndarray) -> np.ndarray:
        """Return the weights; equal inputs weigh 1."""
        return np.exp(-self.a * distance / max(self.median, 1e-38))


class Knn:
    """1 where the partner is among the k nearest other rows (ties too) or the row itself, else 0.

    Args:
        k: neighbours, 0 or more; fewer than the training rows.
    """

    def __init__(self, k: int):
        if isinstance(k, bool) or not isinstance(k, int) or k < 0:
            raise InputError(f"k must be a whole number, 0 or more, got {k!r}")
        self.k = k

    def fit(self, inputs: Standardised) -> None:
        """Find the distance that each row's neighbours reach."""
        n = len(inputs.x)
        if self.k >= n:
            raise InputError(f"k must be less than the number of training rows, got k {self.k} for {n} rows")
        self.reach = inputs.reach(self.k)

    def __call__(self, rows: np.ndarray, distance: np.ndarray) -> np.ndarray:
        """Return 1 within reach of the first row, else 0; a rounding error more is within reach."""
        return distance <= self.reach[rows] * (1 + 1e-5)


class LocalMixup(Mix):
    """`Mix` with a loss weight for each pair that decreases with the distance of its inputs.

    The loss is `sum_b w_b l_b / max(sum_b w_b, tiny)`.

    Args:
        decay: the weight by distance.
        pairing, lam, layer: see `Mix`. Distances are on inputs at every layer.
    """

    def __init__(self, decay: Decay, pairing: Pairing, lam: Lam, layer: str = "input"):
        super().__init__(pairing, lam, layer)
        self.decay = decay
        self._pairs = self._steps = self._empty = 0
        self._weight = 0.0

    def fit(self, train: Split, model: nn.Module) -> None:
        """Fit the pairing, and the decay to the training inputs."""
        super().fit(train, model)
        self.inputs = Standardised(train.x)
        self.decay.fit(self.inputs)

    def draw(self, order: Order, streams: Streams) -> dict[str, np.ndarray]:
        """Return partner, lambda and `weight: (M,)` float32 of every row."""
        drawn = super().draw(order, streams)
        distance = self.inputs.between(order.index, drawn["partner"])
        weight = np.asarray(self.decay(order.index, distance), dtype=np.float32)
        starts = np.cumsum(order.sizes) - order.sizes
        self._pairs += len(weight)
        self._weight += float(weight.sum(dtype=np.float64))
        self._steps += len(starts)
        self._empty += int((np.add.reduceat(weight, starts) == 0).sum())
        return drawn | {"weight": weight}

    def step(self, learner: Learner, batch: Batch) -> Tensor:
        """Take a step with the models of which a pair survives."""
        empty = batch.draws["weight"].sum(dim=-1) == 0
        if not bool(empty.any()):
            return super().step(learner, batch)
        parameters = list(learner.model.parameters())
        before = [p.detach().clone() for p in parameters]
        loss = super().step(learner, batch)
        with torch.no_grad():
            for parameter, old in zip(parameters, before, strict=True):
                parameter.copy_(
                    torch.where(empty.reshape(empty.shape + (1,) * (old.ndim - empty.ndim)), old, parameter)
                )
        return loss

    def facts(self) -> dict[str, float]:
        """Return the mean weight of the pairs drawn (the kept fraction) and the share of steps without survivors."""
        if not self._pairs:
            return {}
        return {"kept_fraction": self._weight / self._pairs, "empty_steps": self._empty / self._steps}


def local_mixup(
    alpha: float,
    lam_per: str = "example",
    layer: str = "input",
    *,
    form: str = "threshold",
    quantile: float = 0.25,
    a: float = 1.0,
    k: int = 20,
    pairing: str = "uniform",
) -> LocalMixup:
    """Mix with random partners and weigh each pair's loss by how near its inputs are.

    Args:
        alpha: lam ~ Beta(alpha, alpha).
        lam_per: one lambda an "example" or a "batch".
        layer: "input", "hidden" for the backbone's own mix point, or the name of one. Distances are on inputs.
        form: "threshold" (with `quantile`), "exponential" (with `a`) or "knn" (with `k`).
        quantile: of the training pairs' distances, up to which a pair counts; 1 is mixup.
        a: rate of exp(-a d / median(d)); 0 is mixup.
        k: a pair counts where the partner is among the k nearest rows.
        pairing: "uniform" over the training set, or a "permutation" of the batch.
    """
    check_choice("form", form, FORMS)
    check_choice("pairing", pairing, ("uniform", "permutation"))
    decays: dict[str, Decay] = {"threshold": Threshold(quantile), "exponential": Exponential(a), "knn": Knn(k)}
    who = Uniform() if pairing == "uniform" else Permutation()
    return LocalMixup(decays[form], who, Beta(alpha, lam_per), layer)
