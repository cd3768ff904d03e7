"""Run the simulations of C-Mixup's theorems over a grid of settings and seeds, and look numbers up in what they left.

results/theory.csv holds a number a row. `bandwidth` is that of C-Mixup's kernel (Theorem 3: in units of the median
distance from the nearest label that is not the partner's) and empty for other methods.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

from scripts.records.experiment import RESULTS
from scripts.records.records import read_csv
from scripts.records.stats import Interval, paired_or_none
from scripts.theory.simulations import FEATURE, METHODS, Theorem1, Theorem2, Theorem3

FILE = "theory.csv"
COLUMNS = ("theorem", "setting", "N", "p", "bandwidth", "method", "theta", "seed", "metric", "value")
COMPARED = ("mixup", *FEATURE)  # what the theorems compare C-Mixup with
Simulation = Theorem1 | Theorem2 | Theorem3
THIRD = Theorem3()
BASE: dict[int, Simulation] = {1: Theorem1(), 2: Theorem2(), 3: THIRD}
#: What is changed, one at a time, from the base of each theorem; only C-Mixup is simulated at another bandwidth.
CHANGED: dict[str, dict[int, Sequence[float]]] = {
    "N": {1: (500, 1000, 2000), 2: (1000, 2000, 5000), 3: (200, 800, 1600)},
    "p": {1: (10, 100), 2: (10, 80), 3: (40, 80, 320)},
    "bandwidth": {1: (0, 0.3, 1, math.inf), 2: (0, 0.5, 2, math.inf), 3: (0, 1e-6, 0.001, 0.1, 1, 10, 100, math.inf)},
}
NOISES = (1e-4, 1e-2, 0.1, 0.3)  # of Theorem 3


class Quantity(NamedTuple):
    """A number that tables show: its metric, which theta it is of, and its title."""

    metric: str
    theta: str
    title: str


_OF_INDEX = (
    Quantity("mse", "estimated", "MSE, estimated theta"),
    Quantity("mse", "true", "MSE, true theta"),
    Quantity("cosine", "", "cos(theta_hat, theta)"),
    Quantity("same_cluster", "", "pairs of one cluster"),
)
#: The first two of a theorem are the errors that it orders, the last one tells whom C-Mixup pairs.
QUANTITIES: dict[int, tuple[Quantity, ...]] = {
    1: _OF_INDEX,
    2: _OF_INDEX,
    3: (
        Quantity("mse", "estimated", "MSE in the test domain"),
        Quantity("theta_error", "estimated", "‖theta_hat - theta‖²"),
        Quantity("pairing_rate", "", "true partner"),
    ),
}
TITLES = {
    "erm": "ERM", "mixup": "mixup", "feature_1": "feature kernel, f = 1", "feature_0.1": "feature kernel, f = 0.1",
    "cmixup": "C-Mixup", "erm_one_domain": "ERM, first domain", "exact": "exact pairing",
}  # fmt: skip
RENAMED = {(2, "mixup"): "MetaMix", (3, "erm"): "ERM, both domains"}


def method_title(theorem: int, method: str) -> str:
    """Return what a method is called in a theorem."""
    return RENAMED.get((theorem, method), TITLES[method])


def methods_of(theorem: int) -> tuple[str, ...]:
    """Return the methods that are drawn: Theorem 3 has ERM on one domain, too."""
    return (*METHODS, "erm_one_domain") if theorem == 3 else METHODS


@dataclass(frozen=True)
class Setting:
    """A point of the grid: what is changed from the base, the simulation, and whose runs it needs (None: all)."""

    name: str
    theorem: int
    simulation: Simulation
    methods: Sequence[str] | None = None

    def key(self, method: str) -> tuple[str, ...]:
        """Return a method's values of the first columns of the file."""
        given = self.simulation
        bandwidth = f"{given.bandwidth:.3g}" if method.startswith("cmixup") else ""
        return str(self.theorem), self.name, str(given.n), str(given.p), bandwidth

    def rows(self, seed: int) -> list[dict[str, Any]]:
        """Return the rows of a seed."""
        found = self.simulation.run(seed, *([self.methods] if self.methods else []))
        # What is of no method is that of the base, too.
        kept = [f for f in found if f.method or not self.methods]
        cells = [(*self.key(f.method), f.method, f.theta, seed, f.metric, f"{f.value:.5g}") for f in kept]
        return [dict(zip(COLUMNS, line, strict=True)) for line in cells]


