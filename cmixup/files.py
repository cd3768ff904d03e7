"""Files that are either whole or absent, also after the machine has lost power, and whose bytes are checked.

`DONE` in a run's folder is written last and lists size and SHA-256 of the other files. Sizes tell cheaply that none was
cut or emptied; a bit that has flipped since, with which a model would predict other numbers, shows when it is read.
"""

import contextlib
import errno
import glob
import hashlib
import json
import os
import re
import secrets
import sys
import time
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import torch

from cmixup.errors import InputError

WINDOWS = sys.platform == "win32"
DONE = "DONE"
DAMAGED = ".damaged"  # ends the name of a file that was set aside
#: Of `fsync`: the file system has no such thing. Any other error says that the written bytes may be lost.
NOT_SUPPORTED = (errno.EINVAL, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EROFS)
DAY = 86_400.0  # seconds after which a temporary file is nobody's


def write_atomically(path: Path, content: str | bytes) -> None:
    """Write a file so that it is either whole or absent: to a temporary file beside it, then rename.

    Content and name are on the disk when this returns: a file that is written later never outlives this one.
    """
    with temporary_beside(path) as part:
        part.write_bytes(content.encode() if isinstance(content, str) else content)
        put(part, path)


def put(part: Path, path: Path) -> None:
    """Give a temporary file its name; its content is on the disk before, and its name after."""
    sync(part)
    part.replace(path)
    sync(path.parent)


def sync(path: Path) -> None:
    """Wait until a file's content, or a folder's names, are on the disk; file systems that cannot do not.

    Raises:
        OSError: the disk could not write it (EIO, ENOSPC, EDQUOT). Linux says so once: it must be written anew.
    """
    try:
        handle = os.open(path, os.O_RDWR if WINDOWS and path.is_file() else os.O_RDONLY)
    except PermissionError:
        if WINDOWS:  # which opens no folders, and writes names down with them
            return
        raise
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in NOT_SUPPORTED:
            raise OSError(error.errno, os.strerror(error.errno or errno.EIO), str(path)) from None
    finally:
        os.close(handle)


@contextlib.contextmanager
def temporary_beside(path: Path, suffix: str = "") -> Iterator[Path]:
    """Give a new file beside `path`, to be written and then `put` there; it is removed unless it was put.

    Those that killed processes left for `path` are removed once they are a day old. An `OSError` inside names `path`.
    """
    make_folder(path.parent)
    remove_stale(path)
    part = path.with_name(f".{path.name}.{secrets.token_hex(4)}{suffix}")
    try:
        os.close(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))  # who may read it, the umask says
        yield part
    except OSError as error:
        if error.errno is None or error.filename is not None:
            raise
        raise OSError(error.errno, os.strerror(error.errno), str(path)) from None
    finally:
        part.unlink(missing_ok=True)


def sha256_of(path: Path) -> str:
    """Return the SHA-256 of a file's bytes as hexadecimal text."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def make_folder(folder: Path) -> None:
    """Make a folder and those above it; the names of new ones are on the disk when this returns."""
    missing = []
    for path in (folder, *folder.parents):
        if path.is_dir():
            break
        missing.append(path)
    folder.mkdir(parents=True, exist_ok=True)
    for path in missing:
        sync(path.parent)


def remove_stale(path: Path) -> None:
    """Remove temporary files made for `path` that nobody has written to for a day."""
    for candidate in path.parent.glob(f".{glob.escape(path.name)}.*"):
        suffix = candidate.name.removeprefix(f".{path.name}.")
        if re.fullmatch(r"(?:[0-9a-f]{8}-\d+\.)?\w{8}(?:\.part)?", suffix):  # earlier names had machine and process
            with contextlib.suppress(OSError):
                if time.time() - candidate.stat().st_mtime > DAY:
                    candidate.unlink()


def set_aside(path: Path, reason: str) -> None:
    """Rename a damaged file so that it is in nobody's way, and say so in a line."""
    target = path.with_name(path.name + DAMAGED)
    path.replace(target)
    sys.stderr.write(f"{path} {reason}: set aside as {target.name}\n")


PREPROCESSING = "preprocessing.json"  # of a run on data whose new rows it can predict
#: First key of PREPROCESSING, by the kind of data.
TABLE_FORMAT, IMAGES_FORMAT, ARRAYS_FORMAT = "cmixup table preprocessing 1", "cmixup images 1", "cmixup arrays 1"
SERIES_FORMAT = "cmixup series 1"
#: Classes that read PREPROCESSING, by that key; see `cmixup.inputs.preprocessing`.
READERS = {
    TABLE_FORMAT: "cmixup.tables.preprocessing.TablePreprocessing",
    IMAGES_FORMAT: "cmixup.inputs.images.ImagePreprocessing",
    ARRAYS_FORMAT: "cmixup.inputs.arrays.ArrayPreprocessing",
    SERIES_FORMAT: "cmixup.tables.series.SeriesPreprocessing",
}
FORMAT = 3  # of a run's folder, in its report and its `DONE`: that lists sizes and SHA-256


def done_text(files: Iterable[Path]) -> str:
    """Return the text of a `DONE` that lists these files."""
    listed = {path.name: {"size": path.stat().st_size, "sha256": sha256_of(path)} for path in files}
    return json.dumps({"format": FORMAT, "files": listed})


def listed_files(folder: Path) -> dict[str, tuple[int, str]]:
    """Return size in bytes and SHA-256 of the files that a run's `DONE` lists, or raise `InputError` if it is no list.

    The SHA-256 is hexadecimal text.
    """
    try:
        files = json.loads((folder / DONE).read_text())["files"]
        return {name: (int(entry["size"]), str(entry["sha256"])) for name, entry in files.items()}
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        raise InputError(f"{folder / DONE} is no list of files") from None


def checked(path: Path) -> Path:
    """Return a run's file, or raise `InputError` if a `DONE` is there that lists other bytes or no such file."""
    if not path.is_file() or not (path.parent / DONE).is_file():
        return path
    listed = listed_files(path.parent)
    if path.name not in listed:
        raise InputError(f"{path} is not among the files that {DONE} lists")
    if (digest := sha256_of(path)) != (expected := listed[path.name][1]):
        raise InputError(
            f"{path} is damaged: it has SHA-256 {digest[:12]}..., and {DONE} says {expected[:12]}...; "
            "rerun=true trains the run again"
        )
    return path


def read_tensors(path: Path) -> Any:
    """Return the content of a file of `torch.save`, on the CPU: tensors and plain Python. Nothing is unpickled.

    PyTorch reads on where a bit has flipped: the archive's checksums are compared. A damaged file may raise anything.
    """
    with zipfile.ZipFile(path) as archive:
        if damaged := archive.testzip():
            raise ValueError(f"{damaged} has another checksum")
    return torch.load(path, map_location="cpu", weights_only=True)
