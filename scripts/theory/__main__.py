"""Simulate the models of C-Mixup's Theorems 1, 2 and 3, and check by paired intervals whether each ordering holds.

`python -m scripts.theory [--seeds 20] [--results DIR]`: numbers into results/theory.csv, and from these the page
results/theory.md and figures. `--out DIR` is the same as `--results DIR`: nothing is trained, there are no runs.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from cmixup.errors import InputError
from cmixup.files import write_atomically
from scripts.driver.cli import user_errors
from scripts.driver.words import parse_seeds
from scripts.records.experiment import RESULTS
from scripts.records.records import to_csv
from scripts.report.figure_files import write_figures
from scripts.theory.figures import figures
from scripts.theory.numbers import COLUMNS, FILE, settings
from scripts.theory.page import render


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="python -m scripts.theory", description=__doc__)
    parser.add_argument("--seeds", default="", help="a count, list or range; default 20")
    parser.add_argument("--results", default="", help="where numbers, page and figures go; default results/")
    parser.add_argument("--out", default="", help="another name for --results")
    given = parser.parse_args(argv)
    with user_errors():
        seeds = parse_seeds(given.seeds or 20)
        if len(seeds) < 2:
            raise InputError(f"seeds must be 2 or more, since differences need intervals, got {given.seeds!r}")
        results = Path(given.results or given.out or RESULTS)
        rows, start = [], time.monotonic()
        for setting in settings():
            rows += [row for seed in seeds for row in setting.rows(seed)]
            where = f"Theorem {setting.theorem}, {setting.name}: {setting.simulation}"
            print(f"{time.monotonic() - start:4.0f} s  {where}", file=sys.stderr)
        write_atomically(results / FILE, to_csv(rows, COLUMNS))
        for name, text in render(results).items():
            write_atomically(results / name, text)
            print(text)
        for path in write_figures(figures(results), results):
            print(f"figure: {path}")


if __name__ == "__main__":
    main()
