"""How a table becomes features: fitted on training rows, kept as JSON, applied to any rows with the same columns."""

from collections.abc import Collection, Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from cmixup.done import TABLE_FORMAT
from cmixup.errors import InputError
from cmixup.inputs.preprocessing import Preprocessing
from cmixup.tables.columns import Category, Number, checked_columns, fit_category, fit_number

KINDS = {kind.kind: kind for kind in (Number, Category)}


@dataclass(frozen=True)
class TablePreprocessing(Preprocessing):
    """From a table's columns to features.

    Attributes:
        targets: label columns; a table to predict on need not have them.
        units: of the targets, such as "%" or "days"; nothing where none is known.
        group: the column of domains, which is no feature; empty if there is none.
        log_target: whether the model predicts the natural logarithm of the targets.
        scaling: of numbers: standard, minmax (clipped to [0, 1]) or none.
        columns: the columns that become features, in order.
        dropped: reason by column, of those that were found to be of no use.
    """

    format: ClassVar[str] = TABLE_FORMAT
    group: str
    log_target: bool
    scaling: str
    columns: tuple[Number | Category, ...]
    dropped: Mapping[str, str]

    @property
    def in_shape(self) -> tuple[int]:
        """Shape of an input."""
        return (len(self.features),)

    @property
    def features(self) -> list[str]:
        """Names of the features, such as `size`, `size is missing`, `fuel=gas`, `fuel=(other)`."""
        return [name for column in self.columns for name in column.features]

    @property
    def text(self) -> list[str]:
        """Columns that a file is to be read with as text (`read_table`), so that 007 stays 007."""
        return [column.name for column in self.columns if isinstance(column, Category) or column.form]

    def takes(self, new: Any) -> bool:
        """Return whether `new` is a data frame."""
        return hasattr(new, "iloc") and getattr(new, "ndim", 0) == 2

    def apply(self, frame: pd.DataFrame, source: str = "table") -> np.ndarray:
        """Return the features `(N, len(features))` float32 of a table's rows; columns that are not named are ignored.

        Args:
            frame: N rows; its index names rows in errors.
            source: how errors call the table.

        Raises:
            InputError: a column that is not there, or a cell that is no number where one belongs.
        """
        x = np.zeros((len(self.features), len(frame)), dtype=np.float32).T  # written feature by feature
        frame, start = checked_columns(frame, [column.name for column in self.columns], source), 0
        for column in self.columns:
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

    def to_dict(self) -> dict[str, Any]:
        """Return the fields for JSON; each column has its kind."""
        return {**super().to_dict(), "columns": [{"kind": column.kind, **asdict(column)} for column in self.columns]}

    @classmethod
    def read_fields(cls, given: dict[str, Any]) -> dict[str, Any]:
        """Return the fields as they stand in the JSON, whose columns have their kinds, and which may lack units."""
        read = super().read_fields
        columns = tuple(KINDS[column.pop("kind")](**read(column)) for column in given.pop("columns"))
        return {"units": (), **read(given), "columns": columns}


def fit(
    train: pd.DataFrame,
    targets: tuple[str, ...],
    group: str,
    categorical: Collection[str],
    *,
    forms: Mapping[str, str] | None = None,
    keep: Collection[str] = (),
    log_target: bool = False,
    rare: float = 0.01,
    scaling: str = "standard",
    units: tuple[str, ...] = (),
    source: str = "table",
) -> TablePreprocessing:
    """Fit on training rows, in the order of the file; see `fit_number` and `fit_category`.

    Args:
        train: the columns to make features of; targets and group are not among them.
        targets, group, log_target, scaling, units: see `TablePreprocessing`.
        categorical: columns that hold categories.
        forms: how a column is written, of those that are text but hold numbers or times.
        keep: columns that stay even if they seem to number the rows.
        rare: share of the rows below which levels are merged.
        source: how errors call the table.

    Raises:
        InputError: nothing is left to learn from.
    """
    columns: list[Number | Category] = []
    dropped: dict[str, str] = {}
    for name in train:
        values, form = train[name], (forms or {}).get(str(name), "")
        column: Number | Category | str
        if name in categorical:
            column = fit_category(values, rare)
        else:
            column = fit_number(values, scaling, name in keep, source, form)
        if isinstance(column, str):
            dropped[str(name)] = column
        else:
            columns.append(column)
    if not columns:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in dropped.items())
        more = f" ({reasons})" if reasons else ""
        raise InputError(f"{source} has no feature beside target {', '.join(targets)}{more}")
    return TablePreprocessing(targets, units, group, log_target, scaling, tuple(columns), dropped)
