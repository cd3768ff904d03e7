"""The published runs, their reports as JSON lines and their predictions as HDF5: of each method on a dataset a file.

<results>/runs/<experiment>/<dataset>/<method>.jsonl        a line for each run, its report as it was made
<results>/predictions/<experiment>/<dataset>/<method>.h5    a group for each cell: all seeds of one configuration
<results>/runs/study/<table>.jsonl.gz                       the study's, of all methods on a table
<results>/predictions/study/<table>.h5

A line or prediction takes the place of the one of the same run, and all others stay.
"""

from __future__ import annotations

import functools
import gzip
import json
import zlib
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from cmixup.errors import InputError
from cmixup.files import write_atomically
from scripts.driver.predictions import Parts, read_cells, write_cells
from scripts.driver.reads import remembered
from scripts.driver.runs import parse_report, strict
from scripts.records.experiment import RESULTS
from scripts.records.layer_choice import choose_variants
from scripts.records.records import check_unique, options_text, records_frame

Report = Mapping[str, Any]
#: Experiments of the study of when mixing helps. What they say is read where they are asked for, and no table has it.
STUDIES = ("study", "study_small_validation", "study_protocol2", "study_sea_level")
#: Its later parts: a file for each table and method, so that a publication rewrites no file of another.
LATER_STUDIES = ("study_more_splits", "study_no_search", "study_likelihood", "study_network_wide",
                 "study_network_realmlp", "study_network_tabm")  # fmt: skip


def cell_of(report: Report) -> str:
    """Return the name of a report's cell: its run without the seed."""
    return str(report["run"]).rpartition("/")[0]


def cell_name(report: Report) -> str:
    """Return how a report's cell is called among the predictions of its file: by model, preset and options."""
    shared = [report["experiment"], report["method"]] if report["experiment"] in STUDIES else []
    found = " ".join([*shared, report["model"], report["preset"], options_text(report["options"])])
    return found.strip().replace("/", "|")  # h5py would make a group for every part


def _place(report: Report) -> str:
    if report["experiment"] in STUDIES:
        return f"{STUDIES[0]}/{report['dataset']}"
    return "/".join(str(report[key]) for key in ("experiment", "dataset", "method"))


def curves_file(results: Path, report: Report) -> Path:
    """Return where the curve of a report's run over its epochs is kept, if it is."""
    return results / "curves" / f"{_place(report)}.csv"


def predictions_file(results: Path, report: Report) -> Path:
    """Return where the predictions of a report's cell are kept."""
    return results / "predictions" / f"{_place(report)}.h5"


def published_reports(
    results: Path = RESULTS, experiments: Collection[str] = (), tables: Collection[str] = ()
) -> list[dict[str, Any]]:
    """Return the reports of published runs in order of files, cells and seeds.

    Args:
        results: the folder results/.
        experiments: whose; default all but the study's.
        tables: of the study alone, on which; default all.
    """
    files = report_files(results, experiments)
    files = [p for p in files if not tables or {p.name.partition(".")[0], p.parent.name} & set(tables)]
    reports = (report for path in files for report in _reports(path))
    return [report for report in reports if not experiments or report["experiment"] in experiments]


def report_files(results: Path, experiments: Collection[str] = ()) -> list[Path]:
    """Return the files with published reports of some experiments, of all but the study's by default, in order."""
    folders = {STUDIES[0] if name in STUDIES else name for name in experiments}
    apart = {STUDIES[0], *LATER_STUDIES}
    every = {path: path.relative_to(results / "runs").parts[0] for path in (results / "runs").rglob("*.jsonl*")}
    return sorted(path for path, own in every.items() if (own in folders if folders else own not in apart))


def _lines(path: Path) -> list[str]:
    if not path.is_file():
        return []
    content = path.read_bytes()
    try:
        return (gzip.decompress(content) if path.suffix == ".gz" else content).decode().splitlines()
    except (OSError, EOFError, zlib.error, UnicodeDecodeError) as error:
        raise InputError(f"{path} is damaged: {' '.join(str(error).split())}") from None


def _reports(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the reports of a file.

    Raises:
        InputError: a line that is no report, by its file and number.
    """
    for n, line in enumerate(_lines(path), 1):
        try:
            yield parse_report(line)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            reason = " ".join(f"{type(error).__name__}: {error}".split())[:120]
            raise InputError(f"{path}, line {n} is no report of a run: {reason}") from None


def published_seeds(cell: str, results: Path = RESULTS) -> set[int]:
    """Return the seeds of a cell, by the name that `cell_of` gives, that are published."""
    experiment, dataset, _, method, _ = cell.split("/")
    path = results / "runs" / experiment / dataset / f"{method}.jsonl"
    return _seeds(path, path.stat().st_mtime_ns).get(cell, set()) if path.is_file() else set()


@functools.lru_cache(maxsize=256)
def _seeds(path: Path, written: int) -> dict[str, set[int]]:  # noqa: ARG001, a key
    found: dict[str, set[int]] = {}
    for report in map(json.loads, _lines(path)):
        found.setdefault(cell_of(report), set()).add(report["seed"])
    return found


@remembered
def published_records(results: Path = RESULTS) -> pd.DataFrame:
    """Return the tidy records of all published runs, each method at the layer that is better on validation.

    Raises:
        InputError: two runs that differ in nothing but their values.
    """
    records = records_frame(choose_variants(published_reports(results)))
    check_unique(records)
    return records


def write_reports(results: Path, reports: Iterable[Report]) -> list[Path]:
    """Write reports into their files, beside other runs that are there; return the files."""
    files: dict[Path, list[Report]] = {}
    for report in reports:
        ending = ".jsonl.gz" if report["experiment"] in STUDIES else ".jsonl"
        files.setdefault(results / "runs" / f"{_place(report)}{ending}", []).append(report)
    for path, new in files.items():
        lines = {(cell_of(r), r["seed"]): line for line in _lines(path) for r in [json.loads(line)]}
        lines |= {(cell_of(r), r["seed"]): json.dumps(strict(r), allow_nan=False) for r in new}
        text = "".join(f"{lines[key]}\n" for key in sorted(lines))
        write_atomically(path, gzip.compress(text.encode(), mtime=0) if path.suffix == ".gz" else text)
    return list(files)


def keep_predictions(results: Path, kept: Iterable[tuple[Report, Parts]]) -> None:
    """Write the predictions of runs into their files, beside those of other runs that are there."""
    files: dict[Path, dict[str, dict[int, Parts]]] = {}
    for report, parts in kept:
        file = files.setdefault(predictions_file(results, report), {})
        file.setdefault(cell_name(report), {})[report["seed"]] = parts
    for path, new in files.items():
        old = read_cells(path)
        write_cells(path, {name: {**old.get(name, {}), **new.get(name, {})} for name in {*old, *new}})
