"""Train what tables and figures miss, the most valuable minute first, and stop in time.

What is missing are the runs that are not published. With `again=1` nothing counts as published: all is trained anew in
`out`, and then every table and figure of the paper whose runs are whole is made there by its own command.

The next call goes on where this one stopped, on this machine or on another one with the same `out`. A queue for each
GPU (`device=cuda:1`) may work in one folder. It ends with status 1 if a run failed by its own fault, which a file
remembers, and with 2 if something was put off that the next call tries again: the disk is full, a file cannot be read
or written, data cannot be fetched.

Example: python -m scripts.queue minutes=9 only=rcf_mnist
"""

from __future__ import annotations

import math
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from scripts.config.arguments import OUT, parse_args
from scripts.driver.cli import user_errors
from scripts.driver.devices import pick_device
from scripts.driver.provenance import note_commit
from scripts.plan.missing import NOWHERE, remembered_missing
from scripts.plan.time_budget import QUEUE, SUFFIX, Missing, forecast_items, items_left, speed_of, work_through
from scripts.records.artefacts import load_artefacts
from scripts.records.experiment import RESULTS

KEYS = {
    "minutes": "how long it may take; default: until all is done",
    "only": "part of the names of the cells to train; default: all",
    "device": "auto, cpu, cuda or cuda:1; default auto",
    "jobs": "processes at a time; default 1",
    "again": "1: take nothing as published, and make all tables and figures in the end",
    "seeds": "of each cell: a count, a list or a range; default those of its experiment",
    "dry_run": "1: say what would be trained and how long it takes, and train nothing",
    "out": OUT,
}


MISSING, AGAIN = "missing.json", "again.json"  # the lists, below `out` and QUEUE


def show_cells(items: Sequence[Missing], speed: float, about: str) -> None:
    """Print a line a cell with its seeds, minutes and value, the most valuable minute first, and their sum."""
    cells: dict[str, list[Missing]] = {}
    for item in items:
        cells.setdefault(item.cell, []).append(item)
    for cell, some in cells.items():
        minutes, runs = sum(item.minutes for item in some) / speed, sum(len(item.seeds) for item in some)
        worth = sum(item.value for item in some) / minutes
        print(f"{cell}: {runs} runs, {minutes:.1f} min, {worth:.2g} a minute, in {', '.join(some[0].shown_in)}")
    runs, minutes = sum(len(item.seeds) for item in items), sum(item.minutes for item in items) / speed
    print(f"{runs} runs, about {minutes:.0f} minutes {about}")


def show_absent(items: Sequence[Missing], speed: float) -> None:
    """Print a line for each reason why runs cannot be trained here."""
    for reason in dict.fromkeys(item.wanting for item in items):
        mine = [item for item in items if item.wanting == reason]
        minutes = sum(item.minutes for item in mine) / speed
        print(f"not here: {sum(len(item.seeds) for item in mine)} runs, about {minutes:.0f} minutes; {reason}")


def make_artefacts(items: Sequence[Missing], out: Path, until: float, seeds: str = "") -> list[str]:
    """Make every table, figure and theorem that lacks no run that can be trained here; return the commands that failed.

    Args:
        items: what was to be trained.
        out: where the runs are.
        until: when to stop, in seconds of `time.monotonic`: what trains nothing and would end later is not made.
        seeds: of its runs, as the command line gives them; empty are those of each experiment.
    """
    lacking = {name for item in items if item.wanting for name in item.shown_in}  # files, of some or all of its runs
    lacking -= {name for item in items if not item.wanting for name in item.shown_in}
    lacking |= {name for item in items_left(items, out) for name in item.shown_in}
    failed = []
    for artefact in sorted(load_artefacts(), key=lambda one: one.minutes):
        if artefact.name in lacking or time.monotonic() + 60 * artefact.minutes > until:
            why = "runs are missing" if artefact.name in lacking else f"it takes {artefact.minutes:g} minutes"
            print(f"not made: make {artefact.command}; {why}")
            continue
        command = ["make", artefact.command, *artefact.arguments.split(), f"SEEDS={seeds}", f"OUT={out}"]
        print(f"\n{' '.join(command)}", flush=True)
        if subprocess.run(command, cwd=RESULTS.parent, check=False).returncode:
            failed.append(artefact.command)
    return failed


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    with user_errors():
        given = parse_args(argv, KEYS, __doc__)
        out, device, minutes = given.out, given.get("device", "auto"), given.number("minutes", math.inf)
        dry, jobs, again = given.switch("dry_run"), given.count("jobs", 1), given.switch("again")
        wanted, until = given.seeds(0) if "seeds" in given else None, time.monotonic() + 60 * minutes
        kind = pick_device(device).type
        note_commit()
        name, results = (AGAIN, Path(NOWHERE)) if again else (MISSING, RESULTS)
        everything = remembered_missing(out / QUEUE / name, results, fetching=not dry)
        asked = [item for item in everything if given.get("only", "") in item.cell]
        if wanted is not None:
            narrowed = [replace(item, seeds=tuple(s for s in item.seeds if s in wanted)) for item in asked]
            asked = [item for item in narrowed if item.seeds]
        for path in sorted((out / QUEUE).glob(f"*{SUFFIX}")):
            print(f"passed over, as {path} stands there: {path.read_text().strip()}")
        speed = speed_of(kind, out, everything)
        if dry:
            how = "on one core" if kind == "cpu" else f"on {kind}, taken to be {speed:.0f} times as fast as a core"
            show_cells(forecast_items(items_left(asked, out), minutes * speed), speed, how)
            show_absent([item for item in asked if item.wanting], speed)
            return
        counts = work_through(asked, out, minutes, device, speed=speed, workers=jobs)
        print(", ".join(f"{count} runs {what}" for what, count in counts.items()))
        failed = make_artefacts(asked, out, until, given.get("seeds", "")) if again else []
        if failed:
            print(f"error: {len(failed)} commands failed: {', '.join(failed)}", file=sys.stderr)
        if status := 2 if counts["put off"] else 1 if counts["failed"] or failed else 0:
            sys.exit(status)


if __name__ == "__main__":
    main()
