"""What reading a damaged file raises, said in one line that names the file."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from cmixup.errors import InputError

LONGEST_REASON = 200  # characters


@contextlib.contextmanager
def naming(path: Path | str, what: str) -> Iterator[None]:
    """Turn whatever a parser raises inside the block into an `InputError`: the file is no such thing.

    Parsers of damaged files raise anything, memory errors of counts that cannot be among them. The block is to hold
    the parsing alone.

    Args:
        path: the file.
        what: it should be, such as "a table of numbers".
    """
    try:
        yield
    except (InputError, FileNotFoundError):
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:LONGEST_REASON] or type(error).__name__
        raise InputError(f"{path} is not {what}: {reason}") from error


def read_numbers(path: Path, **options: Any) -> np.ndarray:
    """Return the numbers of a text file, gzipped or not, as `np.loadtxt` reads them.

    Raises:
        InputError: something else is in it, or nothing.
    """
    with naming(path, "a table of numbers"):
        numbers = np.loadtxt(path, ndmin=2, **options)
    if not numbers.size:
        raise InputError(f"{path} holds no numbers")
    return numbers
