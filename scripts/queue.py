"""Train what the published tables and figures miss, the most valuable minute first, and stop in time.

The next call goes on where this one stopped, on this machine or on another one with the same `out`. A queue for each
GPU (`device=cuda:1`) may work in one folder. It ends with status 1 if a run failed by its own fault, which a file
remembers, and with 2 if something was put off that the next call tries again: the disk is full, a file cannot be read
or written, data cannot be fetched.

Example: python -m scripts.queue minutes=9 only=rcf_mnist
"""

from __future__ import annotations

import math
import sys
from collections.abc import Sequence

from scripts.driver.arguments import OUT, parse_args
from scripts.driver.cli import user_errors
from scripts.driver.devices import pick_device
from scripts.driver.provenance import note_commit
from scripts.plan.missing import remembered
from scripts.plan.time_budget import QUEUE, SUFFIX, Missing, forecast, left, speed_of, work

KEYS = {
    "minutes": "how long it may take; default: until all is done",
    "only": "part of the names of the cells to train; default: all",
    "device": "auto, cpu, cuda or cuda:1; default auto",
    "jobs": "processes at a time; default 1",
    "dry_run": "1: say what would be trained and how long it takes, and train nothing",
    "out": OUT,
}


def show(items: Sequence[Missing], speed: float, about: str) -> None:
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


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    with user_errors():
        given = parse_args(argv, KEYS, __doc__)
        out, device, minutes = given.out, given.get("device", "auto"), given.number("minutes", math.inf)
        dry, jobs = given.switch("dry_run"), given.count("jobs", 1)
        kind = pick_device(device).type
        note_commit()
        everything = remembered(out / QUEUE / "missing.json", fetching=not dry)
        asked = [item for item in everything if given.get("only", "") in item.cell]
        for path in sorted((out / QUEUE).glob(f"*{SUFFIX}")):
            print(f"passed over, as {path} stands there: {path.read_text().strip()}")
        speed = speed_of(kind, out, everything)
        if dry:
            how = "on one core" if kind == "cpu" else f"on {kind}, taken to be {speed:.0f} times as fast as a core"
            show(forecast(left(asked, out), minutes * speed), speed, how)
            show_absent([item for item in asked if item.wanting], speed)
            return
        counts = work(asked, out, minutes, device, speed=speed, workers=jobs)
        print(", ".join(f"{count} runs {what}" for what, count in counts.items()))
        if status := 2 if counts["put off"] else 1 if counts["failed"] else 0:
            sys.exit(status)


if __name__ == "__main__":
    main()
