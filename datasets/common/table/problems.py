"""Problems that a table may hide, in a line each, with the option that fixes it; nothing is left out for them."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from cmixup.errors import InputError, format_value
from cmixup.inputs.spread import varies
from cmixup.sampling.inputs import Floats, Ints
from cmixup.tables.checks import MIN_ROWS, far_rows, leaks, looks_like_id
from cmixup.tables.written import Reading
from datasets.common.base import SPLITS
from datasets.common.table.fitting import numbers_rows

#: Names by which a column calls itself an ID.
ID_NAME = re.compile(r"(^|[\W_])(id|ids|uuid|guid|nr|no|index|rownames?|rownumber)$", re.IGNORECASE)
#: Equal rows are said if they are this many times as many pairs as labels that are drawn anew would give.
BY_CHANCE, FEWEST = 20.0, 3
#: Equal rows are a mistake only where some column differs in half of the rows; scores of a test repeat.
CONTINUOUS = 0.5


def find_problems(
    features: pd.DataFrame, y: Floats, targets: Sequence[str], categorical: frozenset[str], keep: Sequence[str] = ()
) -> list[str]:
    """Return a line for each problem that a table of features, in numbers, and labels (N, d_y) seems to have.

    The index of the features names rows; `keep` names columns that number no rows, as the user says.
    """
    if len(y) < MIN_ROWS:
        return []
    values = {name: column.to_numpy() for name, column in features.items()}
    leaked = leaks(values, y, categorical)
    lines = [
        f"{name} alone predicts {targets[best]} nearly (rank correlation {score:.3f}): if it is known only once "
        f"{targets[best]} is, dataset.drop=[{name}]"
        for name, (best, score) in leaked.items()
    ]
    numbered = {name for name, column in values.items() if name not in categorical and _is_id(name, column)}
    for name, column in values.items():
        # Fitting drops a column that numbers every row, and says so.
        if name in numbered and name not in leaked and name not in keep and not numbers_rows(column):
            lines.append(f"{name} looks like an ID (nearly as many values as rows): dataset.drop=[{name}]")
    features_without_ids = [column for name, column in values.items() if name not in numbered]
    lines += _equal(features_without_ids, y)
    for name, labels in zip(targets, y.T, strict=True):
        if rows := far_rows(labels, features.index):
            cure = " or try dataset.log_target=true" if labels.min() > 0 else ""
            lines.append(f"{name} lies far outside in rows {rows}: fix the file if these are mistakes{cure}")
    return lines


def equal_groups(features: pd.DataFrame, categorical: frozenset[str]) -> Ints:
    """Return (N,) the number of each row's group: rows of one group have equal features, IDs apart."""
    values = {name: column.to_numpy() for name, column in features.items()}
    features_without_ids = [
        column for name, column in values.items() if name in categorical or not _is_id(name, column)
    ]
    return groups_of(features_without_ids) if features_without_ids else np.arange(len(features))


def groups_of(columns: Sequence[Floats]) -> Ints:
    """Return (N,) the number of each row's group; rows are in one group if all columns (N,) agree, NaN with NaN."""
    frame = pd.DataFrame(np.column_stack(columns))
    return np.asarray(frame.groupby(list(frame), dropna=False).ngroup())


def _is_id(name: str, column: Floats) -> bool:
    return looks_like_id(column, named=bool(ID_NAME.search(name))) or numbers_rows(column)


def _equal(columns: list[Floats], y: Floats) -> list[str]:
    """Return a line on rows that equal others, and one on rows that equal others but for their labels."""
    if not columns:
        return []
    n, group = len(y), groups_of(columns)
    row_group = groups_of([group.astype(np.float64), *y.T])
    pairs, equal_pairs = _pairs(group), _pairs(row_group)
    label = groups_of(list(y.T))
    chance = _pairs(label) / (n * (n - 1) / 2) * pairs
    repeated = n - len(np.unique(row_group))
    lines = list[str]()
    if repeated >= FEWEST and equal_pairs >= BY_CHANCE * chance:
        lines.append(
            f"{repeated} rows equal others in features and label; split at random, about {in_both(row_group):.0f} test "
            "rows have their equal in training: dataset.together=true splits by them, or group= by who they are of"
        )
    continuous = max(len(np.unique(column[~np.isnan(column)])) for column in columns) >= CONTINUOUS * n
    conflicts = len(np.unique(row_group)) - len(np.unique(group))
    if continuous and conflicts >= FEWEST:
        lines.append(
            f"{conflicts} rows equal others in all features and have another label, which no model can tell apart: "
            "look for a missing column; dataset.together=true keeps them in one part"
        )
    return lines


def in_both(group: Ints) -> float:
    """Return how many test rows are expected to have one of their group in training, split 60 / 20 / 20 at random."""
    size = np.bincount(group)
    return float((0.2 * size * (1 - 0.4 ** (size - 1.0)))[size > 1].sum())


def _pairs(group: Ints) -> float:
    count = np.bincount(group).astype(np.float64)
    return float((count * (count - 1) / 2).sum())


def reading_lines(readings: Mapping[str, Reading], attrs: Mapping[Any, Any]) -> list[str]:
    """Return a line on the columns that were read as numbers, one on those read as days, and one on each doubt.

    `attrs` is what the table's reader noted in its frame: `header` and `doubts`, a line by column.
    """
    kinds = {"numbers": list[str](), "days": list[str]()}
    for name, reading in readings.items():
        if reading.form:
            kinds["numbers" if reading.form[0] == "1" else "days"].append(f"{name} ({reading.form})")
    doubts = {name: reading.doubt for name, reading in readings.items() if reading.doubt} | attrs.get("doubts", {})
    return [
        *([attrs["header"]] if "header" in attrs else []),
        *(f"read as {kind}: {', '.join(names)}" for kind, names in kinds.items() if names),
        *(f"{name}: {doubt}" for name, doubt in doubts.items()),
    ]


def label_notes(targets: tuple[str, ...], y: np.ndarray, source: str, *, log: bool) -> list[str]:
    """Return a line for each label above 0 that is skewed by more than 1, and its logarithm by less than half of that.

    A label that is nowhere known, or the same in every row, is refused.
    """
    notes = []
    for name, values in zip(targets, y.T, strict=True):
        if not len(values := values[~np.isnan(values)]) and len(y):
            raise InputError(f"target {format_value(name)} of {source} has no value in any row")
        if len(values) < len(SPLITS):
            continue
        if not varies(values.min(), values.max(), len(values)):
            raise InputError(
                f"target {format_value(name)} of {source} is {values[0]:g} in every row: there is nothing to predict"
            )
        if values.min() > 0 and not log:
            skewness, log_skewness = (float(np.mean(((v - v.mean()) / v.std()) ** 3)) for v in (values, np.log(values)))
            if skewness > 1 and abs(log_skewness) < skewness / 2:
                notes.append(
                    f"{name} is skewed (skewness {skewness:.1f}); dataset.log_target=true trains on its logarithm"
                )
    return notes
