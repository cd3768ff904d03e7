"""A table of your own, from a CSV file, packed or not, or a Parquet, Feather or Excel file."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

from cmixup.errors import InputError
from datasets.common.fetch import sha256_of
from datasets.common.table.reading import Format, read_table
from datasets.common.table.user import Source, UserTable, as_names


class Csv(UserTable):
    """Any table in a file: `dataset=csv dataset.path=my.csv dataset.target=price`.

    Origin: the user's. y: the columns named by `target`, in their own units. x: the other columns as numbers.
    Shapes: x (N, features), y (N, targets); split 60 / 20 / 20 anew for every run seed, by whole domains if `group`
    names a column (worst domain: the test domain with the highest RMSE).
    Licence: the user's to know. Citation: the user's to give.

    Args:
        path: the file; `datasets.common.table.reading` says by which rules it is read.
        separator, decimal, encoding, missing, thousands, skip: see `Format`.
        options: see `UserTable`.
    """

    name: ClassVar[str] = "csv"
    unit: ClassVar[str] = "the table's own"
    place: ClassVar[str] = "a file of your own: dataset.path="
    user_files: ClassVar[tuple[str, ...]] = ("path",)
    reads_text: ClassVar[bool] = True

    def __init__(
        self,
        path: str = "",
        *,
        separator: str = "auto",
        decimal: str = "auto",
        encoding: str = "utf-8",
        missing: str | int | list | None = None,
        thousands: str = "auto",
        skip: str | int = "auto",
        **options: Any,
    ):
        super().__init__(**options)
        self.path = path
        self.format = Format(separator, decimal, encoding, as_names(missing), thousands, skip)

    @cached_property
    def _checksum(self) -> str:
        return sha256_of(Path(self.path)) if Path(self.path).is_file() else ""

    def changed(self, checksums: Mapping[str, str]) -> bool:
        """Return whether the file holds another table; one that is gone says nothing of it."""
        return bool(not self.synthetic and checksums and self._checksum and {self._checksum} != set(checksums.values()))

    def read(self) -> Source:
        """Read the file; columns that hold categories or groups are read as text, so that 007 stays 007."""
        if not self.path:
            raise InputError("path must name the table's file: dataset=csv dataset.path=my.csv dataset.target=price")
        path = Path(self.path)
        frame = read_table(path, self.format, (*self.categorical, self.group))
        return Source(frame, str(path), {path.name: sha256_of(path)})
