"""Put the study's published cells into the store of all runs, and check that every record and array is equal.

`python -m scripts.study.convert OLD NEW`: OLD is the folder results/ of commit 1781091, NEW the one to write.
"""

from __future__ import annotations

import gzip
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np

from cmixup.errors import InputError
from scripts.driver.predictions import read_cells
from scripts.records.published import cell_name, predictions_file
from scripts.study.published import read, to_reports, write
from scripts.study.rules import RULES, SMALL, load_rules


def convert(old: Path, new: Path) -> tuple[int, int]:
    """Write what `old` has of the study into `new`; return how many records and arrays there are.

    Raises:
        InputError: a record or an array is not what it was.
    """
    count = arrays = 0
    for path, folder in ((RULES, old / "study"), (SMALL, old / "study" / SMALL.stem)):
        rules = load_rules(path)
        text = gzip.decompress((folder / "records.jsonl.gz").read_bytes()).decode()
        records = [json.loads(line) for line in text.splitlines()]
        files = {r["table"]: dict(np.load(folder / "predictions" / f"{r['table']}.npz")) for r in records}

        def of(record: dict, name: str, files: dict = files) -> list[np.ndarray]:
            return [files[record["table"]][f"{name}:{k}"] for k in range(len(record["seeds"]))]

        def own(record: dict, of: Any = of) -> list[np.ndarray]:
            return of(record, f"{record['condition']}/{record['method']}")

        write(new, rules, ((r, own(r), of(r, "target")) for r in records))
        if read(rules, new) != records:
            raise InputError(f"{new} has other records than {folder}")
        for record in records:
            finals = to_reports(record, rules)[: len(record["seeds"])]
            kept = read_cells(predictions_file(new, finals[0]))
            for report, prediction, target in zip(finals, own(record), of(record, "target"), strict=True):
                found = kept[cell_name(report)][report["seed"]]["test"]
                pairs = ((prediction, found.prediction[""]), (target, found.target))
                if any(a.dtype != b.dtype or a.shape != b.shape or a.tobytes() != b.tobytes() for a, b in pairs):
                    raise InputError(f"{report['run']} has other arrays")
                arrays += 2
        count += len(records)
    return count, arrays


if __name__ == "__main__":
    n_records, n_arrays = convert(*map(Path, sys.argv[1:]))
    print(f"{n_records} records and {n_arrays} arrays are equal")
