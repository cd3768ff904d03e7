"""Put published runs from a file a cell into a file a method, and check that every line and every array is equal.

`python -m scripts.records.convert OLD NEW`: OLD is the folder results/ of commit 1781091, NEW the one to write. With a
third word, the folder configs/ of that commit, the logs of tuning in it become NEW/tuned.jsonl instead, and its values
a file a dataset below NEW/tuned and NEW/tuned_default.
"""

from __future__ import annotations

import ast
import hashlib
import json
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from cmixup.errors import InputError
from scripts.driver.compose import TUNED, TUNED_DEFAULT
from scripts.driver.predictions import Parts, read_cells, read_predictions
from scripts.records.published import (
    cell_name,
    cell_of,
    keep_predictions,
    predictions_file,
    report_files,
    write_reports,
)
from scripts.records.trials import FILE, add, write_values

#: The first three lines of a log: command, commit, model, seed, metric and the best trial.
LOG = r"^# (.*)\n# Commit (\w+); model (\w+), seed (\d+), .*\n# Best validation (\w+): .*\(trial (\d+)\)"
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


def convert_tuned(configs: Path, new: Path) -> int:
    """Write the values of tuned presets, and the logs in their comments as records; return how many methods there are.

    Raises:
        InputError: a file has no log, or other values than the best trial in it.
    """
    files = [path for preset in (TUNED, TUNED_DEFAULT) for path in sorted((configs / preset).glob("*/*.yaml"))]
    for path in files:
        text = path.read_text()
        head = re.search(LOG, text)
        if head is None:
            raise InputError(f"{path} has no log of its tuning")
        command, commit, model, seed, metric, best = head.groups()
        trials = list[dict[str, Any]]()
        for score, words in re.findall(r"^# +\d+  ([\d.e+-]+|diverged) +(.+)$", text, re.MULTILINE):
            options = {} if words.startswith("preset ") else dict(re.findall(r"(\S+)=(\[.*?\]|\S+)", words))
            values = {key: _value(each) for key, each in options.items()}
            trials.append({"options": values, "val": None if score == "diverged" else float(score)})
        if (yaml.safe_load(text) or {}) != trials[int(best)]["options"]:
            raise InputError(f"{path} has other values than its best trial")
        preset, dataset = path.parts[-3:-1]
        record = {
            "dataset": dataset, "method": path.stem, "preset": preset, "command": command, "commit": commit,
            "dirty": False, "model": model, "seed": int(seed), "budget": 16, "metric": metric, "best": int(best),
            "trials": trials,
        }  # fmt: skip
        add(new / FILE, record)
        write_values(new / preset / f"{dataset}.yaml", path.stem, trials[int(best)]["options"])
    return len(files)


def _value(text: str) -> Any:
    try:
        return ast.literal_eval(text)
    except (SyntaxError, ValueError):
        return text


if __name__ == "__main__":
    old, new, *configs = map(Path, sys.argv[1:])
    if configs:
        print(f"{convert_tuned(configs[0], new)} methods were tuned")
    else:
        print("{} runs and {} arrays are equal".format(*convert(old, new)))
