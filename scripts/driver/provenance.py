"""Which code made a run: its commit, whether it was edited, a digest of its sources, and the files of its packages.

Python runs bytecode with unchecked hashes in the place of the source; such code counts as edited.
"""

from __future__ import annotations

import base64
import contextlib
import functools
import hashlib
import importlib.util
import io
import json
import marshal
import os
import platform
import signal
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping
from importlib import metadata
from pathlib import Path, PurePosixPath
from typing import Any

import torch

from cmixup.errors import InputError
from cmixup.files import sha256_of, write_atomically
from scripts.machine.kernels import running_kernels
from scripts.machine.packages import digest_of_record

CODE = Path(__file__).resolve().parents[2]  # the checkout that runs
CODE_FOLDERS = ("cmixup", "configs", "datasets", "models", "scripts")
CARRIED = ".commit.json"  # which commit it is, where it was carried without git
GIT = ("git", "--no-replace-objects", "--no-optional-locks", "-C")  # the commits themselves, in no other git's way
NUMBERS_FROM = ("cmixup", "datasets", "models")  # folders of sources
SOURCES = (".py", ".yaml")
PACKAGES = ("torch", "numpy", "scikit-learn", "hydra-core", "torchvision", "wilds", "PyTDC")
HASHED = ("torch", "numpy")  # whose installed files a report names by a digest
NAMED = 3  # runs in a line that refuses them
GIT_SECONDS = 10.0  # that git may take to answer; a disk or a helper that it waits for may never do so
HEAD = 16  # bytes of a file of bytecode before its code
_SILENT = set[Path]()  # checkouts in which git did not answer


def run_environment(device: torch.device, code: Path = CODE) -> dict[str, Any]:
    """Return what a reader needs to repeat a run: commit, digest of the sources, package versions, Python, device,
    and the kernels of a CPU.

    The code counts as dirty when a tracked file differs from the commit, or when an untracked file lies below one of
    `CODE_FOLDERS`: the commit does not say what such a file did. A copy below somebody else's repository has no commit.

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
        "commit": commit or carried_commit(code),
        "dirty": is_dirty(code) if commit else not carried_commit(code),
        "code": code_digest(code),
        "versions": {"python": platform.python_version(), **versions},
        "installed": {package: record_digest(package) for package in HASHED},
        "device": device_name(device),
        "kernels": running_kernels() if device.type == "cpu" else "",
        "threads": torch.get_num_threads(),
    }


def check_committed(runs: Mapping[str, Mapping[str, Any]], code: Path = CODE) -> None:
    """Refuse runs that may not be published: made by edited code, or by code of which nobody knows what it was.

    Args:
        runs: what `run_environment` said when each was made, by the run's name. Earlier versions noted no digest.
        code: the checkout that publishes; it must have the commits.

    Raises:
        InputError: runs without a commit or of uncommitted changes, of a commit that this checkout does not have, or
            whose sources were not those of their commit.
    """
    edited = [name for name, run in runs.items() if run["dirty"] or not run["commit"]]
    _refuse_runs(edited, "made with uncommitted changes or by code of unknown commit; train them again")
    digests = {commit: code_at(str(commit), code) for commit in {run["commit"] for run in runs.values()}}
    unknown = [name for name, run in runs.items() if digests[run["commit"]] is None]
    _refuse_runs(unknown, "of a commit that is not in this checkout; fetch it, or publish from one that has it")
    other = [name for name, run in runs.items() if run.get("code", digests[run["commit"]]) != digests[run["commit"]]]
    _refuse_runs(other, "made by other sources than their commit holds; train them again")


def _refuse_runs(names: list[str], why: str) -> None:
    if names:
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        raise InputError(f"{len(names)} runs cannot be published ({', '.join(names[:NAMED])}{more}): {why}")


@functools.cache
def code_digest(code: Path = CODE) -> str:
    """Return a digest of the sources that numbers depend on, committed or not, as twelve hexadecimal digits."""
    return _digest_files(_source_files(code, NUMBERS_FROM, (".py",)))[:12]


def sources_digest(code: Path = CODE) -> str:
    """Return a digest of all sources and configurations, committed or not, as 64 hexadecimal digits."""
    return _digest_files(_source_files(code, CODE_FOLDERS, SOURCES))


def code_at(commit: str, code: Path = CODE) -> str | None:
    """Return what `code_digest` gives in a clean checkout of a commit, or None where `code` does not have it."""
    there = _ask_git(code, "ls-tree", "--name-only", commit, *NUMBERS_FROM) if commit.isalnum() else None
    packed = _ask_git(code, "archive", "--format=tar", commit, *there.decode().split()) if there else None
    if packed is None:
        return None
    with tarfile.open(fileobj=io.BytesIO(packed)) as archive:
        sources = [member for member in archive if member.isfile() and member.name.endswith(".py")]
        return _digest_files({one.name: archive.extractfile(one).read() for one in sources})[:12]  # type: ignore[union-attr]


def note_commit(code: Path = CODE) -> None:
    """Write which commit the code is, for a machine that it is carried to without git; nothing if it is dirty."""
    commit = head_commit(code)
    if commit and not is_dirty(code):
        write_atomically(code / CARRIED, json.dumps({"commit": commit, "code": sources_digest(code)}) + "\n")


def carried_commit(code: Path) -> str:
    """Return the commit that `note_commit` wrote where the code is still what it was then, else nothing."""
    try:
        noted = json.loads((code / CARRIED).read_text())
        return str(noted["commit"]) if noted["code"] == sources_digest(code) else ""
    except (OSError, ValueError, TypeError, KeyError):  # there is none, or it is damaged
        return ""


def is_dirty(code: Path) -> bool:
    """Return whether the code differs from its commit, or git cannot say; see `run_environment`."""
    changed = _ask_git(code, "status", "--porcelain", "--untracked-files=no")
    untracked = _ask_git(code, "ls-files", "--others", "--exclude-standard", "--", *CODE_FOLDERS)
    return changed != b"" or untracked != b"" or bool(unchecked_bytecode(code))


def unchecked_bytecode(code: Path = CODE) -> list[Path]:
    """Return files of bytecode that Python runs in the place of a source, whatever the source says now (PEP 552).

    Bit 0 of the flags says that a hash is kept, and bit 1 that it is compared. Bytecode with time and size is compared
    by Python itself.
    """
    found = []
    for _, path in _bytecode_files(code):
        with contextlib.suppress(OSError), path.open("rb") as stream:
            head = stream.read(8)
            if len(head) == 8 and head[4] & 0b11 == 0b01:
                found.append(path)
    return found


def stale_bytecode(code: Path = CODE) -> list[Path]:
    """Return files of bytecode that Python would run and that are not what their source compiles to, such as a cut one.

    All sources are compiled, which takes seconds. Bytecode that Python would make anew itself is left out.
    """
    found = []
    for source, path in _bytecode_files(code):
        with contextlib.suppress(OSError):
            text, kept, about = source.read_bytes(), path.read_bytes(), source.stat()
            flags, key = kept[4:8], kept[8:HEAD]
            keys = {
                b"\0\0\0\0": b"".join((int(n) & 0xFFFFFFFF).to_bytes(4, "little") for n in (about.st_mtime, len(text))),
                b"\1\0\0\0": key,
                b"\3\0\0\0": importlib.util.source_hash(text),
            }
            if kept[:4] == importlib.util.MAGIC_NUMBER and keys.get(flags) == key and not _same_code(kept, text):
                found.append(path)
    return found


def _same_code(kept: bytes, text: bytes) -> bool:
    """Return whether a file of bytecode holds what a source compiles to."""
    try:
        return bool(marshal.loads(kept[HEAD:]) == compile(text, "", "exec", dont_inherit=True))  # noqa: S302 - as import does
    except (EOFError, ValueError, TypeError, SyntaxError):
        return False


def _bytecode_files(code: Path) -> Iterator[tuple[Path, Path]]:
    """Yield each source below `CODE_FOLDERS` with the file that its bytecode is kept in."""
    for folder in CODE_FOLDERS:
        for source in (code / folder).rglob("*.py"):
            yield source, Path(importlib.util.cache_from_source(str(source)))


@functools.cache
def record_digest(package: str) -> str:
    """Return a digest of an installed package's RECORD, which lists SHA-256 of its files; empty where it has none."""
    return digest_of_record(package)[:12]


