"""Runs as folders.

A run's folder holds `config.yaml`, `report.json`, `history.csv`, `predictions.h5`, `checkpoint.pt` (the best epoch's
weights), `model.json`, of a table `preprocessing.json`, and, written last, `DONE`; `cmixup.load_run` predicts with it.
A folder without `DONE` is not a result: the run has not ended, or has failed and its report says where. `DONE` lists
sizes and SHA-256 of the other files: a run of which one was cut or emptied is not done, either, and a file with
other bytes is refused when it is read.
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
from cmixup.files import DAMAGED, make_folder, remove_stale, set_aside, write_atomically
from cmixup.saved_run import WEIGHTS
from cmixup.training.checkpoint import RESUME_FILE
from scripts.driver.predictions import PREDICTIONS, Parts, write_predictions

REPORT, HISTORY, CONFIG = "report.json", "history.csv", "config.yaml"
LONGEST_NAME = 120  # of a folder
MACHINE_KEYS = ("out", "weights", "resume")  # of a configuration: where a run is kept, how much of it, and from where


def folder_name(preset: str, options: Mapping[str, Any]) -> str:
    """Name a run by its preset and every option that differs from it; what does not fit ends in a hash."""
    parts = [f"{key.removeprefix('method.')}={value}" for key, value in sorted(options.items())]
    written = ",".join([preset, *parts])
    name = re.sub(r"[^\w=,.+-]", "_", written)
    if name == written and len(name) <= LONGEST_NAME:
        return name
    digest = hashlib.sha256(written.encode()).hexdigest()[:12]
    return f"{name[:LONGEST_NAME]}-{digest}"


def is_done(folder: Path) -> bool:
    """Return whether a run's folder holds a finished run, with nothing of it damaged."""
    return (folder / DONE).is_file() and damage(folder) is None


def damage(folder: Path) -> tuple[Path, str] | None:
    """Return the first damaged file of a finished run and what is wrong with it, or None; contents are not read.

    A file of another size than `DONE` says is damaged; one that somebody has removed is not, but for the report. Runs
    of earlier versions have an empty `DONE`: of those the report must be readable, and nothing empty.
    """
    try:
        sizes = {name: each.size for name, each in listed_files(folder).items()}
    except InputError:
        return folder / DONE, "is no list of files"
    for name in (REPORT, CONFIG, HISTORY, *sizes):
        path = folder / name
        found = path.stat().st_size if path.is_file() else None
        if (found is None and name == REPORT) or (found is not None and found != sizes.get(name, found or 1)):
            return path, "is not there" if found is None else f"has {found} bytes, not {sizes.get(name, 'some')}"
    if not sizes:
        try:
            earlier = "format" not in read_report(folder)
        except Exception:  # whatever a damaged file may raise
            return folder / REPORT, "cannot be read"
        return None if earlier else (folder / DONE, "is empty")
    return None


def set_damage_aside(folder: Path) -> None:
    """Set aside the damaged files of a run that counted as finished, and say so in a line each."""
    while (folder / DONE).is_file() and (found := damage(folder)):
        path, why = found
        if path.is_file():
            set_aside(path, why)
        if path.name != DONE:
            (folder / DONE).unlink()


def begin_run(folder: Path, config: str) -> None:
    """Make a run's folder and write its configuration; whatever was there no longer counts as done.

    Raises:
        OSError: the folder cannot be written.
    """
    make_folder(folder)
    (folder / DONE).unlink(missing_ok=True)
    for name in (REPORT, HISTORY, PREDICTIONS, WEIGHTS, RESUME_FILE, DONE):
        remove_stale(folder / name)
    write_atomically(folder / CONFIG, config)


def recorded_config(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a resolved configuration that is recorded: all but folders of this machine."""
    return {key: value for key, value in plain.items() if key not in MACHINE_KEYS}


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


def mark_done(folder: Path) -> None:
    """Write the `DONE` of a run that is whole."""
    kept = [path for path in sorted(folder.iterdir()) if path.is_file() and path.name not in (DONE, RESUME_FILE)]
    listed = done_text(path for path in kept if path.suffix != DAMAGED and path.name[0] != ".")
    write_atomically(folder / DONE, listed)


def write_report(folder: Path, report: Mapping[str, Any], history: Sequence[Mapping[str, float]]) -> None:
    """Write the report and the history of a run; a run that has failed has nothing more."""
    write_atomically(folder / HISTORY, _history_csv(history))
    write_atomically(folder / REPORT, json.dumps(strict(report), indent=1, allow_nan=False) + "\n")


def strict(value: Any) -> Any:
    """Return `value` as strict JSON takes it: NaN becomes null, and infinity the word "inf" or "-inf"."""
    if isinstance(value, Mapping):
        return {key: strict(each) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [strict(each) for each in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value


def parse_report(text: str) -> dict[str, Any]:
    """Return a report from its JSON text; a score that is null is NaN again."""
    report: dict[str, Any] = json.loads(text)
    scores = {part: {name: _number(v) for name, v in each.items()} for part, each in report["scores"].items()}
    return {**report, "scores": scores, "facts": {name: _number(v) for name, v in report["facts"].items()}}


def read_report(folder: Path) -> dict[str, Any]:
    """Return the report of a run's folder."""
    return parse_report(checked(folder / REPORT).read_text())


def _number(value: float | str | None) -> float:
    return math.nan if value is None else float(value) if isinstance(value, str) else value


def _history_csv(history: Sequence[Mapping[str, float]]) -> str:
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(history[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(history)
    return stream.getvalue()


def load_reports(root: Path) -> list[dict[str, Any]]:
    """Return the reports of all finished runs below `root`, in order of their folders' names.

    Runs with a damaged file are left out, and a line says so: training them again mends them.
    """
    reports = []
    for folder in (done.parent for done in sorted(root.rglob(DONE))):
        if found := damage(folder):
            print(f"{found[0]} {found[1]}: the run does not count; its command trains it again", file=sys.stderr)
            continue
        try:
            reports.append(read_report(folder))
        except InputError as error:
            print(f"{error}; the run does not count", file=sys.stderr)
    return reports
