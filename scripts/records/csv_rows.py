"""Rows of CSV files."""

import csv
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd


def to_csv(records: Iterable[Mapping[str, Any]] | Iterable[Sequence[Any]], columns: Sequence[str]) -> str:
    """Return rows, by column or in their order, as CSV text; None and NaN become an empty field."""
    return pd.DataFrame(list(records), columns=list(columns), dtype=object).to_csv(index=False, lineterminator="\n")


def read_csv(path: Path) -> list[dict[str, str]]:
    """Return the rows of a CSV file, every value as text."""
    with path.open(newline="") as stream:
        return list(csv.DictReader(stream))
