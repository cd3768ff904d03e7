"""The file `DONE` of a run's folder, written last, which lists size and SHA-256 of the other files.

Sizes tell cheaply that none was cut or emptied; a bit that has flipped since, which a model would predict other numbers
with, shows when the file is read.
"""

import json
import zipfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import torch

from cmixup.errors import InputError
from cmixup.files import sha256_of

DONE = "DONE"
PREPROCESSING = "preprocessing.json"  # of a run on data whose new rows it can predict
#: First key of PREPROCESSING, by the kind of data.
TABLE_FORMAT, IMAGES_FORMAT, ARRAYS_FORMAT = "cmixup table preprocessing 1", "cmixup images 1", "cmixup arrays 1"
SERIES_FORMAT = "cmixup series 1"
FORMAT = 3  # of a run's folder, in its report and its `DONE`: that lists sizes and SHA-256


class Listed(NamedTuple):
    """A file's size in bytes and its SHA-256, as hexadecimal text."""

    size: int
    sha256: str


def done_text(files: Iterable[Path]) -> str:
    """Return the text of a `DONE` that lists these files."""
    listed = {path.name: Listed(path.stat().st_size, sha256_of(path))._asdict() for path in files}
    return json.dumps({"format": FORMAT, "files": listed})


def listed_files(folder: Path) -> dict[str, Listed]:
    """Return the entries of a run's `DONE` by the files' names, or raise `InputError` if it is no list of files."""
    try:
        files = json.loads((folder / DONE).read_text())["files"]
        return {name: Listed(int(entry["size"]), str(entry["sha256"])) for name, entry in files.items()}
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        raise InputError(f"{folder / DONE} is no list of files") from None


def checked(path: Path) -> Path:
    """Return a run's file, or raise `InputError` if a `DONE` is there that lists other bytes or no such file."""
    if not path.is_file() or not (path.parent / DONE).is_file():
        return path
    listed = listed_files(path.parent)
    if path.name not in listed:
        raise InputError(f"{path} is not among the files that {DONE} lists")
    if (digest := sha256_of(path)) != listed[path.name].sha256:
        raise InputError(
            f"{path} is damaged: it has SHA-256 {digest[:12]}..., and {DONE} says {listed[path.name].sha256[:12]}...; "
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
