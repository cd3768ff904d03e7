"""Runs as folders.

A run's folder holds `config.yaml`, `report.json`, `history.csv`, `checkpoint.pt` and, written last, `DONE`. A folder
without `DONE` is not a result.
"""

from __future__ import annotations

import contextlib
import io
import json
import platform
import subprocess
from collections.abc import Mapping, Sequence
from importlib import metadata
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from cmixup.files import write_atomically
from scripts.report.records import to_csv

PACKAGES = ("torch", "numpy", "scikit-learn", "hydra-core", "torchvision", "wilds", "PyTDC")


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
        done = subprocess.run(["git", *command], capture_output=True, text=True, check=True)  # noqa: S607
    except (OSError, subprocess.CalledProcessError):
        return ""
    return done.stdout.strip()


def _cpu_name() -> str:
    with contextlib.suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
