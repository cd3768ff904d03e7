"""The packages of constraints.lock: what they are, and whether those that are installed are the same.

A requirement of the lock is a name, a version, and the SHA-256 of every file that is known to be this version for
Linux, x86-64 and CPython 3.11. No host is named, so any index may serve the files. `scripts.setup` installs them by
these hashes and leaves a receipt in the environment. This file imports Python's own library alone, since it is needed
before anything is installed.
"""

from __future__ import annotations

import hashlib
import json
import platform
import re
import sys
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
LOCK = ROOT / "constraints.lock"
RECEIPT = "locked.json"  # in the environment's folder
REQUIREMENT = re.compile(r"(?m)^([\w.-]+)==(\S+)((?: \\\n +--hash=sha256:[0-9a-f]{64})+)$")
#: What the index's own PyTorch needs and a build for CPUs (version "...+cpu") does not.
CUDA = re.compile(r"cuda-.*|nvidia-.*|triton")


@dataclass(frozen=True)
class Locked:
    """A package of the lock: its version without a build's name, and the SHA-256 of its known files."""

    version: str
    hashes: tuple[str, ...]


def plain_name(name: str) -> str:
    """Return the name of a package as indexes normalise it (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def parse_lock(text: str) -> dict[str, Locked]:
    """Return the packages of a lock by their normalised names."""
    return {plain_name(name): Locked(version, tuple(re.findall(r"[0-9a-f]{64}", hashes)))
            for name, version, hashes in REQUIREMENT.findall(text)}  # fmt: skip


def requirements_of(lock: Mapping[str, Locked], names: Collection[str]) -> str:
    """Return packages of a lock as a file of requirements with hashes, sorted by name."""
    return "".join(
        f"{name}=={lock[name].version}" + "".join(f" \\\n    --hash=sha256:{one}" for one in lock[name].hashes) + "\n"
        for name in sorted(names)
    )


def lock_is_for_here() -> str:
    """Return nothing where the lock is for this machine and Python, else what they are."""
    here = (sys.platform, platform.machine(), sys.implementation.name, *sys.version_info[:2])
    if here == ("linux", "x86_64", "cpython", 3, 11):
        return ""
    return f"{platform.system()} {platform.machine()}, {platform.python_implementation()} {here[3]}.{here[4]}"


def digest_of_record(package: str) -> str:
    """Return the SHA-256 of an installed package's RECORD, which lists its files; empty where it has none."""
    try:
        text = metadata.distribution(package).read_text("RECORD")
    except metadata.PackageNotFoundError:
        return ""
    return hashlib.sha256(text.encode()).hexdigest() if text else ""


def installed_versions() -> dict[str, str]:
    """Return the versions of all installed packages by normalised name, without the names of builds ("+cpu")."""
    every = reversed(list(metadata.distributions()))  # of two, the first on the path is imported
    found = {plain_name(one.name): one.version.partition("+")[0] for one in every if one.name}
    return dict(sorted(found.items()))


def write_receipt(lock: str, environment: Path) -> None:
    """Write which packages were just installed by the hashes of a lock, each with the digest of its RECORD.

    Args:
        lock: text of the lock.
        environment: folder of the virtual environment, whose Python runs here.
    """
    records = {name: digest_of_record(name) for name in parse_lock(lock) if digest_of_record(name)}
    given = {"lock": hashlib.sha256(lock.encode()).hexdigest(), "records": records}
    (environment / RECEIPT).write_text(json.dumps(given, indent=1) + "\n")


def compare_with_lock(lock: str, environment: Path) -> tuple[int, list[str], list[str]]:
    """Compare the installed packages with a lock.

    Args:
        lock: its text.
        environment: folder of the virtual environment, whose Python runs here.

    Returns:
        How many of its packages are installed; a word for each that has another version; the names of those of the
        right version that were not installed by their hashes, or were changed since.
    """
    locked, versions = parse_lock(lock), installed_versions()
    here = [name for name in locked if name in versions]
    other = [f"{name} {versions[name]} (lock: {locked[name].version})"
             for name in here if versions[name] != locked[name].version]  # fmt: skip
    try:
        receipt = json.loads((environment / RECEIPT).read_text())
        records = receipt["records"] if receipt["lock"] == hashlib.sha256(lock.encode()).hexdigest() else {}
    except (OSError, ValueError, KeyError, TypeError):  # there is none, or it is damaged
        records = {}
    same = [name for name in here if versions[name] == locked[name].version]
    return len(here), other, [name for name in same if records.get(name) != digest_of_record(name)]
