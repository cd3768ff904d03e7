"""The folders of runs that train together, from the locks that keep others out to the marks that they are whole.

A stack's runs are marked as done together or not at all, whenever the process dies.
"""

from __future__ import annotations

import contextlib
import csv
import hashlib
import io
import json
import shutil
import sys
from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from cmixup.done import DONE, done_text
from cmixup.errors import InputError
from cmixup.files import DAMAGED, make_folder, remove_stale, set_aside, sync, write_atomically
from cmixup.saved_run import WEIGHTS
from cmixup.training.checkpoint import RESUME_FILE
from scripts.driver.job import Job, stack_key
from scripts.driver.predictions import PREDICTIONS, Parts, write_predictions
from scripts.driver.runs import CONFIG, HISTORY, REPORT, find_damage, is_done, strict_json
from scripts.machine.locks import LOCKS, clean_locks, holding_locks, wait_for

ENDED, PART = ".ended-", ".part"  # folders of stacks whose runs are being marked as done


class Workspace:
    """What several jobs that train as one stack have on disk.

    Args:
        jobs: of which every pending seed is trained here, or by another process meanwhile.

    Attributes:
        jobs: those with pending seeds. When all shares are taken, `pending` lists what was trained here.
        done: the folders of the runs that have ended here.

    Raises:
        InputError: jobs that cannot share a stack.
    """

    def __init__(self, jobs: Sequence[Job]):
        for job in jobs:
            clean_locks(Path(job.config["out"]) / LOCKS)
            finish_ending(job)
        self.jobs = [job for job in jobs if job.pending]
        self.done: list[Path] = []
        if len({stack_key(job) for job in self.jobs}) > 1:
            folders = [str(job.folder) for job in self.jobs]
            raise InputError(f"jobs must share all but seeds, rates and what only draws, got {folders}")

    def shares(self) -> Generator[list[Job]]:
        """Yield jobs with those of their seeds as pending that are to be trained now, while their locks are held.

        Seeds that another process trains are waited for, and are yielded if it has ended without them.
        """
        left = {_lock_name(job, seed): (job, seed) for job in self.jobs for seed in job.pending}
        for job in self.jobs:
            job.pending.clear()
        rerun = bool(self.jobs) and self.jobs[0].config["rerun"]
        while left:
            locks = Path(self.jobs[0].config["out"]) / LOCKS
            with holding_locks(locks, list(left)) as taken:
                mine = [left.pop(name) for name in taken]
                here = []
                for job in self.jobs:
                    seeds = _to_train(job, [seed for one, seed in mine if one is job], rerun=rerun)
                    job.pending.extend(seeds)
                    here += [replace(job, pending=seeds)] if seeds else []
                if here:
                    yield here
            if left:
                wait_for(locks, list(left))
                rerun = False  # what another process has trained meanwhile is new

    def end(self, folders: Sequence[Path]) -> None:
        """Mark runs that are whole as done, all or none, and remove their checkpoints."""
        if folders:
            end_together(self.jobs[0].runs, folders)
        self.done.extend(folders)


def finish_ending(job: Job) -> None:
    """Finish marking a stack as done if its process died while doing so."""
    if any(job.runs.glob(f"{ENDED}*")):
        with holding_locks(Path(job.config["out"]) / LOCKS, [_lock_name(job, seed) for seed in job.seeds]) as taken:
            go_on_ending(job.runs, [job.run_folder(seed) for seed in job.seeds if _lock_name(job, seed) in taken])


def _lock_name(job: Job, seed: int) -> str:
    """Return the name of a seed's lock."""
    return job.run_folder(seed).relative_to(job.config["out"]).as_posix()


def _to_train(job: Job, seeds: Sequence[int], *, rerun: bool) -> list[int]:
    """Return which of these seeds, whose locks are held, are not done; with `rerun` all."""
    folders = {seed: job.run_folder(seed) for seed in seeds}
    go_on_ending(job.runs, list(folders.values()))
    for folder in folders.values():
        set_damage_aside(folder)
    for folder in (folder for seed, folder in folders.items() if is_done(folder) and not job.is_done(seed)):
        print(f"the table has changed since {folder} was trained, which is trained again", file=sys.stderr)
    return [seed for seed in seeds if rerun or not job.is_done(seed)]