def changed_files(package: str) -> list[Path]:
    """Return the files of an installed package that are gone or have another SHA-256 than its RECORD says."""
    found = []
    for file in metadata.files(package) or ():
        if file.hash is None or file.hash.mode != "sha256":
            continue
        path = Path(str(file.locate()))
        said = base64.urlsafe_b64decode(file.hash.value + "=" * (-len(file.hash.value) % 4)).hex()
        if not path.is_file() or sha256_of(path) != said:
            found.append(path)
    return found


def git_environment() -> dict[str, str]:
    """Return the environment without the variables by which hooks name a repository of theirs."""
    return {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}


def head_commit(code: Path) -> str:
    """Return the commit of the repository whose root is `code`, or nothing: one around it does not hold this code."""
    top = _ask_git(code, "rev-parse", "--show-toplevel")
    try:
        if not top or Path(os.fsdecode(top.rstrip(b"\n"))).resolve() != code.resolve():
            return ""
        head = (_ask_git(code, "rev-parse", "HEAD") or b"").decode().strip()
    except ValueError:  # NUL in a path, or bytes that are no text: this is no git
        return ""
    return head if head.isalnum() else ""


def _ask_git(code: Path, *command: str) -> bytes | None:
    """Return what git says, or None where it fails, is not installed, or does not answer, which a line says once."""
    if code in _SILENT:
        return None
    words = [*GIT, str(code), *command]
    try:
        with subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=git_environment(),
            process_group=0,
        ) as process:  # fmt: skip
            try:
                said, _ = process.communicate(timeout=GIT_SECONDS)
            except BaseException as error:
                process.kill()
                with contextlib.suppress(
                    OSError, AttributeError
                ):  # what git has started holds the pipe; not on Windows
                    os.killpg(process.pid, signal.SIGKILL)
                if not isinstance(error, subprocess.TimeoutExpired):
                    raise
                _SILENT.add(code)
                line = f"git does not answer within {GIT_SECONDS:g} s: the commit of the code counts as unknown"
                print(line, file=sys.stderr)
                return None
    except OSError:
        return None
    return said if process.returncode == 0 else None


def _source_files(code: Path, folders: tuple[str, ...], suffixes: tuple[str, ...]) -> dict[str, bytes]:
    """Return the files with these suffixes below some folders, by their names from `code`."""
    files = [file for folder in folders for file in (code / folder).rglob("*") if file.suffix in suffixes]
    return {file.relative_to(code).as_posix(): file.read_bytes() for file in files}


def _digest_files(files: Mapping[str, bytes]) -> str:
    """Return a hash of the names and contents of files."""
    names = sorted(files, key=PurePosixPath)
    return hashlib.sha256(b"".join(f"{name}\0".encode() + files[name] for name in names)).hexdigest()


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
