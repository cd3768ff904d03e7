"""Measure what the paper calls learned invariance on the finished runs of Table 3, and draw it.

`python -m scripts.invariance [--out outputs] [--preset paper] [--datasets crime,skillcraft]`: for every run the mean
divergence of its representation between training domains, given the label (`scripts.measure.invariance`), into
results/invariance.csv, and from that results/figures/invariance_<preset>.png. Rows of other runs stay as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from cmixup.errors import check_choice
from scripts.driver.cli import analysis_parser, out_folder, user_errors
from scripts.driver.devices import pick_device
from scripts.measure.learned_invariance import (
    figures,
    measure,
    runs,
    update,
)
from scripts.measure.load_run import check_publishable
from scripts.records.experiment import RESULTS
from scripts.records.stats import summarise
from scripts.report.figure_files import write_figures


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    parser = analysis_parser("invariance", __doc__, "of preset paper")
    parser.add_argument("--datasets", default="", help="comma-separated; default crime,skillcraft")
    parser.add_argument("--split", default="train", help="whose domains: train (the figure's) or test")
    parser.add_argument("--components", type=int, default=2, help="of the representation; 2 is the figure's")
    given = parser.parse_args(argv)
    with user_errors():
        check_choice("split", given.split, ("train", "test"))
        out = out_folder(given.out)
        results, device = Path(given.results or RESULTS), pick_device(given.device or "auto")
        datasets = [d.strip() for d in (given.datasets or "crime,skillcraft").split(",") if d.strip()]
        reports = runs(out, given.preset or "paper", datasets)
        if not given.results:
            check_publishable(reports)
        rows = []
        for (dataset, method), group in groupby(reports, key=lambda r: (r["dataset"], r["method"])):
            new = [row for r in group for row in measure(r, out, given.split, given.components, device)]
            rows += new
            for domains in dict.fromkeys(row["domains"] for row in new):
                found = summarise([float(row["value"]) for row in new if row["domains"] == domains])
                print(f"{dataset} {method}, {domains} domains: {found.mean:.3f} ± {found.std:.3f} (n = {found.n})")
        update(results / "invariance.csv", rows)
        print(f"numbers: {results / 'invariance.csv'}")
        for path in write_figures(figures(results), results):
            print(f"figure: {path}")


if __name__ == "__main__":
    main()
