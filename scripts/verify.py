"""Hold published numbers to what is found again: compute scores from predictions, or train cells.

`seal` compares every file of results/ with results/SEAL. `code` says which code and packages run here, and whether
bytecode or a file of a package differs from what it claims to be. `scores` computes every published score from the
predictions that are kept. `cells` draws published cells (an experiment, dataset, method, preset and options, with all
seeds of their stack) and trains each anew on the CPU in a temporary folder, with the kernels that its record names
(`scripts.driver.kernels`). Where these cannot be had a cell is trained with those here and compared within noise
(`scripts.plan.within_noise`). What differs is named, a preset whose values have changed too; the status is then 1, and
also where nothing could be decided. Example: `python -m scripts.verify cells count=12 seed=5`.
"""

from __future__ import annotations

import json
import random
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import torch

from cmixup.errors import InputError, check_choice
from scripts.driver.arguments import Args, parse_args
from scripts.driver.cli import user_errors
from scripts.driver.compose import command, compose_train, names
from scripts.driver.config import GROUPS
from scripts.driver.job import Job, plan
from scripts.driver.kernels import asking, kernels_of, what_is_here, word_for
from scripts.driver.provenance import HASHED, changed_files, environment, unchecked_bytecode
from scripts.driver.runs import is_done, read_report
from scripts.plan.schedule import Item, Planned, Problem, items_of, train
from scripts.plan.verification import (
    QUICK,
    Cell,
    by_stack,
    compared,
    config_differences,
    draw_cells,
    own_score,
    published_cells,
    report_differences,
)
from scripts.plan.within_noise import Paired, beyond_noise
from scripts.records.experiment import NOT_PUBLISHED, RESULTS
from scripts.records.rescored import verify_scores
from scripts.records.seal import SEAL, broken_files, read_seal, seal_files

KEYS = {
    "what": "seal, scores, cells or code",
    "new": "of seal: seal these files as they are, paths below results/ between commas, or all; default none",
    "count": "cells to draw; default 12",
    "seed": "of the drawing; default: a new one, which is printed",
    "datasets": "whose cells, names between commas; default all",
    "experiments": "whose cells; default all",
    "models": "whose cells; default fcn3, the network that trains in seconds",
    "all": "1 takes every cell instead of a sample",
    "jobs": "processes; default one a core",
    "results": "where the published records are; default results/",
}


def training_commands(cell: Cell, out: Path) -> list[list[str]]:
    """Return the command lines of scripts.train that train the stack of a cell again, in its order."""
    report = cell.first
    words = [f"{key}={report[key]}" for key in (*GROUPS, "preset", "experiment")]
    own = [f"threads={report['config']['threads']}", "device=cpu", "logger=none", f"out={out}"]
    return [[*words, *command(options), f"seeds=[{','.join(map(str, seeds))}]", *own] for options, seeds in cell.stack]


Scores = dict[str, list[tuple[float, float]]]  # by name of a cell: the published score of each seed and the one found
Wrong = dict[str, list[str]]  # by name of a cell: what differs


def compare_cell(cell: Cell, job: Job, scores: Scores | None = None) -> tuple[list[str], str]:
    """Return what differs between a cell and its job, which has been trained, and in words what was compared.

    Args:
        cell, job: the cell, and what trained it again.
        scores: if given, numbers need not repeat, and the scores of the seeds are put there.
    """
    changed = config_differences(cell.first["config"], job.config)
    lines = [f"preset {cell.first['preset']} has changed: {difference}" for difference in changed]
    folders = {seed: job.run_folder(seed) for seed in cell.reports}
    again = {seed: read_report(folder) for seed, folder in folders.items() if is_done(folder)}
    if absent := [seed for seed in cell.reports if seed not in again]:
        lines.append(f"seeds {absent} gave no result")
    both = [(cell.reports[seed], report) for seed, report in again.items()]
    if scores is not None:
        pairs = scores.setdefault(cell.name, [])
        pairs += [(own_score(published), own_score(report)) for published, report in both]
        return lines, str(Paired(pairs)) if pairs else ""
    n = sum(len(compared(published)) for published, _ in both)
    if found := [difference for pair in both for difference in report_differences(*pair)]:
        largest = max(found, key=lambda difference: difference.size)
        lines.append(f"{len(found)} of {n} numbers differ, most: {largest}")
    return lines, f"{n} numbers equal"


