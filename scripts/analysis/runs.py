"""Finished runs, read back: their reports and datasets, and the files that an analysis of them leaves."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from cmixup.errors import InputError
from cmixup.files import write_atomically
from datasets.common.base import Dataset
from scripts.config.arguments import OUT, Args
from scripts.config.parts import check_part
from scripts.driver.provenance import check_committed
from scripts.driver.runs import load_reports
from scripts.records.csv_rows import read_csv
from scripts.records.experiment import RESULTS
from scripts.records.run_tables import Report, choose_variants, frame_of
from scripts.report.rendering import write_figures

RESULTS_KEY = "folder of numbers, tables and figures; default results"
KEYS = {
    "out": OUT,
    "preset": "whose runs; default paper",
    "device": "auto, cpu or cuda; default auto",
    "results": RESULTS_KEY,
}


def runs_of(
    args: Args, experiments: Sequence[str], wanted: Callable[[Report], bool], about: str
) -> list[dict[str, Any]]:
    """Return the finished runs to analyse, the better layer of each method chosen: rows with what their cells share.

    Raises:
        InputError: there is none `about` which the analysis is, or runs of uncommitted code or on synthetic data
            would enter results/.
    """
    runs = choose_variants(frame_of(report for e in experiments for report in load_reports(args.out / "runs" / e)))
    rows = [{**run["shared"], **run} for run in runs.to_dict("records")]
    reports = [r for r in rows if r["experiment"] in experiments and wanted(r)]
    if not reports:
        raise InputError(f"out {args.out} holds no finished run of {about}")
    if "results" in args:
        return reports
    try:
        check_committed({str(report["run"]): report for report in reports})
    except InputError as error:
        raise InputError(f"{error}, or give results=") from None
    for report in reports:
        if report["config"]["dataset"].get("synthetic"):
            raise InputError(f"{report['run']} is of synthetic data; its numbers go elsewhere: give results=")
    return reports


def dataset_of(config: Mapping[str, Any], **changes: Any) -> Dataset:
    """Return the dataset of a run's configuration, with other values of some of its options."""
    dataset = check_part("dataset", {**config, **changes}).build()
    assert isinstance(dataset, Dataset)
    return dataset


def results_of(args: Args) -> Path:
    """Return the folder that an analysis writes into: `results=`, else the project's."""
    return Path(args.get("results", RESULTS))


def merge_rows(path: Path, new: Sequence[Report], *keys: str) -> list[Report]:
    """Return the rows of a CSV file, if it is there, and new ones; of several with the same `keys` the last."""
    rows = [*(read_csv(path) if path.is_file() else []), *new]
    return [*{tuple(str(row[key]) for key in keys): row for row in rows}.values()]


def write_analysis(
    args: Args, texts: Mapping[str, str] | None = None, figures: Mapping[str, Figure] | None = None
) -> None:
    """Write numbers and tables, then pictures, by their paths below `results=`, and print where they are."""
    results = results_of(args)
    for name, text in (texts or {}).items():
        write_atomically(results / name, text)
        print(text if name.endswith(".md") else f"numbers: {results / name}")
    for path in write_figures(figures or {}, results):
        print(f"figure: {path}")
