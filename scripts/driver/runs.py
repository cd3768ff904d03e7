"""Runs as folders.

A run's folder holds `config.yaml`, `report.json`, `history.csv`, `predictions.h5`, `checkpoint.pt` (the best epoch's
weights), `model.json`, of a table `preprocessing.json`, and, written last, `DONE`; `cmixup.load_run` predicts with it.
A folder without `DONE` is not a result: the run has not ended, or has failed and its report says where. `DONE` lists
sizes and SHA-256 of the other files: a run of which one was cut or emptied is not done, either, and a file with
other bytes is refused when it is read.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cmixup.done import DONE, checked, listed_files
from cmixup.errors import InputError

REPORT, HISTORY, CONFIG = "report.json", "history.csv", "config.yaml"
LONGEST_NAME = 120  # of a folder


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
