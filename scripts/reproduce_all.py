"""Walk all artefacts of the paper in order of cost: what is done is skipped, and the cost is said before it starts.

`python -m scripts.reproduce_all [--dry-run 1] [--minutes 60] [--seeds 1]`. The list is results/artefacts.yaml; each
artefact is made by its own make target. What a target leaves out (files that are not at hand, runs that take too long
here) is counted, and the target itself says why.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from rich import box
from rich.console import Console
from rich.table import Table

from scripts.driver.cli import out_folder, user_errors
from scripts.driver.devices import pick_device
from scripts.driver.words import parse_seeds
from scripts.plan.cells import Choice, minutes, plan_cells
from scripts.records.artefacts import Artefact, load
from scripts.records.experiment import RESULTS, load_experiment


@dataclass(frozen=True)
class Step:
    """One artefact on the way.

    Attributes:
        minutes: what it costs on one core here.
        pending: runs that are trained.
        left_out: cells that its command names and does not train.
    """

    artefact: Artefact
    minutes: float
    pending: int
    left_out: int

    @property
    def done(self) -> bool:
        """Whether nothing is left to train; what trains nothing is always made again."""
        return bool(self.artefact.experiment) and not self.pending


def steps(seeds: str = "", out: str = "") -> list[Step]:
    """Return every artefact with its cost, the cheapest first."""
    found = []
    artefacts = load()
    for k, artefact in enumerate(artefacts, 1):
        print(f"[{k}/{len(artefacts)}] looking at what make {artefact.command} has left", file=sys.stderr, flush=True)
        found.append(step(artefact, seeds, out))
    return sorted(found, key=lambda s: s.minutes)


def step(artefact: Artefact, seeds: str = "", out: str = "") -> Step:
    """Return what one artefact would cost."""
    if not artefact.experiment:
        return Step(artefact, artefact.minutes, 0, 0)
    experiment = load_experiment(artefact.experiment)
    cpu = pick_device("auto").type == "cpu"
    choice = Choice(
        datasets=list(experiment.datasets),
        methods=list(experiment.methods),
        seeds=parse_seeds(seeds or experiment.seeds),
        preset=(cpu and experiment.cpu_preset) or "paper",
        out=str(out_folder(out)),
        device="auto",
        rerun=False,
    )
    jobs, missing = plan_cells(experiment, choice)
    return Step(artefact, minutes(jobs), sum(len(job.pending) for job in jobs.values()), len(missing))


def show(found: Sequence[Step], limit: float) -> None:
    """Print what would be made, in order, with its cost."""
    cores = len(os.sched_getaffinity(0))
    table = Table(box=box.SIMPLE_HEAD)
    for title in ("command", "runs", "minutes on one core", "cells left out"):
        table.add_column(title, justify="left" if title == "command" else "right")
    for s in found:
        cost = "done" if s.done else f"{s.minutes:.1f}" + (" (not now)" if s.minutes > limit else "")
        table.add_row(f"make {s.artefact.command}", str(s.pending), cost, str(s.left_out))
    Console(highlight=False).print(table)
    total = sum(s.minutes for s in found if not s.done and s.minutes <= limit)
    print(f"in all about {total:.0f} minutes on one core, {total / cores:.0f} on the {cores} here", flush=True)


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point; ends with 1 if a command failed, after the others."""
    parser = argparse.ArgumentParser(prog="python -m scripts.reproduce_all", description=__doc__)
    parser.add_argument("--seeds", default="", help="of every command; default: each table's own")
    parser.add_argument("--out", default="", help="where runs and tables go; default outputs")
    parser.add_argument("--minutes", default="", help="leave out what takes longer on one core; default: nothing")
    parser.add_argument("--dry-run", default="", help="1: say what it would do, and stop")
    given = parser.parse_args(argv)
    with user_errors():
        limit = float(given.minutes or "inf")
        found = steps(given.seeds, given.out)
        show(found, limit)
    if given.dry_run not in ("", "0"):
        return
    failed = []
    for s in found:
        if s.done or s.minutes > limit:
            continue
        command = [
            "make",
            s.artefact.command,
            *s.artefact.arguments.split(),
            f"SEEDS={given.seeds}",
            f"OUT={given.out}",
        ]
        print(f"\n{' '.join(command)}", flush=True)
        if subprocess.run(command, cwd=RESULTS.parent, check=False).returncode:
            failed.append(s.artefact.command)
    if failed:
        print(f"error: {len(failed)} commands failed: {', '.join(failed)}", file=sys.stderr)
        raise SystemExit(1)


if __name__ == "__main__":
    main()