CellOf = dict[tuple[Path, tuple[int, ...]], Cell]  # by folder and seeds of its job


def plan_stacks(cells: Sequence[Cell], out: Path, wrong: Wrong) -> tuple[list[list[Planned]], CellOf]:
    """Return the stacks that train the cells again, in folders below `out`, and which of their jobs are which cells.

    What cannot be planned, as an option or a value is no longer known, is put into `wrong`.
    """
    work: list[list[Planned]] = []
    cell_of: CellOf = {}
    for number, group in enumerate(by_stack(cells)):
        lines = training_commands(group[0], out / str(number))
        try:
            stack = [(words, plan(compose_train(words))) for words in lines]
        except InputError as error:
            for cell in group:
                wrong.setdefault(cell.name, []).append(str(error).splitlines()[0])
            continue
        work.append(list(stack))
        wanted = {(json.dumps(cell.first["options"], sort_keys=True), cell.seeds): cell for cell in group}
        for (options, seeds), (_, job) in zip(group[0].stack, stack, strict=True):
            if cell_again := wanted.get((json.dumps(options, sort_keys=True), seeds)):
                cell_of[job.folder, tuple(job.seeds)] = cell_again
    return work, cell_of


def verify(cells: Sequence[Cell], workers: int = 0, scores: Scores | None = None) -> Wrong:
    """Train the cells again; return what differs by the name of its cell, printing a line for each on the way.

    Args:
        cells: which.
        workers: processes; 0 is one a core.
        scores: as of `compare_cell`.

    Raises:
        InputError: the files of a dataset cannot be had.
    """
    wrong = Wrong()
    with tempfile.TemporaryDirectory(prefix="cmixup-verify-") as folder:
        work, cell_of = plan_stacks(cells, Path(folder), wrong)
        jobs = [job for stack in work for _, job in stack]
        for dataset in {json.dumps(job.config["dataset"], sort_keys=True): job.dataset for job in jobs}.values():
            if not dataset.synthetic:
                dataset.fetch()
        left = len(cell_of)

        def on_finish(item: Item, problem: Problem | None) -> str:
            nonlocal left
            said = []
            for job in item.jobs:
                cell = cell_of.get((job.folder, tuple(job.seeds)))
                if cell is None:  # it was only there to fill the stack
                    continue
                left -= 1
                lines, words = compare_cell(cell, job, scores)
                if lines := [*lines, problem.text] if problem else lines:
                    wrong.setdefault(cell.name, []).extend(lines)
                state = f"DIFFERS: {'; '.join(lines)}" if lines else words
                said.append(f"{cell.name}: {state} ({left} of {len(cell_of)} left)")
            return "\n".join(said)

        train(items_of(work), "verifying", workers=workers, on_finish=on_finish)
    return wrong


def say_seal(results: Path, new: str) -> bool:
    """Print whether every file of results/ is what was sealed, name those that are not, and return whether all hold.

    Args:
        results: the folder results/.
        new: paths to seal as they are, between commas, or "all".

    Raises:
        InputError: there is no seal, or with `new` another file does not hold either.
    """
    if new:
        named = [part.strip() for part in new.split(",") if part.strip()]
        print(f"sealed: root {seal_files(results, named, first=named == ['all'])}")
    if not (sealed := read_seal(results)):
        raise InputError(f"{results / SEAL} is not there: python -m scripts.verify seal new=all makes the first one")
    wrong = broken_files(results)
    for line in wrong:
        print(f"DIFFERS {line}", file=sys.stderr)
    root = (results / SEAL).read_text().partition("\n")[0]
    print(f"seal: {len(sealed)} files, {len(wrong)} differ; {root}")
    return not wrong


def say_code() -> bool:
    """Print which code runs here, whether it is that of its commit, and which packages; return whether all is clean."""
    about, wrong = environment(torch.device("cpu")), list[str]()
    if about["dirty"]:
        wrong.append("code: edited, or of unknown commit, so that what runs is not what was committed")
    wrong += [
        f"code: {path} is bytecode that Python runs without a look at its source" for path in unchecked_bytecode()
    ]
    for package in HASHED:
        wrong += [f"packages: {path} is not what {package}'s own RECORD says" for path in changed_files(package)]
    for line in wrong:
        print(f"DIFFERS {line}", file=sys.stderr)
    versions = ", ".join(f"{name} {about['versions'][name]} (RECORD {about['installed'][name]})" for name in HASHED)
    print(f"code: commit {about['commit'][:12] or 'unknown'}, digest {about['code']}; packages: {versions}")
    return not wrong


