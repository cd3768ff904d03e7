"""Runs as folders, from their names to the mark that they are whole.

A run's folder holds `config.yaml`, `report.json`, `history.csv`, `predictions.h5`, `checkpoint.pt` (the best epoch's
weights), `model.json`, of a table `preprocessing.json`, and, written last, `DONE`; `cmixup.load_run` predicts with it.
A folder without `DONE` is not a result: the run has not ended, or has failed and its report says where. `DONE` lists
sizes and SHA-256 of the other files: a run of which one was cut or emptied is not done, either, and a file with
other bytes is refused when it is read. A stack's runs are marked as done together or not at all, whenever the process
dies.
"""

from __future__ import annotations

import csv
import hashlib
import io
import json
import math
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
import yaml
from torch import Tensor

from cmixup.data import RegressionData, Split
from cmixup.errors import InputError
from cmixup.files import DAMAGED, DONE, checked, done_text, listed_files, make_folder, write_atomically
from cmixup.saved_run import WEIGHTS
from cmixup.training.trainer import RunResult
from datasets.common.base import Dataset
from datasets.common.damaged import naming
from scripts.driver.checkpoints import RESUME_FILE
from scripts.driver.locks import holding_locks
from scripts.stats.scored import Parts, Scored

REPORT, HISTORY, CONFIG, PREDICTIONS = "report.json", "history.csv", "config.yaml", "predictions.h5"
PREDICTION = "prediction"  # of the method; those of its other predictors are called prediction_<name>
COMPRESSION = {"compression": "gzip", "compression_opts": 9, "shuffle": True}
LONGEST_NAME = 120  # of a folder
LEARNED_NOTHING = "learned_nothing"  # a fact of such a run, 1; its report says it in words under the same name
STRICT = {"NaN": None, "Infinity": "inf", "-Infinity": "-inf"}  # what a report has for words that strict JSON lacks
ENDING = ".ending"  # of the out folder: lists the runs of a stack that are whole and are being marked as done


def folder_name(preset: str, options: Mapping[str, Any], longest: int = LONGEST_NAME) -> str:
    """Name a run by its preset and every option that differs from it; what does not fit ends in a hash."""
    parts = [f"{key.removeprefix('method.')}={value}" for key, value in sorted(options.items())]
    written = ",".join([preset, *parts])
    name = re.sub(r"[^\w=,.+-]", "_", written)
    short = name.encode()[:longest].decode(errors="ignore")  # disks count bytes
    if name == written == short:
        # Of texts that others could be taken for: in another case, on disks that have none, or as several options.
        unlike = [value for value in options.values() if isinstance(value, str) and re.search("[A-Z,=]", value)]
        if not unlike:
            return name
        written += repr(unlike)
    digest = hashlib.sha256(written.encode()).hexdigest()[:12]
    return f"{short}-{digest}"


def begin_run(folder: Path, config: Mapping[str, Any]) -> None:
    """Make a run's folder and write its configuration; whatever was there no longer counts as done."""
    make_folder(folder)
    (folder / DONE).unlink(missing_ok=True)
    write_atomically(folder / CONFIG, yaml.safe_dump(dict(config), sort_keys=False))


