"""Which code made a run, where, and on what: its commit, whether it was edited, packages, and the device."""

from __future__ import annotations

import contextlib
import functools
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
GIT_SECONDS = 10.0  # that git may take to answer; a disk or a helper that it waits for may never do so
MOST_NAMES = 3  # of runs, in a line that refuses them


def run_environment(device: torch.device, code: Path = CODE) -> dict[str, Any]:
    """Return what a reader needs to repeat a run: commit, package versions, Python, device and threads.

    The code counts as dirty when a tracked file differs from the commit, or when an untracked file lies below one of
    `CODE_FOLDERS`: the commit does not say what such a file did. So does code without a commit, such as a copy below
    somebody else's repository.

    Args:
        device: what the run trains on.
        code: the checkout that holds the code.
    """
    versions = {}
    for package in PACKAGES:
        with contextlib.suppress(metadata.PackageNotFoundError):
            versions[package] = metadata.version(package)
    commit = head_commit(code)
    return {
        "commit": commit,
        "dirty": not commit or is_dirty(code),
        "versions": {"python": platform.python_version(), **versions},
        "device": device_name(device),
        "threads": torch.get_num_threads(),
    }


def check_committed(runs: Mapping[str, Mapping[str, Any]], code: Path = CODE) -> None:
    """Refuse runs that may not be published: made by edited code, or by code of which nobody knows what it was.

    Args:
        runs: what `run_environment` said when each was made, by the run's name.
        code: the checkout that publishes; it must have the commits.

    Raises:
        InputError: runs without a commit, of uncommitted changes, or of a commit that this checkout does not have.
    """
    edited = [name for name, run in runs.items() if run["dirty"] or not run["commit"]]
    _refuse_runs(edited, "made with uncommitted changes or by code of unknown commit; train them again")
    known = {commit: has_commit(str(commit), code) for commit in {run["commit"] for run in runs.values()}}
    unknown = [name for name, run in runs.items() if not known[run["commit"]]]
    _refuse_runs(unknown, "of a commit that is not in this checkout; fetch it, or publish from one that has it")


def _refuse_runs(names: list[str], why: str) -> None:
    if names:
        more = f" and {len(names) - MOST_NAMES} more" if len(names) > MOST_NAMES else ""
        raise InputError(f"{len(names)} runs cannot be published ({', '.join(names[:MOST_NAMES])}{more}): {why}")


def head_commit(code: Path) -> str:
    """Return the commit of the repository whose root is `code`, or nothing: one around it does not hold this code."""
    top = _run_git(code, "rev-parse", "--show-toplevel")
    if not top or Path(top).resolve() != code.resolve():
        return ""
    return _run_git(code, "rev-parse", "HEAD") or ""


def has_commit(commit: str, code: Path = CODE) -> bool:
    """Return whether a checkout has a commit."""
    return commit.isalnum() and _run_git(code, "cat-file", "-e", f"{commit}^{{commit}}") is not None


def is_dirty(code: Path) -> bool:
    """Return whether the code differs from its commit, or git cannot say; see `run_environment`."""
    changed = _run_git(code, "status", "--porcelain", "--untracked-files=no")
    untracked = _run_git(code, "ls-files", "--others", "--exclude-standard", "--", *CODE_FOLDERS)
    return changed != "" or untracked != ""


def git_environment() -> dict[str, str]:
    """Return the environment without the variables by which hooks name a repository of theirs."""
    return {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}


def _run_git(code: Path, *words: str) -> str | None:
    """Return what git prints, or None where it fails, is not installed, or does not answer."""
    command = ["git", "--no-optional-locks", "-C", str(code), *words]
    try:
        answer = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, env=git_environment(), timeout=GIT_SECONDS,
            check=True, text=True, errors="surrogateescape",
        )  # fmt: skip
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.removesuffix("\n")


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
