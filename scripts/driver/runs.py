"""Runs as folders.

A run's folder holds `config.yaml`, `report.json`, `history.csv`, `predictions.h5`, `checkpoint.pt` (the best epoch's
weights), `model.json`, of a table `preprocessing.json`, and, written last, `DONE`; `cmixup.load_run` predicts with it.
A folder without `DONE` is not a result: the run has not ended, or has failed and its report says where.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import json
import math
import platform
import re
import subprocess
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from cmixup.files import write_atomically
from cmixup.saved_run import WEIGHTS
from scripts.driver.predictions import PREDICTIONS, Parts, write_predictions

REPORT, HISTORY = "report.json", "history.csv"
LONGEST_NAME = 120  # of a folder
CODE = Path(__file__).resolve().parents[2]  # the checkout that runs
CODE_FOLDERS = ("cmixup", "configs", "datasets", "models", "scripts")
CARRIED = ".commit.json"  # which commit it is, where it was carried without git
MACHINE_KEYS = ("out", "weights")  # of a configuration: where a run is kept, and how much of it
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
    """Return whether a run's folder holds a finished run."""
    return (folder / "DONE").is_file()


def begin_run(folder: Path, config: str) -> None:
    """Make a run's folder and write its configuration; whatever was there no longer counts as done.

    Raises:
        OSError: the folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "DONE").unlink(missing_ok=True)
    write_atomically(folder / "config.yaml", config)


def recorded_config(plain: Mapping[str, Any]) -> dict[str, Any]:
    """Return the part of a resolved configuration that is recorded: all but folders of this machine."""
    return {key: value for key, value in plain.items() if key not in MACHINE_KEYS}


def finish_run(
    folder: Path,
    report: Mapping[str, Any],
    history: Sequence[Mapping[str, float]],
    state: Mapping[str, Tensor] | None,
    predictions: Parts,
    *,
    extras: Mapping[str, str] | None = None,
) -> None:
    """Write a run's results, its weights if there is a `state`, and the texts `extras` by file name; `DONE` last."""
    (folder / WEIGHTS).unlink(missing_ok=True)
    if state is not None:
        buffer = io.BytesIO()
        torch.save(dict(state), buffer)
        write_atomically(folder / WEIGHTS, buffer.getvalue())
    write_predictions(folder / PREDICTIONS, {report["seed"]: predictions})
    write_report(folder, report, history)
    for name, text in (extras or {}).items():
        write_atomically(folder / name, text)
    write_atomically(folder / "DONE", "")


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
    """Return the reports of all finished runs below `root`, in order of their folders' names."""
    return [read_report(done.parent) for done in sorted(root.rglob("DONE"))]


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
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else _cpu_name()
    commit = _head(code)
    return {
        "commit": commit or carried_commit(code),
        "dirty": is_dirty(code) if commit else not carried_commit(code),
        "versions": {"python": platform.python_version(), **versions},
        "device": f"{device.type}: {name}",
        "threads": torch.get_num_threads(),
    }


def note_commit(code: Path = CODE) -> None:
    """Write which commit the code is, for a machine that it is carried to without git; nothing if it is dirty."""
    commit = _head(code)
    if commit and not is_dirty(code):
        write_atomically(code / CARRIED, json.dumps({"commit": commit, "code": _digest(code)}) + "\n")


def carried_commit(code: Path) -> str:
    """Return the commit that `note_commit` wrote where the code is still what it was then, else nothing."""
    path = code / CARRIED
    noted = json.loads(path.read_text()) if path.is_file() else {}
    return str(noted["commit"]) if noted.get("code") == _digest(code) else ""


def _digest(code: Path) -> str:
    """Return a hash of the names and contents of all files below `CODE_FOLDERS`."""
    files = sorted(f for folder in CODE_FOLDERS for f in (code / folder).rglob("*") if f.suffix in (".py", ".yaml"))
    digest = hashlib.sha256()
    for file in files:
        digest.update(f"{file.relative_to(code).as_posix()}\0".encode() + file.read_bytes())
    return digest.hexdigest()


def is_dirty(code: Path) -> bool:
    """Return whether the code differs from its commit; see `environment`."""
    changed = _git(code, "status", "--porcelain", "--untracked-files=no")
    untracked = _git(code, "ls-files", "--others", "--exclude-standard", "--", *CODE_FOLDERS)
    return bool(changed or untracked)


def _head(code: Path) -> str:
    return _git(code, "rev-parse", "HEAD")


def _git(code: Path, *command: str) -> str:
    try:
        done = subprocess.run(["git", "-C", str(code), *command], capture_output=True, text=True, check=True)  # noqa: S607
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


def _cpu_name() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
