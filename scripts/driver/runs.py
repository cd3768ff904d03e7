"""Runs as folders, from their names to the mark that they are whole.

A run's folder holds `config.yaml`, `report.json`, `history.csv`, `predictions.h5`, `checkpoint.pt` (the best epoch's
weights), `model.json`, of a table `preprocessing.json`, and, written last, `DONE`; `cmixup.load_run` predicts with it.
A folder without `DONE` is not a result: the run has not ended, or has failed and its report says where. `DONE` lists
sizes and SHA-256 of the other files: a run with a cut or emptied file is not done, either, and a file with
other bytes is refused when it is read. A stack's runs are marked as done together or not at all, whenever the process
dies.
"""

import csv
import hashlib
import io
import json
import math
import re
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import torch
import yaml
from torch import Tensor

from cmixup.errors import InputError
from cmixup.files import DAMAGED, DONE, checked, done_text, listed_files, make_folder, write_atomically
from cmixup.saved_run import WEIGHTS
from cmixup.tree import map_leaves
from datasets.common.base import Dataset
from datasets.common.damaged import naming
from scripts.driver.checkpoints import RESUME_FILE
from scripts.driver.locks import holding_locks
from scripts.stats.scored import Parts, Scored, read_parts, write_parts

REPORT, HISTORY, CONFIG, PREDICTIONS = "report.json", "history.csv", "config.yaml", "predictions.h5"
LONGEST_NAME = 120  # of a folder
LEARNED_NOTHING = "learned_nothing"  # a fact of such a run, 1; its report says it in words under the same name
STRICT = {"NaN": None, "Infinity": "inf", "-Infinity": "-inf"}  # in reports, for words that strict JSON lacks
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


@dataclass(frozen=True)
class RunFolder:
    """The folder of a run, at `path`: begun, written and finished by the driver, and read by all others."""

    path: Path

    def begin(self, config: Mapping[str, Any]) -> None:
        """Make the folder and write the configuration; whatever was there no longer counts as done."""
        make_folder(self.path)
        (self.path / DONE).unlink(missing_ok=True)
        write_atomically(self.path / CONFIG, yaml.safe_dump(dict(config), sort_keys=False))

    def write(
        self, config: Mapping[str, Any], report: Mapping[str, Any], history: Sequence[Mapping[str, float]], *,
        state: Mapping[str, Tensor] | None = None, predictions: Parts | None = None,
        texts: Mapping[str, str] = MappingProxyType({}),
    ) -> None:  # fmt: skip
        """Write the results; a run that has failed has no weights `state`, no predictions and no `texts` by file name.

        Predictions are as `scripts.stats.scored.write_parts` lays them out.
        """
        self.begin(config)  # again, as somebody may have removed the folder while it trained
        (self.path / WEIGHTS).unlink(missing_ok=True)
        if state is not None:
            buffer = io.BytesIO()
            torch.save(dict(state), buffer)
            write_atomically(self.path / WEIGHTS, buffer.getvalue())
        if predictions is None:
            (self.path / RESUME_FILE).unlink(missing_ok=True)  # it would fail again
        else:
            import h5py

            buffer = io.BytesIO()
            with h5py.File(buffer, "w") as file:
                write_parts(file, predictions)
            write_atomically(self.path / PREDICTIONS, buffer.getvalue())
        stream = io.StringIO()
        writer = csv.DictWriter(stream, list(history[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(history)
        strict = json.loads(json.dumps(report), parse_constant=STRICT.__getitem__)
        for name, text in {HISTORY: stream.getvalue(), REPORT: json.dumps(strict, indent=1) + "\n", **texts}.items():
            write_atomically(self.path / name, text)

    def finish(self) -> None:
        """Write the `DONE` of a run that is whole; remove the state to go on from."""
        kept = [path for path in sorted(self.path.iterdir()) if path.is_file()]
        kept = [path for path in kept if path.name not in (DONE, RESUME_FILE) and path.name[0] != "."]
        write_atomically(self.path / DONE, done_text(path for path in kept if path.suffix != DAMAGED))
        (self.path / RESUME_FILE).unlink(missing_ok=True)

    def is_done(self, dataset: Dataset | None = None) -> bool:
        """Return whether it holds a finished run with nothing of it damaged, and of the table that `dataset` has."""
        if not (self.path / DONE).is_file() or self.damage():
            return False
        return dataset is None or not dataset.changed(self.report()["checksums"])

    def damage(self) -> str:
        """Return what is wrong with the first damaged file of a finished run, or nothing; contents are not read.

        A file of another size than `DONE` says is damaged; one that somebody has removed is not, but for the report.
        """
        try:
            sizes = {name: size for name, (size, _) in listed_files(self.path).items()}
        except InputError as error:
            return str(error)
        if REPORT not in sizes:
            return f"{self.path / DONE} lists no report"
        if not (self.path / REPORT).is_file():
            return f"{self.path / REPORT} is not there"
        for path in (self.path / name for name in sizes):
            if path.is_file() and (size := path.stat().st_size) != sizes[path.name]:
                return f"{path} has {size} bytes, not {sizes[path.name]}"
        return ""

    def report(self) -> dict[str, Any]:
        """Return the report; a number that is not finite, which JSON lacks, is one again."""
        read = json.loads(checked(self.path / REPORT).read_text())
        report = map_leaves(lambda _, value: float(value) if value in ("inf", "-inf") else value, "report", read)
        for values in (*report["scores"].values(), report["facts"]):
            values.update({key: math.nan for key, value in values.items() if value is None})
        return report

    def predictions(self) -> dict[str, Scored]:
        """Return the predictions, of a file that is as `DONE` says."""
        import h5py

        path = self.path / PREDICTIONS
        with naming(path, "a file of predictions"), h5py.File(checked(path)) as file:
            return read_parts(file)


def finish_stack(out: Path, folders: Sequence[Path] = ()) -> None:
    """Mark runs that are whole as done, all or none, whatever happens: what was left of a stack would be another stack.

    Several, whose locks are held, are written down in one file of `out` first. Whoever finds it later, as this process
    has died, goes on marking; so does a call without folders.
    """
    ending = out / ENDING
    if len(folders) < 2 and not ending.is_file():
        for folder in folders:
            RunFolder(folder).finish()
        return
    with holding_locks(out, [ENDING], wait=True):
        for folder in (out / name for name in (json.loads(ending.read_text()) if ending.is_file() else ())):
            (folder / RESUME_FILE).unlink(missing_ok=True)
            if (folder / REPORT).is_file() and not (folder / DONE).is_file():
                RunFolder(folder).finish()
        write_atomically(ending, json.dumps([folder.relative_to(out).as_posix() for folder in folders]))
        for folder in folders:
            RunFolder(folder).finish()
        ending.unlink()


def load_reports(root: Path) -> list[dict[str, Any]]:
    """Return the reports of all finished runs below `root`, in order of their folders' names.

    Runs with a damaged file are left out, and a line says so: training them again replaces them.
    """
    reports = []
    for folder in (RunFolder(done.parent) for done in sorted(root.rglob(DONE))):
        if damage := folder.damage():
            print(f"{damage}: the run does not count; its command trains it again", file=sys.stderr)
            continue
        try:
            reports.append(folder.report())
        except InputError as error:
            print(f"{error}; the run does not count", file=sys.stderr)
    return reports
