"""Train published cells again and compare every number with its record, to the last bit.

`python -m scripts.verify --cells 12 --seed 5` draws 12 published FCN3 cells: an experiment, dataset, method, preset
and options, with all seeds of their stack. Each is trained anew on the CPU in a temporary folder. The command names
every cell with a number that differs or a preset whose values have changed, and then ends with status 1.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

import torch
from hydra.errors import HydraException

from cmixup.errors import InputError
from datasets.common.fetch import FetchError
from scripts.driver.cli import chosen, user_errors
from scripts.driver.compose import command, compose_train, names
from scripts.driver.job import Job, plan
from scripts.driver.parallel import train_all
from scripts.driver.runs import environment, is_done, read_report
from scripts.driver.words import parse_seeds
from scripts.report.experiment import NOT_PUBLISHED, RESULTS
from scripts.report.verification import (
    Cell,
    config_differences,
    draw_cells,
    naming,
    published_cells,
    report_differences,
)

PROCESSOR = (
    "Rounding differs between kinds of processors and grows over the epochs, so digits repeat on one kind only; "
    "--results takes records that were made on this one."
)


def training_command(cell: Cell, out: Path) -> list[str]:
    """Return the command line of scripts.train that trains a cell again."""
    words, options = naming(cell)
    seeds = f"seeds=[{','.join(map(str, cell.seeds))}]"
    threads = f"threads={cell.first['config']['threads']}"
    return [*words, *command(options), seeds, threads, "device=cpu", "logger=none", f"out={out}"]


def differences(cell: Cell, job: Job) -> tuple[list[str], int]:
    """Return what differs between a cell and its job, which has been trained; and how many numbers were compared."""
    changed = config_differences(cell.first["config"], job.config)
    lines = [f"preset {cell.first['preset']} has changed: {difference}" for difference in changed]
    absent, found, n = [], [], 0
    for seed, published in cell.reports.items():
        folder = job.run_folder(seed)
        if not is_done(folder):
            absent.append(seed)
            continue
        again = read_report(folder)
        found += report_differences(published, again)
        n += len(published["facts"]) + 1 + sum(map(len, published["scores"].values()))
    if absent:
        lines.append(f"seeds {absent} gave no result")
    if found:
        largest = max(found, key=lambda d: (d.relative, d.absolute))
        lines.append(f"{len(found)} of {n} numbers differ, most: {largest}")
    return lines, n


def verify(cells: Sequence[Cell], workers: int = 0) -> dict[str, list[str]]:
    """Train the cells again; return what differs by the name of its cell, printing a line for each on the way.

    Raises:
        InputError: the files of a dataset cannot be had.
    """
    wrong: dict[str, list[str]] = {}
    with tempfile.TemporaryDirectory(prefix="cmixup-verify-") as folder:
        work: list[tuple[list[str], Job]] = []
        cell_of: dict[tuple[Path, tuple[int, ...]], Cell] = {}
        for cell in cells:
            words = training_command(cell, Path(folder))
            try:
                job = plan(compose_train(words))
            except (InputError, HydraException) as error:  # an option or a value that is no longer known
                wrong.setdefault(cell.name, []).append(str(error).splitlines()[0])
                continue
            work.append((words, job))
            cell_of[job.folder, tuple(job.seeds)] = cell
        for dataset in {json.dumps(job.config["dataset"], sort_keys=True): job.dataset for _, job in work}.values():
            try:
                if not dataset.synthetic:
                    dataset.fetch()
            except FetchError as error:
                raise InputError(str(error)) from None
        started, done = time.perf_counter(), 0

        def on_finish(job: Job, problem: str | None) -> str:
            nonlocal done
            done += 1
            cell = cell_of[job.folder, tuple(job.seeds)]
            lines, n = differences(cell, job)
            lines += [problem] if problem else []
            if lines:
                wrong.setdefault(cell.name, []).extend(lines)
            spent = time.perf_counter() - started
            left = spent / done * (len(work) - done)
            state = f"DIFFERS: {'; '.join(lines)}" if lines else f"{n} numbers equal"
            return f"[{done}/{len(work)}] {cell.name}: {state} ({spent:.0f} s, about {left:.0f} s left)"

        train_all(work, "verifying", workers, on_finish)
    return wrong


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    parser = argparse.ArgumentParser(prog="python -m scripts.verify", description=__doc__)
    parser.add_argument("--cells", default="", help="how many to draw; default 12")
    parser.add_argument("--seed", default="", help="of the drawing; default: a new one, which is printed")
    parser.add_argument("--datasets", default="", help="comma-separated; default: all")
    parser.add_argument("--experiments", default="", help="comma-separated; default: all that have FCN3 runs")
    parser.add_argument("--all", action="store_true", help="every cell instead of a sample")
    parser.add_argument("--jobs", type=int, default=0, help="processes; default one a core")
    parser.add_argument("--results", default="", help="where the published records are; default results/")
    given = parser.parse_args(argv)
    with user_errors():
        datasets = chosen("datasets", given.datasets, names("dataset")) if given.datasets else []
        known = [name for name in names("experiment") if name not in NOT_PUBLISHED]
        experiments = chosen("experiments", given.experiments, known) if given.experiments else []
        cells = published_cells(Path(given.results or RESULTS), datasets, experiments)
        if not given.all:
            (seed,) = parse_seeds([given.seed or random.randrange(10**6)], "seed")  # noqa: S311 - no secret
            (n,) = parse_seeds([given.cells or 12], "cells")
            print(f"{min(n, len(cells))} of {len(cells)} published cells, drawn with --seed {seed}", flush=True)
            cells = draw_cells(cells, n, seed)
        started = time.perf_counter()
        wrong = verify(cells, given.jobs)
        seconds = time.perf_counter() - started
        for name, lines in wrong.items():
            for line in lines:
                print(f"DIFFERS {name}: {line}", file=sys.stderr)
        print(f"{len(cells) - len(wrong)} of {len(cells)} cells repeat to the last bit ({seconds:.0f} s)")
        if wrong:
            recorded = ", ".join(sorted({str(cell.first["device"]) for cell in cells}))
            print(f"recorded on {recorded}; this is {environment(torch.device('cpu'))['device']}. {PROCESSOR}")
            raise SystemExit(1)


if __name__ == "__main__":
    main()
