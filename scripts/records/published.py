"""The published runs: a table of them and a file of their predictions for each experiment and dataset.

<results>/runs/<experiment>/<dataset>.csv and .json          runs (`scripts.records.run_tables`); .csv.xz of the study
<results>/predictions/<experiment>/<dataset>.h5              predictions (`scripts.records.prediction_store`)
<results>/curves/<experiment>/<dataset>/<method>.csv         curves over epochs, of runs that tracked a split

A run takes the place of the one of the same cell and seed, and all others stay.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypeVar

from scripts.records.experiment import RESULTS
from scripts.records.prediction_store import read_cells, write_cells
from scripts.records.records import Report, options_text
from scripts.records.run_tables import read_runs, write_runs
from scripts.stats.scored import Parts

R = TypeVar("R", bound=Report)
#: Experiments of the study of when mixing helps begin so. They are read where they are asked for: no table has them.
STUDY = "study"
EVERY_STUDY = (f"{STUDY}*",)
PREDICTED = range(10)  # seeds whose predictions are published; of later ones scores and facts alone


def cell_name(report: Report) -> str:
    """Return how a report's cell is called among the predictions of its file."""
    names = [report["method"], report["model"], report["preset"], options_text(report["options"])]
    return " ".join(filter(None, names))


def curves_file(results: Path, report: Report) -> Path:
    """Return where the curve of a report's run over its epochs is kept, if it is."""
    return results / "curves" / report["experiment"] / report["dataset"] / f"{report['method']}.csv"


def runs_file(results: Path, experiment: str, dataset: str) -> Path:
    """Return the table with the runs of an experiment on a dataset; those of the study, which are many, are packed."""
    ending = ".csv.xz" if experiment.startswith(STUDY) else ".csv"
    return results / "runs" / experiment / f"{dataset}{ending}"


def predictions_file(results: Path, report: Report) -> Path:
    """Return where the predictions of a report's run are kept."""
    return results / "predictions" / report["experiment"] / f"{report['dataset']}.h5"


def published_reports(
    results: Path = RESULTS, experiments: Collection[str] = (), tables: Collection[str] = ()
) -> list[dict[str, Any]]:
    """Return the reports of published runs in order of files, cells and seeds.

    They are of `experiments`, in whose names `*` stands for any letters, by default all but the study's, and on the
    datasets `tables`, by default all.
    """
    return [
        report
        for path in sorted((results / "runs").glob("*/*.csv*"))
        if any(fnmatchcase(path.parent.name, name) for name in experiments or EVERY_STUDY) == bool(experiments)
        and (not tables or dataset_of(path) in tables)
        for report in read_runs(path)
    ]


def dataset_of(path: Path) -> str:
    """Return the dataset of a table of runs."""
    return path.name.partition(".")[0]


def write_reports(results: Path, reports: Iterable[Report]) -> list[Path]:
    """Write reports into their tables, beside other runs that are there; return the tables."""
    files: dict[Path, list[Report]] = {}
    for report in reports:
        files.setdefault(runs_file(results, report["experiment"], report["dataset"]), []).append(report)
    for path, new in files.items():
        every = {report["run"]: report for report in (*read_runs(path), *new)}
        path.parent.mkdir(parents=True, exist_ok=True)
        write_runs(path, every.values())
    return list(files)


def with_predictions(results: Path, reports: Iterable[R]) -> Iterator[tuple[R, Parts]]:
    """Yield reports, in the order of their files, each with what is kept of its run's predictions by split, or {}."""
    for path, group in itertools.groupby(reports, lambda report: predictions_file(results, report)):
        cells = read_cells(path)
        for report in group:
            yield report, cells.get(cell_name(report), {}).get(report["seed"], {})


def keep_predictions(results: Path, kept: Iterable[tuple[Report, Parts]]) -> None:
    """Write the predictions of runs into their files, beside those of other runs that are there."""
    files: dict[Path, dict[str, dict[int, Parts]]] = {}
    for report, parts in kept:
        file = files.setdefault(predictions_file(results, report), {})
        file.setdefault(cell_name(report), {})[report["seed"]] = parts
    for path, new in files.items():
        old = read_cells(path)
        write_cells(path, {name: {**old.get(name, {}), **new.get(name, {})} for name in {*old, *new}})
