"""Write the results as one HTML file that opens from disk: `python -m scripts.results_page [--out outputs]`.

Tables with ours, the paper's and the authors' code, a plot where every point is a seed, filters, and behind every
number its runs. Everything is inside the file.
"""

from __future__ import annotations

import argparse
import sys

from cmixup.files import write_atomically
from scripts.claims.check import check_all
from scripts.claims.evidence import Evidence
from scripts.claims.map import map_lines
from scripts.driver.cli import out_folder, user_errors
from scripts.records.experiment import RESULTS
from scripts.records.published import published_records, published_reports
from scripts.report.results_page import page
from scripts.report.shown import shown_tables


def main() -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="python -m scripts.results_page", description=__doc__)
    parser.add_argument("--out", default="", help="the folder of the page; default outputs")
    given = parser.parse_args(sys.argv[1:])
    with user_errors():
        records = published_records()
        evidence = Evidence(records)
        text = page(
            shown_tables(records),
            records,
            published_reports(),
            evidence,
            map_rows=map_lines(evidence, check_all(evidence)),
            figures={path.stem.replace("_", " "): path for path in sorted((RESULTS / "figures").glob("*.png"))},
        )
        path = out_folder(given.out) / "results.html"
        write_atomically(path, text)
        print(f"Written: {path} ({len(text) / 1e6:.1f} MB); open it in a browser")


if __name__ == "__main__":
    main()