def say_scores(results: Path) -> bool:
    """Compute every published score again, print what differs, and return whether there is one and none does."""
    runs, scores, wrong, without = verify_scores(results)
    for line in wrong:
        print(f"DIFFERS {line}", file=sys.stderr)
    same = f"{scores - len(wrong)} of {scores} scores of {runs} runs"
    print(f"{same} are what their predictions give, bit for bit")
    for group, n in sorted(without.items()):
        print(f"no predictions are kept of {n} runs: {group}")
    return runs > 0 and not wrong


def say_cells(results: Path, given: Args) -> bool:
    """Train published cells again, print what differs, and return whether there is something and nothing differs."""
    known = [name for name in names("experiment") if name not in NOT_PUBLISHED]
    datasets, experiments = given.listed("datasets", names("dataset")), given.listed("experiments", known)
    models = given.listed("models", names("model")) if given.get("models") else [QUICK]
    cells = published_cells(results, datasets, experiments, models)
    if not given.switch("all"):
        seed, n = given.count("seed", random.randrange(10**6)), given.count("count", 12)  # noqa: S311 - no secret
        print(f"{min(n, len(cells))} of {len(cells)} published cells, drawn with seed={seed}", flush=True)
        cells = draw_cells(cells, n, seed)
    by_word: dict[str | None, list[Cell]] = {}
    for cell in cells:
        by_word.setdefault(word_for(kernels_of(cell.first)), []).append(cell)
    other = by_word.pop(None, [])
    judged, wrong = say_repeated(by_word, given.count("jobs")) if by_word else (0, {})
    if other:
        decided, far = say_within_noise(other, given.count("jobs"))
        judged, wrong = judged + decided, wrong | far
    for name, lines in wrong.items():
        for line in lines:
            print(f"DIFFERS {name}: {line}", file=sys.stderr)
    return judged > 0 and not wrong


def say_repeated(by_word: Mapping[str | None, Sequence[Cell]], workers: int) -> tuple[int, Wrong]:
    """Train cells, given by the word that asks for their kernels, and say how many repeat; return how many were tried.

    The second result is what differs, by cell.
    """
    started, wrong = time.perf_counter(), Wrong()
    for word, group in by_word.items():
        with asking(str(word)):
            wrong |= verify(group, workers)
    tried = sum(map(len, by_word.values()))
    print(f"{tried - len(wrong)} of {tried} cells repeat to the last bit ({time.perf_counter() - started:.0f} s)")
    return tried, wrong


def say_within_noise(cells: Sequence[Cell], workers: int) -> tuple[int, Wrong]:
    """Train cells with other kernels than theirs, and say how many agree within noise; return how many are decided.

    The second result is what differs, by cell.
    """
    made = " or ".join(sorted({kernels_of(cell.first) for cell in cells}))
    print(f"other kernels: compared within noise: {len(cells)} cells, made with {made}; {what_is_here()}", flush=True)
    started, scores = time.perf_counter(), Scores()
    wrong = verify(cells, workers, scores)
    found = {name: Paired(pairs) for name, pairs in scores.items()}
    for name, line in beyond_noise(found).items():
        wrong.setdefault(name, []).append(line)
    for name, cell in found.items():
        if not cell.decided:
            print(f"not decided: {name}: {cell}")
    decided = {name for name, cell in found.items() if cell.decided} | wrong.keys()
    same = f"{len(decided) - len(wrong)} of {len(decided)} cells agree within noise"
    print(f"{same} ({time.perf_counter() - started:.0f} s)")
    return len(decided), wrong


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    with user_errors():
        given = parse_args(argv, KEYS, __doc__, names=("what",))
        what = check_choice("what", given.get("what", ""), ("seal", "scores", "cells", "code"))
        results = Path(given.get("results", RESULTS))
        links: dict[str, Callable[[], bool]] = {
            "seal": lambda: say_seal(results, given.get("new", "")),
            "scores": lambda: say_scores(results),
            "cells": lambda: say_cells(results, given),
            "code": say_code,
        }
        if not links[what]():
            raise SystemExit(1)


if __name__ == "__main__":
    main()
