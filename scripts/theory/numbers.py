"""Run the simulations of C-Mixup's theorems over a grid of settings and seeds, and look numbers up in what they left.

results/theory.csv holds a number a row. `bandwidth` is that of C-Mixup's kernel (Theorem 3: in units of the median
distance from the nearest label that is not the partner's) and empty for other methods.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from scripts.records.experiment import RESULTS
from scripts.records.records import read_csv
from scripts.records.stats import Interval, Summary, paired, summarise
from scripts.theory.simulations import FEATURE, Finding, Theorem1, Theorem2, Theorem3

FILE = "theory.csv"
COLUMNS = ("theorem", "setting", "N", "p", "bandwidth", "method", "theta", "seed", "metric", "value")
COMPARED = ("mixup", *FEATURE)  # what the theorems compare C-Mixup with
Simulation = Theorem1 | Theorem2 | Theorem3
BASE: dict[int, Simulation] = {1: Theorem1(), 2: Theorem2(), 3: Theorem3()}
#: What is changed, one at a time, from the base of each theorem.
SIZES = {1: (500, 1000, 2000), 2: (1000, 2000, 5000), 3: (200, 800, 1600)}
FEATURES = {1: (10, 100), 2: (10, 80), 3: (40, 80, 320)}
BANDWIDTHS = {
    1: (0, 0.3, 1, math.inf), 2: (0, 0.5, 2, math.inf), 3: (0, 1e-6, 0.001, 0.1, 1, 10, 100, math.inf),
}  # fmt: skip
NOISES = (1e-4, 1e-2, 0.1, 0.3)  # of Theorem 3
EXACT = "no noise, no penalty"


@dataclass(frozen=True)
class Setting:
    """A point of the grid: what is changed from the base, the simulation, and whose runs it needs (None: all)."""

    name: str
    theorem: int
    simulation: Simulation
    methods: Sequence[str] | None = None

    def rows(self, seed: int) -> list[dict[str, Any]]:
        """Return the rows of a seed."""
        given = self.simulation
        if self.methods is None:
            return [self._row(seed, f) for f in given.run(seed)]
        # What is of no method is that of the base, too.
        return [self._row(seed, f) for f in given.run(seed, self.methods) if f.method]

    def _row(self, seed: int, f: Finding) -> dict[str, Any]:
        given = self.simulation
        return {
            "theorem": self.theorem, "setting": self.name, "N": given.n, "p": given.p,
            "bandwidth": f"{given.bandwidth:.3g}" if f.method.startswith("cmixup") else "",
            "method": f.method, "theta": f.theta, "seed": seed, "metric": f.metric, "value": f"{f.value:.5g}",
        }  # fmt: skip


def settings() -> Iterator[Setting]:
    """Yield every point of the grid."""
    for theorem, base in BASE.items():
        yield Setting("base", theorem, base)
        for n in SIZES[theorem]:
            yield Setting("N", theorem, replace(base, n=n))
        for p in FEATURES[theorem]:
            yield Setting("p", theorem, replace(base, p=p))
        for bandwidth in BANDWIDTHS[theorem]:
            own = ("cmixup_self",) if (theorem, bandwidth) == (1, 0) else ()
            yield Setting("bandwidth", theorem, replace(base, bandwidth=bandwidth), ("cmixup", *own))
    third = Theorem3()
    for noise in NOISES:
        yield Setting(f"noise {noise:g}", 3, replace(third, noise=noise))
    yield Setting(EXACT, 3, replace(third, noise=0.0, penalty=0.0), ("exact",))


class Numbers:
    """The rows of results/theory.csv, by what they are of.

    Args:
        rows: as `read_csv` gives them.
    """

    def __init__(self, rows: Sequence[Mapping[str, str]]) -> None:
        self._found: dict[tuple[str, ...], dict[int, float]] = {}
        self.places: dict[int, dict[tuple[str, int, int], None]] = {}
        for r in rows:
            key = tuple(r[name] for name in COLUMNS if name not in ("seed", "value"))
            self._found.setdefault(key, {})[int(r["seed"])] = float(r["value"])
            self.places.setdefault(int(r["theorem"]), {})[r["setting"], int(r["N"]), int(r["p"])] = None

    def values(
        self,
        theorem: int,
        place: tuple[str, int, int],
        method: str,
        metric: str,
        *,
        theta: str = "",
        bandwidth: float | None = None,
    ) -> dict[int, float]:
        """Return the values by seed, {} if there are none.

        Args:
            theorem: 1, 2 or 3.
            place: setting, N and p.
            method: whose.
            metric: which number.
            theta: estimated, true, or empty where it does not matter.
            bandwidth: of C-Mixup; that of the base if absent.
        """
        setting, n, p = place
        width = BASE[theorem].bandwidth if bandwidth is None else bandwidth
        text = f"{width:.3g}" if method.startswith("cmixup") else ""
        return self._found.get((str(theorem), setting, str(n), str(p), text, method, theta, metric), {})

    def summary(self, *args: Any, **named: Any) -> Summary | None:
        """Return mean, standard deviation and number of what `values` finds, None if it finds nothing."""
        found = self.values(*args, **named)
        return summarise(list(found.values())) if found else None

    def base(self, theorem: int) -> tuple[str, int, int]:
        """Return the place of a theorem's base."""
        return "base", BASE[theorem].n, BASE[theorem].p

    def differences(
        self, theorem: int, place: tuple[str, int, int], metric: str, theta: str, *, bandwidth: float | None = None
    ) -> dict[str, Interval]:
        """Return the paired 95 % intervals of C-Mixup minus each method that the theorem compares it with.

        At another bandwidth than the base's, the other methods are those of the base.
        """
        mine = self.values(theorem, place, "cmixup", metric, theta=theta, bandwidth=bandwidth)
        there = self.base(theorem) if place[0] == "bandwidth" else place
        found = {m: paired(mine, self.values(theorem, there, m, metric, theta=theta)) for m in COMPARED}
        return {m: interval for m, interval in found.items() if interval}


def verdict(differences: Mapping[str, Interval]) -> str:
    """Return whether C-Mixup is below all that it is compared with, by the intervals of its differences.

    It holds where all lie below 0, does not where one lies above 0, and is open otherwise.
    """
    if any(d.low > 0 for d in differences.values()):
        return "does not hold"
    if differences and all(d.high < 0 for d in differences.values()):
        return "holds"
    return "open"


def read(results: Path = RESULTS) -> Numbers | None:
    """Return the numbers that `results/theory.csv` holds, None if it is not there."""
    path = results / FILE
    return Numbers(read_csv(path)) if path.is_file() else None
