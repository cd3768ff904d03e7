"""What is published of the study: all records in one compressed file, and the predictions of each table in one.

Records by rules.yaml lie in results/study, those by other rules in a folder below that has the name of the rules.
"""

from __future__ import annotations

import gzip
import io
import itertools
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from cmixup.errors import InputError
from cmixup.files import write_atomically
from scripts.driver.provenance import check_committed
from scripts.records.experiment import RESULTS
from scripts.study.cell import Trained, nrmse
from scripts.study.rules import RULES, Cell, Rules
from scripts.study.store import is_done, load, path_of, read_arrays, save, traits_path

FOLDER = RESULTS / "study"
RECORDS = FOLDER / "records.jsonl.gz"
TRAITS = FOLDER / "traits.jsonl"
TARGET = "target"


def folder_of(rules: Rules) -> Path:
    """Return where what was made by these rules is published."""
    return FOLDER if rules.name == RULES.stem else FOLDER / rules.name


def publish(folder: Path, rules: Rules, into: Path | None = None) -> int:
    """Copy the cells of a folder that are done to where their rules publish; return how many.

    A cell takes the place of the one of its key, and the others that are published stay. The same cells give the same
    bytes.

    Raises:
        InputError: what is published was made by other rules, or a table with other test rows; or cells that were made
            by edited or unknown code.
    """
    into = into or folder_of(rules)
    if other := [record for record in read(into) if record["rules"] != rules.checksum]:
        raise InputError(f"{into} was made by other rules: nothing can be published beside it ({len(other)} records)")
    made = load(folder, rules)
    check_committed({key_of(key_of_record(record)): record for record in made})
    records = {key_of_record(record): record for record in (*read(into), *made)}
    cells = [cell for cell in rules.cells() if cell.key in records]
    for table, of_table in itertools.groupby(cells, key=lambda cell: cell.table.name):
        _publish_predictions(folder, list(of_table), into / "predictions" / f"{table}.npz")
    text = "".join(json.dumps(records[cell.key]) + "\n" for cell in cells)
    write_atomically(into / RECORDS.name, gzip.compress(text.encode(), mtime=0))
    described = {(told["table"], told["condition"]): json.dumps(told) + "\n" for told in read_traits(into)}
    for key in dict.fromkeys(cell.key[:2] for cell in rules.cells()):
        path = traits_path(folder, *key)
        described |= {key: path.read_text()} if path.is_file() else {}
    if described:
        order = dict.fromkeys(cell.key[:2] for cell in rules.cells())
        write_atomically(into / TRAITS.name, "".join(described[key] for key in order if key in described))
    return len(made)


def _publish_predictions(folder: Path, cells: Sequence[Cell], into: Path) -> None:
    """Put the predictions of a table's cells that are done in a folder into its published file, in the cells' order."""
    known = _arrays(into) if into.is_file() else {}
    made: dict[str, np.ndarray] = {}
    for cell in cells:
        path = path_of(folder, cell)
        if path.is_file():
            for name, file in (
                (TARGET, path.parent.parent / "targets.npz"),
                (key_of(cell.key[1:]), path.with_suffix(".npz")),
            ):
                made |= {f"{name}:{k}": array for k, array in enumerate(read_arrays(file))}
    same = {name for name in made if name in known and np.array_equal(made[name], known[name], equal_nan=True)}
    if any(name.startswith(f"{TARGET}:") and name in known for name in set(made) - same):
        raise InputError(f"{folder} has other test rows of {into.stem} than {into}")
    if len(same) < len(made):
        order = [TARGET, *(key_of(cell.key[1:]) for cell in cells)]
        merged = sorted((known | made).items(), key=lambda item: order.index(item[0].rpartition(":")[0]))
        buffer = io.BytesIO()
        np.savez_compressed(buffer, **dict(merged))  # type: ignore[arg-type]
        write_atomically(into, buffer.getvalue())


def _arrays(path: Path) -> dict[str, np.ndarray]:
    with np.load(path, allow_pickle=False) as file:
        return dict(file)


def restore(folder: Path, rules: Rules, published: Path | None = None) -> int:
    """Write the cells that their rules published and a folder lacks into it; return how many.

    Raises:
        InputError: the folder, or what is published, was made by other rules, or with other test rows.
    """
    published = published or folder_of(rules)
    records = {key_of_record(record): record for record in read(published)}
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


def key_of_record(record: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return the key of the cell that a record is of."""
    return record["table"], record["condition"], record["method"]


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
    """Compute every published test score again from its predictions; return how many, and those that differ.

    What was made by other rules, in the folders below, is verified, too.
    """
    each = [_verify(path.parent) for path in sorted(folder.rglob(RECORDS.name))]
    return sum(count for count, _ in each), [problem for _, problems in each for problem in problems]


def _verify(folder: Path) -> tuple[int, list[str]]:
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
