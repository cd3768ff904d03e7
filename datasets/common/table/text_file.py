"""A table in a file of the user's, for every dataset that reads one, and labels alone from such a file."""

from collections.abc import Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from cmixup.errors import InputError, format_value, nearest
from datasets.common.base import Dataset
from datasets.common.damaged import naming
from datasets.common.fetch import sha256_of
from datasets.common.table.fitting import label_column
from datasets.common.table.reading import Format, column_named, read_table
from datasets.common.table.user import Source, as_names

LONGEST = 200  # characters of the names of columns in a message


class TextFile(Dataset):
    """A dataset whose rows are those of a file.

    Args:
        path: the file; `datasets.common.table.reading` says by which rules it is read.
        separator, decimal, encoding, missing, thousands, skip, dayfirst: see `Format`.
        options: of the other classes that the dataset is made of.
    """

    place: ClassVar[str] = "a file of your own: dataset.path="
    user_files: ClassVar[tuple[str, ...]] = ("path",)

    def __init__(
        self, path: str = "", *, separator: str = "auto", decimal: str = "auto", encoding: str = "utf-8",
        missing: str | int | list | None = None, thousands: str = "auto", skip: str | int = "auto",
        dayfirst: bool | str = "auto", **options: Any,
    ):  # fmt: skip
        super().__init__(**options)
        self.path = path
        self.format = Format(separator, decimal, encoding, as_names(missing), thousands, skip, dayfirst)

    @cached_property
    def checksums(self) -> dict[str, str]:
        """SHA-256 of the file."""
        return {Path(self.path).name: sha256_of(Path(self.path))} if Path(self.path).is_file() else {}

    def read_file(self, text: Sequence[str], example: str) -> Source:
        """Read the file, columns `text` as text, so that 007 stays 007; an error shows the command of `example`."""
        if not self.path:
            raise InputError(f"path must name the table's file: {example}")
        return Source(read_table(Path(self.path), self.format, text), str(Path(self.path)), self.checksums)


def file_labels(path: Path, column: str) -> np.ndarray:
    """Return labels from a `.npy` array or one column of a table (`read_table`), which must be numbers in every row."""
    if not path.is_file():
        raise InputError(f"table: no such file {path}")
    if path.suffix == ".npy":
        with naming(path, "an array of numbers"):
            array = np.load(path, allow_pickle=False, mmap_mode="r")  # mapped: a header may promise any size
            if array.dtype.kind not in "biuf":
                raise InputError(f"labels {path} is not an array of numbers: its dtype is {array.dtype}")
            return np.array(array, dtype=np.float64)
    frame = read_table(path, Format())
    header = [str(name) for name in frame]
    column = column_named(column, header) if column else header[0] if len(header) == 1 else ""
    if column not in header:
        near = nearest(column, header)[:LONGEST] if column else f"; there are {', '.join(header)[:LONGEST]}"
        raise InputError(f"target must name a column of {path}, got {format_value(column)}{near}")
    numbers, _ = label_column(frame[column], str(path))
    if np.isnan(numbers).any():
        row = int(np.argmax(np.isnan(numbers))) + 1
        raise InputError(f"{path}, row {row}, column {format_value(column)} holds no value")
    return numbers
