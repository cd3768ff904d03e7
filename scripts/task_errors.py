"""Compare the finished runs of Table 2 on the same test tasks.

`python -m scripts.task_errors [--out outputs] [--preset paper]`: every model's squared error on each test task, into
results/task_errors/<dataset>_<preset>.csv; from these files a table of paired differences with their intervals
(results/tables/table2_paired_<dataset>_<preset>.md) and a figure of the error on each object.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from cmixup.errors import InputError
from cmixup.files import write_atomically
from scripts.driver.cli import analysis_parser, out_folder, user_errors
from scripts.driver.devices import pick_device
from scripts.measure.load_run import check_publishable, finished
from scripts.measure.task_errors import (
    EXPERIMENT,
    FOLDER,
    columns,
    figures,
    render_tables,
    score,
)
from scripts.records.experiment import RESULTS
from scripts.records.records import read_csv, to_csv
from scripts.report.figure_files import write_figures


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    parser = analysis_parser("task_errors", __doc__, "of all presets that were run")
    given = parser.parse_args(argv)
    with user_errors():
        out = out_folder(given.out)
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
        for path in write_figures(figures(results), results):
            print(f"figure: {path}")


if __name__ == "__main__":
    main()
