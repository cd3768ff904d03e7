"""Runs as folders, from their names to the mark that they are whole.

A run's folder holds `config.yaml`, `report.json`, `history.csv`, `predictions.h5`, `checkpoint.pt` (the best epoch's
weights), `model.json`, of a table `preprocessing.json`, and, written last, `DONE`; `cmixup.load_run` predicts with it.
A folder without `DONE` is not a result: the run has not ended, or has failed and its report says where. `DONE` lists
sizes and SHA-256 of the other files: a run of which one was cut or emptied is not done, either, and a file with
other bytes is refused when it is read. A stack's runs are marked as done together or not at all, whenever the process
dies.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from cmixup.done import DONE, checked, done_text, listed_files
from cmixup.errors import InputError
from cmixup.files import DAMAGED, make_folder, set_aside, write_atomically
from cmixup.saved_run import WEIGHTS
from cmixup.training.checkpoint import RESUME_FILE
from scripts.driver.locks import LOCKS, holding_alone
from scripts.driver.predictions import PREDICTIONS, write_predictions
from scripts.stats.scored import Parts

REPORT, HISTORY, CONFIG = "report.json", "history.csv", "config.yaml"
LONGEST_NAME = 120  # of a folder
LEARNED_NOTHING = "learned_nothing"  # a fact of such a run, 1; its report says it in words under the same name
ENDING = ".ending"  # of the out folder: lists the runs of a stack that are whole and are being marked as done


def folder_name(preset: str, options: Mapping[str, Any]) -> str:
    """Name a run by its preset and every option that differs from it; what does not fit ends in a hash."""
    parts = [f"{key.removeprefix('method.')}={value}" for key, value in sorted(options.items())]
    written = ",".join([preset, *parts])
    name = re.sub(r"[^\w=,.+-]", "_", written)
    if name == written and len(name) <= LONGEST_NAME:
        # Of texts that others could be taken for: in another case, on disks that have none, or as several options.
        unlike = [value for value in options.values() if isinstance(value, str) and re.search("[A-Z,=]", value)]
        if not unlike:
            return name
        written += repr(unlike)
    digest = hashlib.sha256(written.encode()).hexdigest()[:12]
    return f"{name[:LONGEST_NAME]}-{digest}"


def begin_run(folder: Path, config: str) -> None:
    """Make a run's folder and write its configuration; whatever was there no longer counts as done.

    Raises:
        OSError: the folder cannot be written.
    """
    make_folder(folder)
    (folder / DONE).unlink(missing_ok=True)
    write_atomically(folder / CONFIG, config)


def write_run(
    folder: Path,
    report: Mapping[str, Any],
    history: Sequence[Mapping[str, float]],
    state: Mapping[str, Tensor] | None,
    predictions: Parts,
    *,
    extras: Mapping[str, str] | None = None,
) -> None:
    """Write a run's results, its weights if there is a `state`, and the texts `extras` by file name."""
    (folder / WEIGHTS).unlink(missing_ok=True)
    if state is not None:
        buffer = io.BytesIO()
        torch.save(dict(state), buffer)
        write_atomically(folder / WEIGHTS, buffer.getvalue())
    write_predictions(folder / PREDICTIONS, {report["seed"]: predictions})
    write_report(folder, report, history)
    for name, text in (extras or {}).items():
        write_atomically(folder / name, text)


