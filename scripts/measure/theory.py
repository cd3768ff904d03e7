"""Simulate the models of C-Mixup's Theorems 1, 2 and 3, and say by paired intervals whether each ordering holds.

Numbers go into results/theory.csv, and from these come the page results/theory.md and its figures.

Example: python -m scripts.measure theory seeds=2 results=/tmp/theory
"""

from __future__ import annotations

import sys
import time

from cmixup.errors import InputError
from scripts.config.arguments import Args
from scripts.measure.load_run import RESULTS_KEY, results_of, write_measured
from scripts.records.records import to_csv
from scripts.theory.numbers import COLUMNS, FILE, all_settings
from scripts.theory.page import render_theory, theory_figures

KEYS = {"seeds": "a count, list or range; default 20", "results": RESULTS_KEY}


def run(given: Args) -> None:
    """Simulate every point of the grid for the seeds that the words say."""
    seeds, results = given.seeds(20), results_of(given)
    if len(seeds) < 2:
        raise InputError(f"seeds must be 2 or more, since differences need intervals, got {given['seeds']!r}")
    rows, start = [], time.monotonic()
    for setting in all_settings():
        rows += [row for seed in seeds for row in setting.rows(seed)]
        where = f"Theorem {setting.theorem}, {setting.name}: {setting.simulation}"
        print(f"{time.monotonic() - start:4.0f} s  {where}", file=sys.stderr)
    write_measured(results, {FILE: to_csv(rows, COLUMNS)})
    write_measured(results, render_theory(results), theory_figures(results))
