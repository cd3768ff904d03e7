"""Cells on disk: a record as JSON and predictions as an .npz file, both whole or not at all.

<out>/study/<table>/<condition>/<method>.json   the record; written last, so a cell that has one is done
<out>/study/<table>/<condition>/<method>.npz    test predictions of its seeds
<out>/study/<table>/<condition>/traits.json     what the training rows of the tuning seed say of themselves
<out>/study/<table>/targets.npz                 the labels of the test rows of every seed, the same for all cells
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cmixup.errors import InputError
from cmixup.files import write_atomically
from scripts.study.cell import Trained
from scripts.study.rules import Cell, Rules

Record = dict[str, Any]


def path_of(folder: Path, cell: Cell) -> Path:
    """Return the record of a cell."""
    table, condition, method = cell.key
    return folder / table / condition / f"{method}.json"


def traits_path(folder: Path, table: str, condition: str) -> Path:
    """Return the file of a table's traits under a condition."""
    return folder / table / condition / "traits.json"


def is_done(folder: Path, cell: Cell, rules: Rules) -> bool:
    """Return whether a cell has a record by these rules.

    Raises:
        InputError: a record by other rules, which must not be mixed with these.
    """
    path = path_of(folder, cell)
    if not path.is_file():
        return False
    if json.loads(path.read_text())["rules"] != rules.checksum:
        raise InputError(f"{path} was made by other rules; move {folder} away, or give another out=")
    return True


def save(folder: Path, cell: Cell, trained: Trained) -> None:
    """Write a cell.

    Raises:
        InputError: other test rows than the cells before it had.
    """
    path = path_of(folder, cell)
    path.parent.mkdir(parents=True, exist_ok=True)
    targets = path.parent.parent / "targets.npz"
    if targets.is_file():
        known = read_arrays(targets)
        if not all(np.array_equal(one, other) for one, other in zip(known, trained.target, strict=True)):
            raise InputError(f"{' '.join(cell.key)} has other test rows than {targets}")
    else:
        write_atomically(targets, _bytes(trained.target))
    write_atomically(path.with_suffix(".npz"), _bytes(trained.prediction))
    write_atomically(path, json.dumps(trained.record, indent=1) + "\n")


def load(folder: Path, rules: Rules) -> list[Record]:
    """Return the records of all cells that are done, in the order of the rules."""
    return [json.loads(path_of(folder, cell).read_text()) for cell in rules.cells() if is_done(folder, cell, rules)]


def read_arrays(path: Path) -> list[np.ndarray]:
    """Return the arrays of an .npz file that `save` wrote, seed after seed."""
    with np.load(path, allow_pickle=False) as file:
        return [file[str(k)] for k in range(len(file.files))]


def _bytes(arrays: Sequence[np.ndarray]) -> bytes:
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **{str(k): array for k, array in enumerate(arrays)})  # type: ignore[arg-type]
    return buffer.getvalue()