def end_together(root: Path, folders: Sequence[Path]) -> None:
    """Mark runs that are whole as done, all or none, whatever happens: what was left of a stack would be another stack.

    A folder below `root` with an entry for each of them gets its name at once; `go_on_ending` does the rest, here or in
    a later process, and from then on nobody needs what was saved to go on from.
    """
    if len(folders) == 1 and not (folders[0] / RESUME_FILE).is_file():
        mark_done(folders[0])
        return
    entries = [_ending_entry(root, folder) for folder in folders]
    ended = root / f"{ENDED}{hashlib.sha256(' '.join(entries).encode()).hexdigest()[:16]}"
    part = ended.with_name(ended.name + PART)
    shutil.rmtree(part, ignore_errors=True)
    part.mkdir()
    for name in entries:
        (part / name).touch()
    sync(part)
    part.rename(ended)
    sync(root)
    go_on_ending(root, folders)


def go_on_ending(root: Path, folders: Sequence[Path]) -> None:
    """Mark those of these runs as done that `end_together` has decided on; the caller works on them alone."""
    if not any(root.glob(f"{ENDED}*")):
        return
    for folder in folders:
        for entry in root.glob(f"{ENDED}*/{_ending_entry(root, folder)}"):
            if entry.parent.suffix == PART:  # whoever made it was killed before it had decided
                shutil.rmtree(entry.parent, ignore_errors=True)
                continue
            (folder / RESUME_FILE).unlink(missing_ok=True)
            if not (folder / DONE).is_file():
                mark_done(folder)
            entry.unlink()
            with contextlib.suppress(OSError):  # others are left
                entry.parent.rmdir()


def _ending_entry(root: Path, folder: Path) -> str:
    return hashlib.sha256(folder.relative_to(root).as_posix().encode()).hexdigest()[:24]


def set_damage_aside(folder: Path) -> None:
    """Set aside the damaged files of a run that counted as finished, and say so in a line each."""
    while (folder / DONE).is_file() and (found := find_damage(folder)):
        path, why = found
        if path.is_file():
            set_aside(path, why)
        if path.name != DONE:
            (folder / DONE).unlink()


def begin_run(folder: Path, config: str) -> None:
    """Make a run's folder and write its configuration; whatever was there no longer counts as done.

    Raises:
        OSError: the folder cannot be written.
    """
    make_folder(folder)
    (folder / DONE).unlink(missing_ok=True)
    for name in (REPORT, HISTORY, PREDICTIONS, WEIGHTS, RESUME_FILE, DONE):
        remove_stale(folder / name)
    write_atomically(folder / CONFIG, config)


def write_run(
    folder: Path,
    report: Mapping[str, Any],
    history: Sequence[Mapping[str, float]],
    state: Mapping[str, Tensor] | None,
    predictions: Parts,
    *,
    extras: Mapping[str, str] | None = None,
) -> None:
    """Write a run's results, its weights if there is a `state`, and the texts `extras` by file name."""
    (folder / WEIGHTS).unlink(missing_ok=True)
    if state is not None:
        buffer = io.BytesIO()
        torch.save(dict(state), buffer)
        write_atomically(folder / WEIGHTS, buffer.getvalue())
    write_predictions(folder / PREDICTIONS, {report["seed"]: predictions})
    write_report(folder, report, history)
    for name, text in (extras or {}).items():
        write_atomically(folder / name, text)


def mark_done(folder: Path) -> None:
    """Write the `DONE` of a run that is whole."""
    kept = [path for path in sorted(folder.iterdir()) if path.is_file() and path.name not in (DONE, RESUME_FILE)]
    listed = done_text(path for path in kept if path.suffix != DAMAGED and path.name[0] != ".")
    write_atomically(folder / DONE, listed)


def write_report(folder: Path, report: Mapping[str, Any], history: Sequence[Mapping[str, float]]) -> None:
    """Write the report and the history of a run; a run that has failed has nothing more."""
    write_atomically(folder / HISTORY, _history_csv(history))
    write_atomically(folder / REPORT, json.dumps(strict_json(report), indent=1, allow_nan=False) + "\n")


def _history_csv(history: Sequence[Mapping[str, float]]) -> str:
    stream = io.StringIO()
    writer = csv.DictWriter(stream, list(history[0]), lineterminator="\n")
    writer.writeheader()
    writer.writerows(history)
    return stream.getvalue()
