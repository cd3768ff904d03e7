"""Curves of runs over their epochs, and the figures drawn from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scripts.driver.runs import HISTORY
from scripts.records.records import read_csv


@dataclass(frozen=True)
class Curve:
    """One run's history.

    Attributes:
        columns: by name (`epoch`, `train_loss`, `val_rmse`, `test_rmse`, ...) a value an epoch.
        best_epoch: the selected one, counted from 1.
    """

    experiment: str
    dataset: str
    method: str
    preset: str
    seed: int
    best_epoch: int
    columns: Mapping[str, list[float]]


def read_curves(reports: Sequence[Mapping[str, Any]], root: Path) -> list[Curve]:
    """Return the curves of these reports' runs, from `root/<run>/history.csv`."""
    return [
        Curve(
            **{name: r[name] for name in ("experiment", "dataset", "method", "preset", "seed", "best_epoch")},
            columns=_columns(root / r["run"] / HISTORY),
        )
        for r in reports
    ]


def _columns(path: Path) -> dict[str, list[float]]:
    rows = read_csv(path)
    return {name: [float(row[name]) for row in rows] for name in rows[0]}
