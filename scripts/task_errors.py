"""Compare the finished runs of Table 2 on the same test tasks.

`python -m scripts.task_errors [--out outputs] [--preset paper]`: every model's squared error on each test task, into
results/task_errors/<dataset>_<preset>.csv; from these files a table of paired differences with their intervals
(results/tables/table2_paired_<dataset>_<preset>.md) and a figure of the error on each object.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from cmixup.errors import InputError
from cmixup.files import write_atomically
from scripts.driver.cli import user_errors
from scripts.driver.job import pick_device
from scripts.report.experiment import RESULTS
from scripts.report.records import read_csv, to_csv
from scripts.report.saved import check_publishable, finished
from scripts.report.task_errors import (
    EXPERIMENT,
    FOLDER,
    columns,
    draw,
    render_tables,
    score,
)


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="python -m scripts.task_errors", description=__doc__)
    parser.add_argument("--out", default="", help="where the runs are; default outputs")
    parser.add_argument("--preset", default="", help="whose runs; default all presets that were run")
    parser.add_argument("--device", default="", help="auto (default), cpu or cuda")
    parser.add_argument("--results", default="", help="where numbers and tables go; default results/")
    given = parser.parse_args(argv)
    with user_errors():
        out = Path(given.out or os.environ.get("CMIXUP_OUT") or "outputs")
        results, device = Path(given.results or RESULTS), pick_device(given.device or "auto")
        reports = [
            r for r in finished(out, EXPERIMENT) if not r["options"] and given.preset in ("", r["preset"])
        ]  # fmt: skip
        if not reports:
            which = f", preset {given.preset!r}" if given.preset else ""
            raise InputError(f"out {out} holds no finished run of {EXPERIMENT}{which}; make reproduce-{EXPERIMENT}")
        if not given.results:
            check_publishable(reports)
        reports.sort(key=lambda r: (r["dataset"], r["preset"]))
        for (dataset, preset), group in groupby(reports, key=lambda r: (r["dataset"], r["preset"])):
            path = results / FOLDER / f"{dataset}_{preset}.csv"
            rows = score(list(group), out, device, read_csv(path) if path.is_file() else ())
            write_atomically(path, to_csv(rows, columns(rows)))
        for name, text in render_tables(results).items():
            write_atomically(results / name, text)
            print(text)
        for path in draw(results):
            print(f"figure: {path}")


if __name__ == "__main__":
    main()
