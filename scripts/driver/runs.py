"""Runs as folders.

A run's folder holds `config.yaml`, `report.json`, `history.csv`, `predictions.h5`, `checkpoint.pt` (the best epoch's
weights), `model.json`, of a table `preprocessing.json`, and, written last, `DONE`; `cmixup.load_run` predicts with it.
A folder without `DONE` is not a result: the run has not ended, or has failed and its report says where. `DONE` lists
the sizes of the other files, so that one that was cut or emptied is seen: such a run is not done, either.
"""

from __future__ import annotations

import contextlib
import csv
import functools
import hashlib
import io
import json
import math
import platform
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from cmixup.files import DAMAGED, make_folder, remove_stale, set_aside, write_atomically
from cmixup.saved_run import WEIGHTS
from cmixup.training.checkpoint import RESUME_FILE
from scripts.driver.predictions import PREDICTIONS, Parts, write_predictions

REPORT, HISTORY, CONFIG, DONE = "report.json", "history.csv", "config.yaml", "DONE"
FORMAT = 2  # of a run's folder, in its report: `DONE` lists the files
LONGEST_NAME = 120  # of a folder
CODE = Path(__file__).resolve().parents[2]  # the checkout that runs
CODE_FOLDERS = ("cmixup", "configs", "datasets", "models", "scripts")
CARRIED = ".commit.json"  # which commit it is, where it was carried without git
GIT = ("git", "--no-optional-locks", "-C")  # in no other git's way
NUMBERS_FROM = ("cmixup", "datasets", "models")  # folders of sources
MACHINE_KEYS = ("out", "weights", "resume")  # of a configuration: where a run is kept, how much of it, and from where
PACKAGES = ("torch", "numpy", "scikit-learn", "hydra-core", "torchvision", "wilds", "PyTDC")


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
    """Return the first damaged file of a finished run and what is wrong with it, or None.

    A file of another size than `DONE` says is damaged; one that somebody has removed is not, but for the report. Runs
    of earlier versions have an empty `DONE`: of those the report must be readable, and nothing empty.
    """
    try:
        sizes = json.loads((folder / DONE).read_text() or "{}")
        wrong = not isinstance(sizes, dict)
    except ValueError:
        sizes, wrong = {}, True
    if wrong:
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
    """Write the `DONE` of a run that is whole: the sizes of its files."""
    kept = [path for path in sorted(folder.iterdir()) if path.is_file() and path.name not in (DONE, RESUME_FILE)]
    sizes = {path.name: path.stat().st_size for path in kept if path.suffix != DAMAGED and path.name[0] != "."}
    write_atomically(folder / DONE, json.dumps(sizes))


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
    return parse_report((folder / REPORT).read_text())


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
    folders = [done.parent for done in sorted(root.rglob(DONE))]
    for path, why in filter(None, map(damage, folders)):
        print(f"{path} {why}: the run does not count; its command trains it again", file=sys.stderr)
    return [read_report(folder) for folder in folders if is_done(folder)]


def environment(device: torch.device, code: Path = CODE) -> dict[str, Any]:
    """Return what a reader needs to repeat a run: commit, package versions, Python, device.

    The code counts as dirty when a tracked file differs from the commit, or when an untracked file lies below one of
    `CODE_FOLDERS`: the commit does not say what such a file did.

    Args:
        device: what the run trains on.
        code: the checkout that holds the code.
    """
    versions = {}
    for package in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    commit = _head(code)
    return {
        "commit": commit or carried_commit(code),
        "dirty": is_dirty(code) if commit else not carried_commit(code),
        "versions": {"python": platform.python_version(), **versions},
        "device": device_name(device),
        "threads": torch.get_num_threads(),
    }


@functools.cache
def code_digest(code: Path = CODE) -> str:
    """Return a digest of the sources that numbers depend on, committed or not, as twelve hexadecimal digits."""
    return _digest(code, NUMBERS_FROM, (".py",))[:12]


def note_commit(code: Path = CODE) -> None:
    """Write which commit the code is, for a machine that it is carried to without git; nothing if it is dirty."""
    commit = _head(code)
    if commit and not is_dirty(code):
        write_atomically(
            code / CARRIED, json.dumps({"commit": commit, "code": _digest(code, CODE_FOLDERS, (".py", ".yaml"))}) + "\n"
        )


def carried_commit(code: Path) -> str:
    """Return the commit that `note_commit` wrote where the code is still what it was then, else nothing."""
    path = code / CARRIED
    noted = json.loads(path.read_text()) if path.is_file() else {}
    return str(noted["commit"]) if noted.get("code") == _digest(code, CODE_FOLDERS, (".py", ".yaml")) else ""


def _digest(code: Path, folders: Sequence[str], suffixes: Sequence[str]) -> str:
    """Return a hash of the names and contents of the files with these suffixes below some folders."""
    files = [f for folder in folders for f in sorted((code / folder).rglob("*")) if f.suffix in suffixes]
    texts = b"".join(f"{file.relative_to(code).as_posix()}\0".encode() + file.read_bytes() for file in files)
    return hashlib.sha256(texts).hexdigest()


def is_dirty(code: Path) -> bool:
    """Return whether the code differs from its commit; see `environment`."""
    changed = _git(code, "status", "--porcelain", "--untracked-files=no")
    untracked = _git(code, "ls-files", "--others", "--exclude-standard", "--", *CODE_FOLDERS)
    return bool(changed or untracked)


def _head(code: Path) -> str:
    return _git(code, "rev-parse", "HEAD")


def _git(code: Path, *command: str) -> str:
    try:
        done = subprocess.run([*GIT, str(code), *command], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


def device_name(device: torch.device) -> str:
    """Return the kind of a device with the name of its processor, such as "cpu: AMD EPYC"."""
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else _cpu_name()
    return f"{device.type}: {name}"


@functools.cache
def _cpu_name() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