def base_setting(theorem: int) -> Setting:
    """Return the base of a theorem."""
    return Setting("base", theorem, BASE[theorem])


def swept_settings(theorem: int, name: str) -> list[Setting]:
    """Return the base and the points where one thing is changed, "N", "p" or "bandwidth", in ascending order of it."""
    found = [base_setting(theorem)]
    for value in CHANGED[name][theorem]:
        change: dict[str, Any] = {name.lower(): value}
        own = ("cmixup", *(("cmixup_self",) if (theorem, value) == (1, 0) else ())) if name == "bandwidth" else None
        found.append(Setting(name, theorem, replace(BASE[theorem], **change), own))
    return sorted(found, key=lambda at: float(getattr(at.simulation, name.lower())))


def noisy_settings() -> list[Setting]:
    """Return the points of Theorem 3 with more noise."""
    return [Setting(f"noise {noise:g}", 3, replace(THIRD, noise=noise)) for noise in NOISES]


def all_settings() -> Iterator[Setting]:
    """Yield every point of the grid."""
    for theorem in BASE:
        yield base_setting(theorem)
        for name in CHANGED:
            yield from (at for at in swept_settings(theorem, name) if at.name == name)
    yield from noisy_settings()
    yield Setting("no noise, no penalty", 3, replace(THIRD, noise=0.0, penalty=0.0), ("exact",))


class Numbers:
    """The rows of results/theory.csv, by what they are of.

    Args:
        rows: as `read_csv` gives them.
    """

    def __init__(self, rows: Sequence[Mapping[str, str]]) -> None:
        self._found: dict[tuple[str, ...], dict[int, float]] = {}
        for r in rows:
            key = tuple(r[name] for name in COLUMNS if name not in ("seed", "value"))
            self._found.setdefault(key, {})[int(r["seed"])] = float(r["value"])

    def values(self, at: Setting, method: str, metric: str, theta: str = "") -> dict[int, float]:
        """Return the values by seed, {} if there are none; at another bandwidth, other methods are those of the base.

        Args:
            at: point of the grid.
            method: whose.
            metric: which number.
            theta: estimated, true, or empty where it does not matter.
        """
        if at.name == "bandwidth" and not method.startswith("cmixup"):
            at = base_setting(at.theorem)
        return self._found.get((*at.key(method), method, theta, metric), {})

    def differences(self, at: Setting, metric: str, theta: str) -> dict[str, Interval]:
        """Return the paired 95 % intervals of C-Mixup minus each method that the theorem compares it with."""
        mine = self.values(at, "cmixup", metric, theta)
        found = {m: paired_or_none(mine, self.values(at, m, metric, theta)) for m in COMPARED}
        return {m: interval for m, interval in found.items() if interval}


def standing_word(differences: Mapping[str, Interval]) -> str:
    """Return whether C-Mixup is below all that it is compared with, by the intervals of its differences.

    It holds where all lie below 0, does not where one lies above 0, and is open otherwise.
    """
    if any(d.low > 0 for d in differences.values()):
        return "does not hold"
    if differences and all(d.high < 0 for d in differences.values()):
        return "holds"
    return "open"


def read_numbers(results: Path = RESULTS) -> Numbers | None:
    """Return the numbers that `results/theory.csv` holds, None if it is not there."""
    path = results / FILE
    return Numbers(read_csv(path)) if path.is_file() else None
