"""Which code made a run, where, and on what: its commit, whether it was edited, packages, and the device."""

import contextlib
import os
import platform
import subprocess
from collections.abc import Mapping
from importlib import metadata
from pathlib import Path
from typing import Any

import torch

from cmixup.errors import InputError

CODE = Path(__file__).resolve().parents[2]  # the checkout that runs
CODE_FOLDERS = ("cmixup", "configs", "datasets", "models", "scripts")
PACKAGES = ("torch", "numpy", "scikit-learn", "hydra-core", "torchvision", "wilds", "PyTDC")
CPU_INFO = Path("/proc/cpuinfo")  # of Linux
GIT_SECONDS = 10.0  # that git may take to answer; a disk or a helper that it waits for may never do so
MOST_NAMES = 3  # of runs, in a line that refuses them


def run_environment(device: torch.device, code: Path = CODE) -> dict[str, Any]:
    """Return what a reader needs to repeat a run: commit, package versions, Python, device and threads.

    The code counts as dirty when a tracked file differs from the commit, or when an untracked file lies below one of
    `CODE_FOLDERS`: the commit does not say what such a file did. So does code without a commit, such as a copy below
    somebody else's repository.
    """
    versions = {}
    for package in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    if device.type == "cuda":
        processor = torch.cuda.get_device_name(device)
    else:
        lines = CPU_INFO.read_text().splitlines() if CPU_INFO.is_file() else []
        named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
        processor = named[0] if named else platform.processor() or platform.machine()
    top = _run_git(code, "rev-parse", "--show-toplevel")
    at_top = bool(top) and Path(str(top)).resolve() == code.resolve()  # and no repository around a copy of the code
    commit = _run_git(code, "rev-parse", "HEAD") or "" if at_top else ""
    changed = _run_git(code, "status", "--porcelain", "--untracked-files=no")
    untracked = _run_git(code, "ls-files", "--others", "--exclude-standard", "--", *CODE_FOLDERS)
    return {
        "commit": commit,
        "dirty": not commit or (changed, untracked) != ("", ""),  # None: git cannot say
        "versions": {"python": platform.python_version(), **versions},
        "device": f"{device.type}: {processor}",  # such as "cpu: AMD EPYC"
        "threads": torch.get_num_threads(),
    }


def check_committed(runs: Mapping[str, Mapping[str, Any]], code: Path = CODE) -> None:
    """Refuse to publish runs, by name with their `run_environment`, of edited code or of a commit that `code` lacks."""
    present = {commit: has_commit(str(commit), code) for commit in {run["commit"] for run in runs.values()}}
    refused = [name for name, run in runs.items() if run["dirty"] or not run["commit"]]
    reason = "made with uncommitted changes or by code of unknown commit; train them again"
    if not refused:
        refused = [name for name, run in runs.items() if not present[run["commit"]]]
        reason = "of a commit that is not in this checkout; fetch it, or publish from one that has it"
    if refused:
        more = f" and {len(refused) - MOST_NAMES} more" if len(refused) > MOST_NAMES else ""
        raise InputError(f"{len(refused)} runs cannot be published ({', '.join(refused[:MOST_NAMES])}{more}): {reason}")


def has_commit(commit: str, code: Path = CODE) -> bool:
    """Return whether a checkout has a commit."""
    return commit.isalnum() and _run_git(code, "cat-file", "-e", f"{commit}^{{commit}}") is not None


def _run_git(code: Path, *words: str) -> str | None:
    """Return what git prints, or None where it fails, is not installed, or does not answer."""
    # Without the variables by which hooks name a repository of theirs.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    command = ["git", "--no-optional-locks", "-C", str(code), *words]
    try:
        answer = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, env=environment, timeout=GIT_SECONDS,
            check=True, text=True, errors="surrogateescape",
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.removesuffix("\n")
