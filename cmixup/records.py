"""Runs as folders, and their reports as tidy rows.

A run's folder holds `config.yaml`, `report.json`, `history.csv`, `checkpoint.pt` and, written last, `DONE`. A folder
without `DONE` is not a result.
"""

from __future__ import annotations

import contextlib
import csv
import io
import json
import os
import platform
import subprocess
import tempfile
from collections.abc import Iterable, Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from cmixup.errors import InputError

COLUMNS = (
    "experiment", "dataset", "model", "method", "preset", "layer", "bandwidth", "alpha", "options", "seed", "split",
    "metric", "value", "run",
)  # fmt: skip
KEY = tuple(c for c in COLUMNS if c not in ("value", "run"))
PACKAGES = ("torch", "numpy", "scikit-learn", "hydra-core", "torchvision", "wilds", "PyTDC")


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a file so that it is either whole or absent: to a temporary file beside it, then rename."""
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")
    try:
        with os.fdopen(handle, "wb") as stream:
            stream.write(content.encode() if isinstance(content, str) else content)
        Path(name).chmod(0o644)
        Path(name).replace(path)
    except BaseException:
        Path(name).unlink(missing_ok=True)
        raise


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


def finish_run(
    folder: Path,
    report: Mapping[str, Any],
    history: Sequence[Mapping[str, float]],
    state: Mapping[str, Tensor],
) -> None:
    """Write a run's results, `DONE` last."""
    buffer = io.BytesIO()
    torch.save(dict(state), buffer)
    write_atomically(folder / "checkpoint.pt", buffer.getvalue())
    write_atomically(folder / "history.csv", to_csv(history, list(history[0])))
    write_atomically(folder / "report.json", json.dumps(report, indent=1) + "\n")
    write_atomically(folder / "DONE", "")


def load_reports(root: Path) -> list[dict[str, Any]]:
    """Return the reports of all finished runs below `root`, in order of their folders' names."""
    return [json.loads((done.parent / "report.json").read_text()) for done in sorted(root.rglob("DONE"))]


def rows(report: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return a report as tidy rows with `COLUMNS`: one a split and metric, and its facts under split "train"."""
    options = " ".join(f"{k}={v}" for k, v in sorted(report["options"].items()))
    base = {name: report[name] for name in COLUMNS if name in report} | {"options": options}
    values = {
        **report["scores"],
        "train": {**_facts(report), "seconds": report["seconds"], "best_epoch": report["best_epoch"]},
    }
    return [
        {**base, "split": split, "metric": metric, "value": value}
        for split, scores in values.items()
        for metric, value in scores.items()
    ]


def _facts(report: Mapping[str, Any]) -> dict[str, float]:
    return {name: value for name, value in report["facts"].items() if name not in COLUMNS}


def check_unique(records: Iterable[Mapping[str, Any]]) -> None:
    """Raise `InputError` if two records share everything but value and run."""
    seen: dict[tuple, Any] = {}
    for record in records:
        key = tuple(str(record[name]) for name in KEY)
        if key in seen:
            raise InputError(f"runs {seen[key]} and {record['run']} are the same but for their value: {key}")
        seen[key] = record["run"]


def to_csv(records: Iterable[Mapping[str, Any]], columns: Sequence[str]) -> str:
    """Return records as CSV text; None becomes an empty field."""
    stream = io.StringIO()
    writer = csv.DictWriter(stream, columns, extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    writer.writerows(records)
    return stream.getvalue()


def read_csv(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file, every value as text."""
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))


def environment(device: torch.device) -> dict[str, Any]:
    """Return what a reader needs to repeat a run here: commit, package versions, Python, device."""
    versions = {}
    for package in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else _cpu_name()
    return {
        "commit": _git("rev-parse", "HEAD"),
        "dirty": bool(_git("status", "--porcelain", "--untracked-files=no")),
        "versions": {"python": platform.python_version(), **versions},
        "device": f"{device.type}: {name}",
        "threads": torch.get_num_threads(),
    }


def _git(*command: str) -> str:
    try:
        done = subprocess.run(["git", *command], capture_output=True, text=True, check=True)  # noqa: S603, S607
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


def _cpu_name() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
