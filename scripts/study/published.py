"""What is published of the study: all records in one compressed file, and the predictions of each table in one."""

from __future__ import annotations

import gzip
import io
import itertools
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cmixup.errors import InputError
from cmixup.files import write_atomically
from scripts.report.experiment import RESULTS
from scripts.study.cell import Trained, nrmse
from scripts.study.rules import Rules
from scripts.study.store import is_done, load, path_of, read_arrays, save, traits_path

FOLDER = RESULTS / "study"
RECORDS = FOLDER / "records.jsonl.gz"
TRAITS = FOLDER / "traits.jsonl"
TARGET = "target"


def publish(folder: Path, rules: Rules, into: Path = FOLDER) -> int:
    """Copy the cells of a folder that are done; return how many. The same cells give the same bytes."""
    records = load(folder, rules)
    arrays: dict[str, dict[str, np.ndarray]] = {}
    for cell in rules.cells():
        path = path_of(folder, cell)
        if path.is_file():
            of_table = arrays.setdefault(cell.table.name, {})
            for name, file in (
                (TARGET, path.parent.parent / "targets.npz"),
                (key_of(cell.key[1:]), path.with_suffix(".npz")),
            ):
                of_table |= {f"{name}:{k}": array for k, array in enumerate(read_arrays(file))}
    for table, each in arrays.items():
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **each)  # type: ignore[arg-type]
        write_atomically(into / "predictions" / f"{table}.npz", buffer.getvalue())
    text = "".join(json.dumps(record) + "\n" for record in records)
    write_atomically(into / RECORDS.name, gzip.compress(text.encode(), mtime=0))
    described = dict.fromkeys(traits_path(folder, *cell.key[:2]) for cell in rules.cells())
    lines = [path.read_text() for path in described if path.is_file()]
    if lines:
        write_atomically(into / TRAITS.name, "".join(lines))
    return len(records)


def restore(folder: Path, rules: Rules, published: Path = FOLDER) -> int:
    """Write the published cells that a folder lacks into it, so that it goes on from them; return how many.

    Raises:
        InputError: the folder, or what is published, was made by other rules, or with other test rows.
    """
    records = {(record["table"], record["condition"], record["method"]): record for record in read(published)}
    lacking = [cell for cell in rules.cells() if cell.key in records and not is_done(folder, cell, rules)]
    for table, cells in itertools.groupby(lacking, key=lambda cell: cell.table.name):
        with np.load(published / "predictions" / f"{table}.npz", allow_pickle=False) as file:
            for cell in cells:
                record = records[cell.key]
                if record["rules"] != rules.checksum:
                    raise InputError(f"{published} was made by other rules: nothing can go on from it")
                prediction, target = (
                    [file[f"{name}:{k}"] for k in range(len(record["seeds"]))]
                    for name in (key_of(cell.key[1:]), TARGET)
                )
                save(folder, cell, Trained(record, prediction, target))
    for told in read_traits(published):
        path = traits_path(folder, told["table"], told["condition"])
        if not path.is_file():
            path.parent.mkdir(parents=True, exist_ok=True)
            write_atomically(path, json.dumps(told) + "\n")
    return len(lacking)


def key_of(parts: Sequence[str]) -> str:
    """Return how a cell's predictions are called in its table's file."""
    return "/".join(parts)


def read(folder: Path = FOLDER) -> list[dict[str, Any]]:
    """Return the published records; none if nothing has been published."""
    path = folder / RECORDS.name
    if not path.is_file():
        return []
    return [json.loads(line) for line in gzip.decompress(path.read_bytes()).decode().splitlines()]


def read_traits(folder: Path = FOLDER) -> list[dict[str, Any]]:
    """Return the published traits of tables under conditions; none if nothing has been published."""
    path = folder / TRAITS.name
    return [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []


def verify(folder: Path = FOLDER) -> tuple[int, list[str]]:
    """Compute every published test score again from its predictions; return how many, and those that differ."""
    count, problems = 0, list[str]()
    by_table: dict[str, list[dict[str, Any]]] = {}
    for record in read(folder):
        by_table.setdefault(record["table"], []).append(record)
    for table, records in by_table.items():
        with np.load(folder / "predictions" / f"{table}.npz", allow_pickle=False) as file:
            for record in records:
                name, std = key_of((record["condition"], record["method"])), np.array(record["std"])
                for k, row in enumerate(record["seeds"]):
                    again = nrmse(file[f"{name}:{k}"], file[f"{TARGET}:{k}"], std)
                    count += 1
                    if again != row["test"] and not (np.isnan(again) and row["test"] == float("inf")):
                        problems.append(
                            f"{table} {name} seed {row['seed']}: {row['test']!r} published, {again!r} again"
                        )
    return count, problems
