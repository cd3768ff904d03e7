"""Errors of reading a damaged file, told in one line that names the file."""

import contextlib
from collections.abc import Iterator
from pathlib import Path

from cmixup.errors import InputError

LONGEST_REASON = 200  # characters


@contextlib.contextmanager
def naming(path: Path | str, kind: str) -> Iterator[None]:
    """Turn whatever a parser raises inside the block into an `InputError`: the file is not of the `kind` it should be.

    Parsers of damaged files raise anything, memory errors of counts that cannot be among them. The block is to hold
    the parsing alone.
    """
    try:
        yield
    except (InputError, FileNotFoundError):
        raise
    except Exception as error:
        reason = " ".join(str(error).split())[:LONGEST_REASON] or type(error).__name__
        raise InputError(f"{path} is not {kind}: {reason}") from error
