"""How a table becomes features: fitted on training rows, kept as JSON, applied to any rows with the same columns."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from cmixup.files import TABLE_FORMAT
from cmixup.inputs.preprocessing import Preprocessing
from cmixup.inputs.spread import warn_of_new
from cmixup.tables.columns import Category, Constant, Number, checked_columns

KINDS = {"number": Number, "category": Category, "constant": Constant}


@dataclass(frozen=True)
class TablePreprocessing(Preprocessing):
    """From a table's columns to features; a table to predict on need not have the targets."""

    format: ClassVar[str] = TABLE_FORMAT
    group: str  # the column of domains, which is no feature; empty if there is none
    log_target: bool  # whether the model predicts the natural logarithm of the targets
    scaling: str  # of numbers: standard, minmax (clipped to [0, 1]) or none
    columns: tuple[Number | Category | Constant, ...]  # that become features, in order, and constant ones
    dropped: Mapping[str, str]  # reason by column, of those that were found to be of no use

    @property
    def in_shape(self) -> tuple[int]:
        return (len(self.features),)

    @property
    def features(self) -> list[str]:
        """Names of the features, such as `size`, `size is missing`, `fuel=gas`, `fuel=(other)`."""
        return [name for column in self.columns for name in column.features]

    @property
    def read_columns(self) -> list[str]:
        return [column.name for column in self.columns if column.features]

    @property
    def text(self) -> list[str]:
        """Columns that a file is to be read with as text (`read_table`), so that 007 stays 007."""
        return [
            c.name for c in self.columns
            if isinstance(c, Category) or c.form or (isinstance(c, Constant) and isinstance(c.value, str))
        ]  # fmt: skip

    def apply(self, frame: pd.DataFrame, source: str = "table") -> np.ndarray:
        """Return the features `(N, len(features))` float32 of the rows of a table; other columns are ignored."""
        x = np.zeros((len(self.features), len(frame)), dtype=np.float32).T  # written feature by feature
        present = [c for c in self.columns if not isinstance(c, Constant) or c.name in map(str, frame)]
        frame, start = checked_columns(frame, [column.name for column in present], source), 0
        warn_of_new([c.name for c in present if not isinstance(c, Category) and c.has_new(frame[c.name])], source)
        for column in present:
            if isinstance(column, Constant):
                continue
            out = x[:, start : start + len(column.features)]
            column.encode(frame[column.name], out, source)
            if self.scaling == "minmax":
                np.clip(out, 0.0, 1.0, out=out)
            start += len(column.features)
        return np.ascontiguousarray(x)

    def predictions(self, frame: pd.DataFrame, values: np.ndarray) -> pd.DataFrame:
        """Return the predictions `values: (N, d_y)` float32 of a table's rows, named and in the unit of the targets.

        With `log_target` they are `exp(values)` in float64. The index is the table's.
        """
        values = np.exp(values.astype(np.float64)) if self.log_target else values
        return pd.DataFrame(values, index=frame.index, columns=list(self.targets))

    @classmethod
    def read_fields(cls, fields: dict[str, Any]) -> dict[str, Any]:
        as_fields = super().read_fields
        columns = tuple(KINDS[column["kind"]](**as_fields(column)) for column in fields.pop("columns"))
        return {"units": (), **as_fields(fields), "columns": columns}