def write_report(folder: Path, report: Mapping[str, Any], history: Sequence[Mapping[str, float]]) -> None:
    """Write the report and the history of a run; a run that has failed has nothing more."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(history[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(history)
    write_atomically(folder / HISTORY, stream.getvalue())
    write_atomically(folder / REPORT, json.dumps(strict_json(report), indent=1, allow_nan=False) + "\n")


def mark_done(folder: Path) -> None:
    """Write the `DONE` of a run that is whole."""
    kept = [path for path in sorted(folder.iterdir()) if path.is_file() and path.name not in (DONE, RESUME_FILE)]
    listed = done_text(path for path in kept if path.suffix != DAMAGED and path.name[0] != ".")
    write_atomically(folder / DONE, listed)


def mark_stack_done(out: Path, folders: Sequence[Path]) -> None:
    """Mark runs that are whole as done, all or none, whatever happens: what was left of a stack would be another stack.

    They are written down in one file first; whoever finds it later, as this process has died, goes on marking.

    Args:
        out: folder that holds `runs`.
        folders: of the runs, whose locks are held.
    """
    if len(folders) == 1:
        mark_done(folders[0])
    if len(folders) < 2:
        return
    with holding_alone(out / LOCKS, ENDING):
        _mark_listed(out)
        write_atomically(out / ENDING, json.dumps([folder.relative_to(out).as_posix() for folder in folders]))
        _mark_listed(out)


def finish_marking(out: Path) -> None:
    """Finish marking a stack below `out` as done where a process died while doing so."""
    if (out / ENDING).is_file():
        with holding_alone(out / LOCKS, ENDING):
            _mark_listed(out)


def _mark_listed(out: Path) -> None:
    if not (out / ENDING).is_file():
        return
    for folder in (out / name for name in json.loads((out / ENDING).read_text())):
        (folder / RESUME_FILE).unlink(missing_ok=True)
        if (folder / REPORT).is_file() and not (folder / DONE).is_file():
            mark_done(folder)
    (out / ENDING).unlink()


def is_done(folder: Path) -> bool:
    """Return whether a run's folder holds a finished run, with nothing of it damaged."""
    return (folder / DONE).is_file() and find_damage(folder) is None


def find_damage(folder: Path) -> tuple[Path, str] | None:
    """Return the first damaged file of a finished run and what is wrong with it, or None; contents are not read.

    A file of another size than `DONE` says is damaged; one that somebody has removed is not, but for the report.
    """
    try:
        sizes = {name: entry.size for name, entry in listed_files(folder).items()}
    except InputError:
        return folder / DONE, "is no list of files"
    if REPORT not in sizes:
        return folder / DONE, "lists no report"
    for name, size in sizes.items():
        path = folder / name
        if not path.is_file():
            if name == REPORT:
                return path, "is not there"
        elif path.stat().st_size != size:
            return path, f"has {path.stat().st_size} bytes, not {size}"
    return None


def set_damage_aside(folder: Path) -> None:
    """Set aside the damaged files of a run that counted as finished, and print a line for each."""
    while (folder / DONE).is_file() and (damage := find_damage(folder)):
        path, why = damage
        if path.is_file():
            set_aside(path, why)
        if path.name != DONE:
            (folder / DONE).unlink()


def strict_json(value: Any) -> Any:
    """Return `value` as strict JSON takes it: NaN becomes null, and infinity the word "inf" or "-inf"."""
    if isinstance(value, Mapping):
        return {key: strict_json(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [strict_json(one) for one in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


def number_of(value: float | str | None) -> float:
    """Return a number that `strict_json` has made a value of JSON."""
    return math.nan if value is None else float(value) if isinstance(value, str) else value


def with_numbers(report: Mapping[str, Any]) -> dict[str, Any]:
    """Return a report that JSON gave with numbers for what `strict_json` made of those that are not finite."""
    scores = {part: {name: number_of(v) for name, v in own.items()} for part, own in report["scores"].items()}
    return {**report, "scores": scores, "facts": {name: number_of(v) for name, v in report["facts"].items()}}


def read_report(folder: Path) -> dict[str, Any]:
    """Return the report of a run's folder; a score that is null is NaN again."""
    return with_numbers(json.loads(checked(folder / REPORT).read_text()))


def load_reports(root: Path) -> list[dict[str, Any]]:
    """Return the reports of all finished runs below `root`, in order of their folders' names.

    Runs with a damaged file are left out, and a line says so: training them again mends them.
    """
    reports = []
    for folder in (done.parent for done in sorted(root.rglob(DONE))):
        if damage := find_damage(folder):
            print(f"{damage[0]} {damage[1]}: the run does not count; its command trains it again", file=sys.stderr)
            continue
        try:
            reports.append(read_report(folder))
        except InputError as error:
            print(f"{error}; the run does not count", file=sys.stderr)
    return reports
