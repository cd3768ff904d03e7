"""Train what the published tables and figures miss, the most valuable minute first, and stop in time.

`python -m scripts.queue minutes=9 out=outputs` trains for at most 9 minutes; the next call goes on where it stopped, on
this machine or on another one with the same `out`. `dry_run=1` (or --dry-run) says what it would do and how long;
without `minutes` that is everything that is missing. A queue for each GPU (`device=cuda:1`) may work in one folder.

It ends with status 1 if a run failed by its own fault, which is remembered, and with 2 if something was put off that
the next call tries again: the disk is full, a file cannot be read or written, data cannot be fetched.
"""

from __future__ import annotations

import itertools
import sys
import time
from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table

from cmixup.errors import InputError, check_positive
from scripts.driver.cli import out_folder, user_errors
from scripts.driver.devices import pick_device
from scripts.driver.provenance import note_commit
from scripts.driver.words import parse_words
from scripts.plan.missing import remembered
from scripts.plan.slices import FAILED, QUEUE, Item, forecast, left, speed_of, trainer, work

KEYS = ("minutes", "out", "device", "dry_run", "only")


def show(items: Sequence[tuple[Item, float]], about: str) -> None:
    """Print items by cell, each with its seeds and minutes, and their sum."""
    table = Table(box=box.SIMPLE_HEAD)
    for title in ("cell", "seeds", "minutes", "value per minute", "shown in"):
        table.add_column(title, justify="right" if title.startswith(("min", "val")) else "left", overflow="fold")
    for _, group in itertools.groupby(items, key=lambda pair: pair[0].cell):
        some = list(group)
        seeds = ",".join(str(seed) for item, _ in some for seed in item.seeds)
        cost = sum(minutes for _, minutes in some)
        worth = sum(item.value for item, _ in some) / cost
        table.add_row(some[0][0].cell, seeds, f"{cost:.1f}", f"{worth:.2g}", ", ".join(some[0][0].shown_in))
    Console(highlight=False, width=160).print(table)
    runs, minutes = sum(len(item.seeds) for item, _ in items), sum(minutes for _, minutes in items)
    print(f"{runs} runs, about {minutes:.0f} minutes {about}")


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    with user_errors():
        words = ["dry_run=1" if word == "--dry-run" else word for word in (sys.argv[1:] if argv is None else argv)]
        given = parse_words(words, KEYS, __doc__)
        out, dry = out_folder(given.get("out", "")), given.get("dry_run", "0") not in ("0", "false")
        minutes = _minutes(given.get("minutes", "inf"))
        device = given.get("device", "auto")
        kind = pick_device(device).type
        note_commit()
        everything = remembered(out / QUEUE / "missing.json", fetching=not dry)
        asked = [item for item in everything if given.get("only", "") in item.cell]
        for path in sorted((out / QUEUE).glob(f"*{FAILED}")):
            print(f"passed over, as {path} stands there: {path.read_text().strip()}")
        items, speed = left(asked, out), speed_of(kind, out, everything)
        if dry:
            how = "on one core" if kind == "cpu" else f"on {kind}, taken to be {speed:.0f} times as fast as a core"
            show(forecast(items, minutes, speed), how)
            absent = [item for item in asked if item.wanting]
            if absent:
                print(f"and {sum(len(item.seeds) for item in absent)} runs of data that are not here:")
                print("\n".join(f"- {line}" for line in dict.fromkeys(item.wanting for item in absent)))
            return
        counts = work(items, out, minutes, time.time, trainer(out, device), speed=speed)
        print(", ".join(f"{count} runs {what}" for what, count in counts.items()))
        if status := 2 if counts["put off"] else 1 if counts["failed"] else 0:
            sys.exit(status)


def _minutes(text: str) -> float:
    try:
        return check_positive("minutes", float(text)) if text != "inf" else float("inf")
    except ValueError:
        raise InputError(f"minutes must be a number of minutes, got {text!r}") from None


if __name__ == "__main__":
    main()
