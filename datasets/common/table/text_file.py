"""A table in a file of the user's, for every dataset that reads one."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

from cmixup.errors import InputError
from datasets.common.base import Dataset
from datasets.common.table.reading import Format, read_table
from datasets.common.table.user import Source, as_names


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

    def read_file(self, text: Sequence[str], example: str) -> Source:
        """Read the file, columns `text` as text, so that 007 stays 007; an error shows the command of `example`."""
        if not self.path:
            raise InputError(f"path must name the table's file: {example}")
        return Source(read_table(Path(self.path), self.format, text), str(Path(self.path)), self.checksums)
