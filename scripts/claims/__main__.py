"""Print every sentence of results/claims.yaml with its numbers and whether results/records.csv supports it.

`python -m scripts.claims [--failing] [NAME ...]`; the exit status is 1 if one is not supported. After new runs were
published, `python -m scripts.render` comes first: it writes records.csv, and the sentences into the pages.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

import pandas as pd

from scripts.claims.check import check_all
from scripts.claims.evidence import Evidence
from scripts.driver.cli import user_errors
from scripts.records.experiment import RESULTS
from scripts.records.records import read_csv


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    parser.add_argument("names", nargs="*", help="only these claims")
    parser.add_argument("--failing", action="store_true", help="print those that do not hold alone")
    given = parser.parse_args(argv)
    with user_errors():
        verdicts = check_all(Evidence(pd.DataFrame(read_csv(RESULTS / "records.csv")), RESULTS))
        failing = [v for v in verdicts if not v.holds]
        for verdict in verdicts:
            if (not given.names or verdict.claim.name in given.names) and not (given.failing and verdict.holds):
                print("\n".join(verdict.lines()))
        print(f"{len(verdicts) - len(failing)} of {len(verdicts)} claims hold")
        if failing:
            print("FAILS:", ", ".join(v.claim.name for v in failing))
            sys.exit(1)


if __name__ == "__main__":
    main()
