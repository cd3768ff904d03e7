"""Put published runs from a file a cell into a file a method, and check that every line and every array is equal.

`python -m scripts.records.convert OLD NEW`: OLD is the folder results/ of commit 1781091, NEW the one to write.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import numpy as np

from cmixup.errors import InputError
from scripts.driver.predictions import Parts, read_cells, read_predictions
from scripts.records.published import (
    cell_name,
    cell_of,
    keep_predictions,
    predictions_file,
    report_files,
    write_reports,
)

Digests = dict[tuple[str, int, str, str], str]  # of arrays, by cell, seed, part and name


def convert(old: Path, new: Path) -> tuple[int, int]:
    """Write what `old` publishes into `new`; return how many runs and arrays there are.

    Raises:
        InputError: a line or an array is not what it was.
    """
    texts = [line for path in sorted((old / "runs").rglob("*.jsonl")) for line in path.read_text().splitlines()]
    reports = {(cell_of(r), r["seed"]): r for r in map(json.loads, texts)}
    write_reports(new, reports.values())
    if sorted(line for path in report_files(new) for line in path.read_text().splitlines()) != sorted(texts):
        raise InputError(f"{new} has other lines than {old}")
    before, after, by_method = Digests(), Digests(), dict[Path, list[Path]]()
    names = {(predictions_file(new, r), cell_name(r)): cell for (cell, _), r in reports.items()}
    of_file = {cell: file for (file, _), cell in names.items()}
    for path in sorted((old / "predictions").rglob("*.h5")):
        cell = path.relative_to(old / "predictions").as_posix().removesuffix(".h5")
        by_method.setdefault(of_file[cell], []).append(path)
    for file, paths in by_method.items():
        kept = {str(p.relative_to(old / "predictions"))[:-3]: read_predictions(p) for p in paths}
        keep_predictions(new, ((reports[cell, seed], one) for cell, each in kept.items() for seed, one in each.items()))
        for cell, each in kept.items():
            before |= _digests(cell, each)
        for name, each in read_cells(file).items():
            after |= _digests(names[file, name], each)
    if before != after:
        raise InputError(f"{new} has other predictions than {old}")
    return len(texts), len(before)


def _digests(cell: str, seeds: Mapping[int, Parts]) -> Digests:
    return {
        (cell, seed, part, name): hashlib.sha256(
            repr((array.shape, array.dtype)).encode() + array.tobytes()
        ).hexdigest()
        for seed, parts in seeds.items()
        for part in parts
        for name, array in _arrays(parts, part)
    }


def _arrays(parts: Parts, part: str) -> Iterator[tuple[str, np.ndarray]]:
    kept = parts[part]
    yield from kept.prediction.items()
    yield "target", kept.target
    yield "domain", kept.domain.astype(np.int64)


if __name__ == "__main__":
    n_runs, n_arrays = convert(*map(Path, sys.argv[1:]))
    print(f"{n_runs} runs and {n_arrays} arrays are equal")
