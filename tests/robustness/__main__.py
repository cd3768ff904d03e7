"""Try for real what the project promises of itself, and write what held to results/reliability.md.

Every trial has a count, by default that of the page, and `only=` runs some and keeps the records of the others.
Example: `python -m tests.robustness kills=100 races=20 only=kills,races`.
"""

import multiprocessing
import os
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path

from cmixup.errors import check_count
from scripts.config.arguments import parse_args
from scripts.driver.cli import user_errors
from scripts.records.experiment import RESULTS
from tests.robustness.base import PROGRESS, Trial, one
from tests.robustness.page import write_page, write_records

#: The trials with the counts of the page, the longest first, so that two processes end at about the same time.
COUNTS = {
    "kills": 1000,
    "fuzz_files": 10_000,
    "fuzz_config": 5000,
    "races": 100,
    "crash_points": 1000,  # at most; every one there is
    "determinism": 20,
    "disk_full": 10,
    "environments": 82,  # every command in every setting
    "nth_call": 1000,  # at most; every one there is
    "bit_rot": 2000,  # 250 of every file
    "chain": 1000,
    "tampering": 10,  # every way once
    "provenance": 48,  # every way twice
}
OTHERS = {
    "only": "the trials that run, separated by commas; default all",
    "seed": "of all that is drawn; default 0",
    "out": "where trials work; default a temporary folder",
    "results": "where records and page are written; default results",
    "jobs": "trials that run at once; default 2",
}
EVERY = 30.0  # seconds between lines of progress


def run_trials(counts: Mapping[str, int], seed: int, folder: Path, jobs: int) -> list[Trial]:
    """Run trials, `jobs` at a time, each in a process of its own, and say how far they are."""
    context = multiprocessing.get_context("spawn")
    waiting, found = list(counts), dict[str, Trial]()
    running: dict[str, tuple[SpawnProcess, Connection, float]] = {}
    said = time.monotonic()
    try:
        while waiting or running:
            while waiting and len(running) < jobs:
                name = waiting.pop(0)
                ours, theirs = context.Pipe(duplex=False)
                process = context.Process(target=one, args=(name, counts[name], seed, folder / name, theirs))
                process.start()
                theirs.close()
                running[name] = (process, ours, time.monotonic())
            for name, (process, answer, began) in list(running.items()):
                if not answer.poll(0.1):
                    continue
                try:
                    found[name] = answer.recv()
                except EOFError:
                    process.join()
                    line = f"the trial's process ended with exit code {process.exitcode}"
                    found[name] = Trial(name, "the trial runs to its end", 1, 0, (line,), time.monotonic() - began)
                process.join()
                del running[name]
                ended = found[name]
                print(f"{name}: {ended.held} of {ended.tried} held, {ended.seconds:.0f} s", file=sys.stderr)
            if time.monotonic() - said > EVERY:
                said = time.monotonic()
                print("; ".join(_progress(name, folder / name, began) for name, (_, _, began) in running.items())
                      + (f"; then {', '.join(waiting)}" if waiting else ""), file=sys.stderr)  # fmt: skip
    finally:
        for process, _, _ in running.values():
            process.terminate()
            process.join()
    return [found[name] for name in counts]


def _progress(name: str, folder: Path, began: float) -> str:
    try:
        done, total = map(int, (folder / PROGRESS).read_text().split("/"))
    except (OSError, ValueError):
        return f"{name} begins"
    left = (time.monotonic() - began) / max(done, 1) * (total - done)
    return f"{name} {done}/{total}, about {left:.0f} s left"


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point; exit status 1 if something did not hold."""
    with user_errors():
        keys = {name: f"how often; default {count}" for name, count in COUNTS.items()} | OTHERS
        given = parse_args(argv, keys, __doc__)
        counts = {name: given.count(name, COUNTS[name]) for name in given.listed("only", list(COUNTS))}
        seed, jobs, results = given.count("seed"), given.count("jobs", 2), Path(given.get("results", RESULTS))
        for name, count in {**counts, "jobs": jobs}.items():
            check_count(name, count, 1)
        memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None  # noqa: S108 - no power is cut here
        with tempfile.TemporaryDirectory(prefix="reliability-", dir=memory) as temporary:
            folder = Path(given.get("out") or temporary).resolve()
            trials = run_trials(counts, seed, folder, jobs)
        write_records(results, trials, counts, seed, known=COUNTS)
        print(f"{write_page(results)} written")
        if any(trial.held < trial.tried for trial in trials):
            raise SystemExit(1)


if __name__ == "__main__":
    main()