def write_run(
    folder: Path,
    config: Mapping[str, Any],
    report: Mapping[str, Any],
    history: Sequence[Mapping[str, float]],
    *,
    state: Mapping[str, Tensor] | None = None,
    predictions: Parts | None = None,
    texts: Mapping[str, str] = MappingProxyType({}),
) -> None:
    """Write a run's results; one that has failed has no weights `state`, no predictions and no `texts` by file name."""
    begin_run(folder, config)  # again, as somebody may have removed the folder while it trained
    (folder / WEIGHTS).unlink(missing_ok=True)
    if state is not None:
        buffer = io.BytesIO()
        torch.save(dict(state), buffer)
        write_atomically(folder / WEIGHTS, buffer.getvalue())
    if predictions is None:
        (folder / RESUME_FILE).unlink(missing_ok=True)  # it would fail again
    else:
        write_predictions(folder / PREDICTIONS, predictions)
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(history[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(history)
    strict = json.loads(json.dumps(report), parse_constant=STRICT.__getitem__)
    for name, text in {HISTORY: stream.getvalue(), REPORT: json.dumps(strict, indent=1) + "\n", **texts}.items():
        write_atomically(folder / name, text)


def mark_done(folder: Path) -> None:
    """Write the `DONE` of a run that is whole; what it would have gone on from goes."""
    kept = [path for path in sorted(folder.iterdir()) if path.is_file() and path.name not in (DONE, RESUME_FILE)]
    listed = done_text(path for path in kept if path.suffix != DAMAGED and path.name[0] != ".")
    write_atomically(folder / DONE, listed)
    (folder / RESUME_FILE).unlink(missing_ok=True)


def mark_stack_done(out: Path, folders: Sequence[Path] = ()) -> None:
    """Mark runs that are whole as done, all or none, whatever happens: what was left of a stack would be another stack.

    Several, whose locks are held, are written down in one file of `out` first. Whoever finds it later, as this process
    has died, goes on marking; so does a call without folders.
    """
    ending = out / ENDING
    if len(folders) < 2 and not ending.is_file():
        for folder in folders:
            mark_done(folder)
        return
    with holding_locks(out, [ENDING], wait=True):
        for folder in (out / name for name in (json.loads(ending.read_text()) if ending.is_file() else ())):
            (folder / RESUME_FILE).unlink(missing_ok=True)
            if (folder / REPORT).is_file() and not (folder / DONE).is_file():
                mark_done(folder)
        write_atomically(ending, json.dumps([folder.relative_to(out).as_posix() for folder in folders]))
        for folder in folders:
            mark_done(folder)
        ending.unlink()


def is_done(folder: Path, dataset: Dataset | None = None) -> bool:
    """Return whether a folder holds a finished run with nothing of it damaged, and of the table that `dataset` has."""
    if not (folder / DONE).is_file() or find_damage(folder):
        return False
    return dataset is None or not dataset.changed(read_report(folder)["checksums"])


def find_damage(folder: Path) -> str:
    """Return what is wrong with the first damaged file of a finished run, or nothing; contents are not read.

    A file of another size than `DONE` says is damaged; one that somebody has removed is not, but for the report.
    """
    try:
        sizes = {name: entry.size for name, entry in listed_files(folder).items()}
    except InputError as error:
        return str(error)
    if REPORT not in sizes:
        return f"{folder / DONE} lists no report"
    if not (folder / REPORT).is_file():
        return f"{folder / REPORT} is not there"
    for path in (folder / name for name in sizes):
        if path.is_file() and (size := path.stat().st_size) != sizes[path.name]:
            return f"{path} has {size} bytes, not {sizes[path.name]}"
    return ""


def read_report(folder: Path) -> dict[str, Any]:
    """Return the report of a run's folder; a number that is not finite, which JSON lacks, is one again."""
    report = json.loads(checked(folder / REPORT).read_text(), object_hook=_with_infinity)
    for values in (*report["scores"].values(), report["facts"]):
        values.update({key: math.nan for key, value in values.items() if value is None})
    return report


def _with_infinity(node: dict[str, Any]) -> dict[str, Any]:
    """Return a part of a report in which infinity is a number, such as a bandwidth's; names of columns stay."""
    numbers = {key: float(value) for key, value in node.items() if isinstance(value, str) and value in ("inf", "-inf")}
    columns = [key for key in numbers if key in ("target", "group") or key.startswith("dataset.")]
    return node | numbers | {key: node[key] for key in columns}


def load_reports(root: Path) -> list[dict[str, Any]]:
    """Return the reports of all finished runs below `root`, in order of their folders' names.

    Runs with a damaged file are left out, and a line says so: training them again replaces them.
    """
    reports = []
    for folder in (done.parent for done in sorted(root.rglob(DONE))):
        if damage := find_damage(folder):
            print(f"{damage}: the run does not count; its command trains it again", file=sys.stderr)
            continue
        try:
            reports.append(read_report(folder))
        except InputError as error:
            print(f"{error}; the run does not count", file=sys.stderr)
    return reports


def scored_predictions(data: RegressionData, result: RunResult) -> dict[str, Scored]:
    """Return the predictions of a run with the labels and domains of their rows."""
    parts = {}
    for part, predictions in result.predictions.items():
        split: Split = getattr(data, part)
        values = {name: prediction.numpy() for name, prediction in predictions.items()}
        parts[part] = Scored(values, split.y.numpy(), split.domain.numpy())
    return parts


def write_predictions(path: Path, parts: Parts) -> None:
    """Write the predictions of a run, whole or not at all.

    Below `val` and `test` lie `target` and `prediction`, both `(N, d_y)` float32, and `domain: (N,)`.
    """
    import h5py

    buffer = io.BytesIO()
    with h5py.File(buffer, "w") as file:
        for part, one in parts.items():
            arrays = {f"{PREDICTION}_{name}" if name else PREDICTION: values for name, values in one.prediction.items()}
            for name, values in {"target": one.target, "domain": one.domain, **arrays}.items():
                file.create_dataset(f"{part}/{name}", data=values, chunks=values.shape, **COMPRESSION)
    write_atomically(path, buffer.getvalue())


def read_predictions(path: Path) -> dict[str, Scored]:
    """Return what `write_predictions` wrote, of a file that is as its run's `DONE` says."""
    import h5py

    parts = {}
    with naming(path, "a file of predictions"), h5py.File(checked(path)) as file:
        for part in ("val", "test"):
            if part in file:
                arrays = {name: values[:] for name, values in file[part].items()}
                names = [name for name in arrays if name.startswith(PREDICTION)]
                prediction = {name.removeprefix(PREDICTION).removeprefix("_"): arrays[name] for name in names}
                parts[part] = Scored(prediction, arrays["target"], arrays["domain"])
    return parts
