"""Simulate the models of C-Mixup's Theorems 1, 2 and 3 over a grid of settings and seeds.

results/theory.csv holds a number a row. `bandwidth` is that of C-Mixup's kernel (Theorem 3: in units of the median
distance from the nearest label that is not the partner's) and empty for other methods. The table that is printed, which
results/theory.md has too, and the figures come from that file (`scripts.report.paper.theory`).

Example: python -m scripts.analysis theory seeds=2 results=/tmp/theory
"""

import math
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from cmixup.errors import InputError
from scripts.analysis.runs import RESULTS_KEY, results_of, write_analysis
from scripts.analysis.simulations import Theorem1, Theorem2, Theorem3
from scripts.config.arguments import Args, parse_seeds
from scripts.records.csv_rows import to_csv
from scripts.report.paper.theory import COLUMNS, FILE, answer_table, read_numbers, theory_figures

KEYS = {"seeds": "a count, list or range; default 20", "results": RESULTS_KEY}
Simulation = Theorem1 | Theorem2 | Theorem3
BASE: dict[int, Simulation] = {1: Theorem1(), 2: Theorem2(), 3: Theorem3()}
#: What is changed, one at a time, from the base of each theorem; only C-Mixup is simulated at another bandwidth.
CHANGED: dict[str, dict[int, Sequence[float]]] = {
    "N": {1: (500, 1000, 2000), 2: (1000, 2000, 5000), 3: (200, 800, 1600)},
    "p": {1: (10, 100), 2: (10, 80), 3: (40, 80, 320)},
    "bandwidth": {1: (0, 0.3, 1, math.inf), 2: (0, 0.5, 2, math.inf), 3: (0, 1e-6, 0.001, 0.1, 1, 10, 100, math.inf)},
}
NOISES = (1e-4, 1e-2, 0.1, 0.3)  # of Theorem 3


@dataclass(frozen=True)
class Setting:
    """A point of the grid: what is changed from the base, the simulation, and whose runs it needs (None: all)."""

    name: str
    theorem: int
    simulation: Simulation
    methods: Sequence[str] | None = None

    def rows(self, seed: int) -> list[dict[str, Any]]:
        """Return the rows of a seed."""
        simulation, rows = self.simulation, []
        for finding in simulation.run(seed, *([self.methods] if self.methods else [])):
            if self.methods and not finding.method:  # a quantity of no method is the base's, too
                continue
            bandwidth = f"{simulation.bandwidth:.3g}" if finding.method.startswith("cmixup") else ""
            about = (self.theorem, self.name, simulation.n, simulation.p)
            line = (*about, bandwidth, finding.method, finding.theta, seed, finding.metric)
            rows.append(dict(zip(COLUMNS, (*line, f"{finding.value:.5g}"), strict=True)))
        return rows


def all_settings() -> Iterator[Setting]:
    """Yield every point of the grid."""
    for theorem, base in BASE.items():
        yield Setting("base", theorem, base)
        for name, values in CHANGED.items():
            for value in values[theorem]:
                changes: dict[str, Any] = {name.lower(): value}
                yield Setting(name, theorem, replace(base, **changes), ("cmixup",) if name == "bandwidth" else None)
    for noise in NOISES:
        yield Setting(f"noise {noise:g}", 3, Theorem3(noise=noise))


def run(args: Args) -> None:
    """Simulate every point of the grid for the seeds."""
    seeds, results = parse_seeds(args.get("seeds", 20)), results_of(args)
    if len(seeds) < 2:
        raise InputError(f"seeds must be 2 or more, since differences need intervals, got {args['seeds']!r}")
    rows, start = [], time.monotonic()
    for setting in all_settings():
        rows += [row for seed in seeds for row in setting.rows(seed)]
        where = f"Theorem {setting.theorem}, {setting.name}: {setting.simulation}"
        print(f"{time.monotonic() - start:4.0f} s  {where}", file=sys.stderr)
    write_analysis(args, {FILE: to_csv(rows, COLUMNS)})
    print(answer_table(read_numbers(results)))
    write_analysis(args, figures=theory_figures(results))
