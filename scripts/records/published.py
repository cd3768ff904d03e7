"""The published runs: a table of them and a file of their predictions for each experiment and dataset.

<results>/runs/<experiment>/<dataset>.csv and .json          runs (`scripts.records.run_tables`); .csv.xz of the study
<results>/predictions/<experiment>/<dataset>.h5              predictions (`scripts.records.prediction_store`)
<results>/curves/<experiment>/<dataset>/<method>.csv         curves over epochs, of runs that tracked a split

A run takes the place of the one of the same cell and seed, and all others stay.
"""

from collections.abc import Collection, Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pandas as pd

from scripts.records.experiment import RESULTS
from scripts.records.prediction_store import read_cells, write_cells
from scripts.records.run_tables import (
    CELL,
    Pairs,
    Report,
    Row,
    frame_of,
    read_frame,
    read_pairs,
    row_of,
    shared_of,
    write_pairs,
)
from scripts.stats.scored import Parts

#: Experiments of the study of when mixing helps begin so. They are read where they are asked for: no table has them.
STUDY = "study"
EVERY_STUDY = (f"{STUDY}*",)
PREDICTED = range(10)  # seeds whose predictions are published; of later ones scores and facts alone


def cell_name(run: Row) -> str:
    """Return the name of a run's cell in its file of predictions, where "/" would begin a group."""
    return " ".join(filter(None, (run[name] for name in CELL))).replace("/", "|")


def runs_file(results: Path, experiment: str, dataset: str) -> Path:
    """Return the table with the runs of an experiment on a dataset; those of the study, which are many, are packed."""
    ending = ".csv.xz" if experiment.startswith(STUDY) else ".csv"
    return results / "runs" / experiment / f"{dataset}{ending}"


def predictions_file(results: Path, experiment: str, dataset: str) -> Path:
    """Return where the predictions of an experiment's runs on a dataset are kept."""
    return results / "predictions" / experiment / f"{dataset}.h5"


def run_files(results: Path, experiments: Collection[str] = (), tables: Collection[str] = ()) -> list[Path]:
    """Return the tables of `experiments`, in whose names `*` stands for any letters, by default all but the study's.

    They are on the datasets `tables`, by default on all.
    """
    return [
        path
        for path in sorted((results / "runs").glob("*/*.csv*"))
        if any(fnmatchcase(path.parent.name, name) for name in experiments or EVERY_STUDY) == bool(experiments)
        and (not tables or dataset_of(path) in tables)
    ]


def published_runs(
    results: Path = RESULTS, experiments: Collection[str] = (), tables: Collection[str] = ()
) -> pd.DataFrame:
    """Return the published runs of `run_files`, a row each, in order of files, cells and seeds."""
    frames = [read_frame(path) for path in run_files(results, experiments, tables)]
    return pd.concat(frames, ignore_index=True) if frames else frame_of(())


def dataset_of(path: Path) -> str:
    """Return the dataset of a table of runs."""
    return path.name.partition(".")[0]


def write_reports(results: Path, reports: Iterable[Report]) -> list[Path]:
    """Write reports into their tables, beside other runs that are there; return the tables."""
    places: dict[tuple[str, str], list[tuple[Report, Row]]] = {}
    for report in reports:
        pair = shared_of(report), row_of(report)
        places.setdefault((report["experiment"], report["dataset"]), []).append(pair)
    return [add_runs(results, *place, pairs) for place, pairs in places.items()]


def add_runs(results: Path, experiment: str, dataset: str, pairs: Pairs) -> Path:
    """Write runs into their table, beside others that are there; return the table."""
    path = runs_file(results, experiment, dataset)
    write_pairs(path, experiment, dataset, [*read_pairs(path), *pairs])
    return path


def with_predictions(results: Path, runs: pd.DataFrame) -> Iterator[tuple[dict[str, Any], Parts]]:
    """Yield runs in the order of their files, each with what is kept of its predictions by split, or {}."""
    for (experiment, dataset), group in runs.groupby(["experiment", "dataset"], sort=False):
        cells = read_cells(predictions_file(results, experiment, dataset))
        for run in group.dropna(axis="columns", how="all").to_dict("records"):
            yield run, cells.get(cell_name(run), {}).get(run["seed"], {})


def keep_predictions(results: Path, kept: Iterable[tuple[Report, Parts]]) -> None:
    """Write the predictions of runs into their files, beside those of other runs that are there."""
    files: dict[Path, dict[str, dict[int, Parts]]] = {}
    for report, parts in kept:
        file = files.setdefault(predictions_file(results, report["experiment"], report["dataset"]), {})
        file.setdefault(cell_name(row_of(report)), {})[report["seed"]] = parts
    for path, new in files.items():
        old = read_cells(path)
        write_cells(path, {name: {**old.get(name, {}), **new.get(name, {})} for name in {*old, *new}})
