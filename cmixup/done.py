"""The file `DONE` of a run's folder, which says that it is whole, and by which every other file is checked.

`DONE` is written last and lists size and SHA-256 of the other files. Sizes tell cheaply that none was cut or emptied;
a bit that has flipped since, which a model would predict other numbers with, shows when the file is read.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from cmixup.errors import InputError
from cmixup.files import sha256_of

DONE = "DONE"
PREPROCESSING = "preprocessing.json"  # of a run on data whose new rows it can predict
#: First key of PREPROCESSING, by the kind of data.
TABLE_FORMAT, IMAGES_FORMAT, ARRAYS_FORMAT = "cmixup table preprocessing 1", "cmixup images 1", "cmixup arrays 1"
SERIES_FORMAT = "cmixup series 1"
FORMAT = 3  # of a run's folder, in its report and its `DONE`: that lists sizes and SHA-256


@dataclass(frozen=True)
class Listed:
    """An entry of `DONE` for a file.

    Attributes:
        size: in bytes.
        sha256: 64 hexadecimal digits.
    """

    size: int
    sha256: str


def done_text(files: Iterable[Path]) -> str:
    """Return the text of a `DONE` that lists these files."""
    listed = {path.name: {"size": path.stat().st_size, "sha256": sha256_of(path)} for path in files}
    return json.dumps({"format": FORMAT, "files": listed})


def listed_files(folder: Path) -> dict[str, Listed]:
    """Return the entries of a run's `DONE` by the files' names.

    Raises:
        InputError: it is no list of files.
        OSError: there is none.
    """
    try:
        files = json.loads((folder / DONE).read_text())["files"]
        return {name: Listed(int(entry["size"]), str(entry["sha256"])) for name, entry in files.items()}
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError, RecursionError):
        raise InputError(f"{folder / DONE} is no list of files") from None


def checked(path: Path) -> Path:
    """Return the path of a run's file if its bytes match `DONE`; files of a folder without one are not checked.

    Raises:
        InputError: the file has other bytes than when the run ended, or came later.
    """
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

    PyTorch reads on where a bit has flipped; the archive's own checksums are compared here. Whatever a damaged file may
    raise is raised.
    """
    with zipfile.ZipFile(path) as archive:
        if damaged := archive.testzip():
            raise ValueError(f"{damaged} has another checksum")
    return torch.load(path, map_location="cpu", weights_only=True)
