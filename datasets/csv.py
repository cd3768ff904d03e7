"""A table of your own, from a CSV file."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import ClassVar

from cmixup.errors import InputError
from datasets.common.fetch import sha256_of
from datasets.common.table.own import OwnTable, Source, as_names
from datasets.common.table.reading import Format, read_table


class Csv(OwnTable):
    """Any table in a text file: `dataset=csv dataset.path=my.csv dataset.target=price`.

    Origin: the user's. y: the columns named by `target`, in their own units. x: the other columns as numbers.
    Shapes: x (N, features), y (N, targets); split 60 / 20 / 20 anew for every run seed, by whole domains if `group`
    names a column (worst domain: the test domain with the highest RMSE).
    Licence: the user's to know. Citation: the user's to give.

    Args:
        path: the file; `datasets.common.table.reading` says by which rules it is read.
        separator, decimal, encoding, missing: see `Format`.
        target, group, categorical, drop, keep, log_target, rare, scaling, max_rows, train_rows, val_rows,
            together, synthetic: see `OwnTable`.
    """

    name: ClassVar[str] = "csv"
    unit: ClassVar[str] = "the table's own"
    place: ClassVar[str] = "a file of your own: dataset.path="
    own_files: ClassVar[tuple[str, ...]] = ("path",)
    reads_dates: ClassVar[bool] = True

    def __init__(
        self,
        path: str = "",
        *,
        target: str | int | list = "",
        group: str | int = "",
        categorical: str | int | list | None = None,
        drop: str | int | list | None = None,
        keep: str | int | list | None = None,
        log_target: bool = False,
        separator: str = "auto",
        decimal: str = "auto",
        encoding: str = "utf-8",
        missing: str | int | list | None = None,
        rare: float = 0.01,
        scaling: str = "standard",
        max_rows: int | None = None,
        train_rows: int | None = None,
        val_rows: int | None = None,
        together: bool = False,
        synthetic: bool = False,
    ):
        super().__init__(
            target=target, group=group, categorical=categorical, drop=drop, keep=keep,
            log_target=log_target, rare=rare, scaling=scaling,
            max_rows=max_rows, train_rows=train_rows, val_rows=val_rows, together=together,
            synthetic=synthetic,
        )  # fmt: skip
        self.path = path
        self.format = Format(separator, decimal, encoding, as_names(missing))

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
