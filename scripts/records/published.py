"""The published runs: their reports as lines of text and their predictions, of each method on a dataset a file.

<results>/runs/<experiment>/<dataset>/<method>.jsonl         reports (`scripts.records.lines`)
<results>/predictions/<experiment>/<dataset>/<method>.xz     predictions (`scripts.records.packed`)
<results>/runs/study/<table>.jsonl                           those of the study that most cells are of, a file a table:
<results>/predictions/study/<table>.xz                       its methods share many runs

A run takes the place of the one of the same cell and seed, and all others stay. Stores of earlier versions, whose lines
are whole reports and whose predictions are HDF5, are read; a file is written anew when a run comes into it.
"""

from __future__ import annotations

import functools
import gzip
import itertools
import zlib
from collections.abc import Collection, Iterable, Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd

from cmixup.errors import InputError
from cmixup.files import write_atomically
from scripts.driver.predictions import Parts
from scripts.driver.runs import UNROUNDED, strict_json, with_numbers
from scripts.records.experiment import RESULTS
from scripts.records.lines import cell_of, from_lines, to_lines
from scripts.records.packed import read_cells, targets_file, write_cells
from scripts.records.reads import remember_reads
from scripts.records.records import Report, check_unique, choose_variants, options_text, records_frame

R = TypeVar("R", bound=Report)
#: Experiments of the study of when mixing helps begin so. What they say is read where it is asked for: no table has it.
STUDY = "study"
EVERY_STUDY = (f"{STUDY}*",)
#: Those of them that share a file for each table. Others have one for each method, as all experiments do, so that a
#: publication rewrites no file of another.
TOGETHER = ("study_protocol2", "study_sea_level")
#: Parts of the study with several settings, by the one that came first: later ones have files of their own.
FIRST = {"study_no_search": "rows100", "study_likelihood": "rows100", "study_network_wide": "rows100",
         "study_network_realmlp": "rows100", "study_network_tabm": "rows100"}  # fmt: skip
OLD_ENDING = ".jsonl.gz"  # of files of `TOGETHER` in earlier versions


def cell_name(report: Report) -> str:
    """Return how a report's cell is called among the predictions of its file: by model, preset and options."""
    shared = [report["experiment"], report["method"]] if report["experiment"] in TOGETHER else []
    found = " ".join([*shared, report["model"], report["preset"], options_text(report["options"])])
    return found.strip().replace("/", "|")  # as earlier versions had to


def unrounded_scores(report: Report) -> Any:
    """Return the scores that a run itself has computed, of predictions that were not rounded to steps yet."""
    return report.get(UNROUNDED, report["scores"])


def _record_place(report: Report) -> str:
    if report["experiment"] in TOGETHER:
        return f"{STUDY}/{report['dataset']}"
    later = report["options"].get("condition") if report["experiment"] in FIRST else None
    setting = f"-{later}" if later not in (None, FIRST.get(report["experiment"])) else ""
    return "/".join(str(report[key]) for key in ("experiment", "dataset", "method")) + setting


def curves_file(results: Path, report: Report) -> Path:
    """Return where the curve of a report's run over its epochs is kept, if it is."""
    return results / "curves" / f"{_record_place(report)}.csv"


def reports_file(results: Path, report: Report) -> Path:
    """Return where a report is kept."""
    return results / "runs" / f"{_record_place(report)}.jsonl"


def predictions_file(results: Path, report: Report) -> Path:
    """Return where the predictions of a report's cell are kept."""
    return results / "predictions" / f"{_record_place(report)}.xz"


def stored_files(results: Path, report: Report) -> list[Path]:
    """Return the files that publishing a run may write or remove."""
    files = [place(results, report) for place in (reports_file, predictions_file, curves_file)]
    old = files[0].with_suffix(OLD_ENDING), files[1].with_suffix(".h5")
    return [*files, *old, targets_file(results, report["dataset"])]


def published_reports(
    results: Path = RESULTS, experiments: Collection[str] = (), tables: Collection[str] = ()
) -> list[dict[str, Any]]:
    """Return the reports of published runs in order of files, cells and seeds.

    Args:
        results: the folder results/.
        experiments: whose; default all but the study's.
        tables: of the study alone, on which; default all.
    """
    files = [p for p in report_files(results, experiments) if not tables or _table_of(results, p) in tables]
    reports = (report for path in files for report in read_reports(path))
    return [r for r in reports if not experiments or any(fnmatchcase(r["experiment"], each) for each in experiments)]


def report_files(results: Path, experiments: Collection[str] = ()) -> list[Path]:
    """Return the files with published reports of some experiments, of all but the study's by default, in order.

    Args:
        results: the folder results/.
        experiments: names, in which `*` stands for any letters.
    """
    files = [path for ending in (".jsonl", OLD_ENDING) for path in (results / "runs").rglob(f"*{ending}")]
    folders = {STUDY if name in TOGETHER else name for name in experiments or EVERY_STUDY}
    found = {path: any(fnmatchcase(path.relative_to(results / "runs").parts[0], each) for each in folders)
             for path in files}  # fmt: skip
    return sorted(path for path, asked in found.items() if asked == bool(experiments))


def _table_of(results: Path, path: Path) -> str:
    return path.relative_to(results / "runs").parts[1].partition(".")[0]


def _read_json(path: Path) -> Iterator[dict[str, Any]]:
    """Yield the reports of a file as JSON has them, in the order of its lines.

    Raises:
        InputError: a line that is no report, by its file and number.
    """
    try:
        content = path.read_bytes() if path.is_file() else b""
        text = (gzip.decompress(content) if path.suffix == ".gz" else content).decode()
        for report in from_lines(text.splitlines()):
            with_numbers(report)
            yield report
    except (ValueError, TypeError, KeyError, AttributeError, OSError, EOFError, zlib.error) as error:
        reason = " ".join(f"{type(error).__name__}: {error}".split())[:120]
        raise InputError(f"{path} is no file of reports: {reason}") from None


def read_reports(path: Path) -> list[dict[str, Any]]:
    """Return the reports of a file in the order of their cells and seeds.

    Raises:
        InputError: a line that is no report, by its file and number.
    """
    return sorted(map(with_numbers, _read_json(path)), key=lambda report: (cell_of(report), report["seed"]))


def published_seeds(cell: str, results: Path = RESULTS) -> set[int]:
    """Return the seeds of a cell, by the name that `cell_of` gives, that are published."""
    experiment, dataset, _, method, _ = cell.split("/")
    path = results / "runs" / experiment / dataset / f"{method}.jsonl"
    return _cell_seeds(path, path.stat().st_mtime_ns).get(cell, set()) if path.is_file() else set()


@functools.lru_cache(maxsize=256)
def _cell_seeds(path: Path, written: int) -> dict[str, set[int]]:  # noqa: ARG001, a key
    found: dict[str, set[int]] = {}
    for report in _read_json(path):
        found.setdefault(cell_of(report), set()).add(report["seed"])
    return found


@remember_reads
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
        files.setdefault(reports_file(results, report), []).append(strict_json(report))
    for path, new in files.items():
        old = path.with_suffix(OLD_ENDING)
        every = {(cell_of(report), report["seed"]): report for report in (*_read_json(old), *_read_json(path), *new)}
        write_atomically(path, to_lines(every.values()))
        old.unlink(missing_ok=True)
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
        path.with_suffix(".h5").unlink(missing_ok=True)  # the same in the form of earlier versions
