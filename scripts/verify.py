"""Verify the published numbers, from the raw data up.

- `data`: every raw file that is here has its SHA-256.
- `scores`: every published score is what its stored predictions give.
- `pages`: every rendered file is what the records render to.
- `cells`: published cells, drawn with `seed`, agree within noise when they are trained again (`scripts.plan.rerun`).

`all` (`make verify`) checks these in turn. What differs is named; the status is then 1, and also where nothing could be
decided. Example: `python -m scripts.verify cells count=12 seed=5`.

`rescore metric=mae` computes any metric of `cmixup.metrics` of all published runs from their stored predictions.
"""

from __future__ import annotations

import random
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from cmixup.errors import InputError, check_choice
from cmixup.files import sha256_of, write_atomically
from datasets.common.fetch import data_root, mirror_folders
from scripts.config.arguments import OUT, Args, parse_args
from scripts.config.compose import option_names
from scripts.config.parts import dataset_class
from scripts.driver.cli import user_errors
from scripts.plan.rerun import QUICK, beyond_noise, draw_cells, published_cells, rerun_cells
from scripts.records.experiment import NOT_PUBLISHED, RESULTS
from scripts.records.records import to_csv
from scripts.records.rescored import NEAR, NEAR_R, rescore, verify_scores
from scripts.report import rendering

CHECKS = ("data", "scores", "pages", "cells")
KEYS = {
    "what": f"all, {', '.join(CHECKS)}, or rescore",
    "metric": "of rescore: the score that is computed of all published runs, such as mae or worst_mae",
    "out": f"{OUT}; of rescore: rescored_<metric>.csv goes into it",
    "count": "cells to draw; default 12",
    "seed": "of the drawing; default: a new one, which is printed",
    "datasets": "whose cells, names between commas; default all",
    "experiments": "whose cells; default all",
    "models": "whose cells; default fcn3, the network that trains in seconds",
    "all": "of cells: 1 takes every one instead of a sample",
    "jobs": "processes; default one a core",
    "results": "where the published records are; default results/",
}


def check_data() -> str:
    """Name raw files whose SHA-256 is another one; return in words how many were compared."""
    wrong, same, absent, unknown = list[str](), set[Path](), 0, 0
    for kind in map(dataset_class, option_names("dataset")):
        unknown += len(kind.folders)
        for file in [file for alternatives in kind.files for file in alternatives]:
            here = [root / file.path for root in (data_root(), *mirror_folders()) if (root / file.path).is_file()]
            absent += not here
            for path in here if file.sha256 else ():
                if sha256_of(path) == file.sha256:
                    same.add(path)
                else:
                    wrong.append(f"{path} has SHA-256 {sha256_of(path)}, expected {file.sha256}")
    line = f"{len(same)} raw files have their SHA-256; {absent} are not here, {unknown} folders have no public checksum"
    return print_wrong(list(dict.fromkeys(wrong)), line)


def check_scores(results: Path) -> str:
    """Name every score that its predictions do not give; return in words how many were computed.

    Raises:
        Broken: a score differs, or there is none.
    """
    again = verify_scores(results)
    for group, n in sorted(again.without.items()):
        print(f"no predictions are kept of {n} runs: {group}", file=sys.stderr)
    near = again.scores - again.exact - len(again.wrong)
    line = (
        f"{again.scores - len(again.wrong)} of {again.scores} scores of {again.runs} runs are what their predictions "
        f"give: {again.exact} to the last bit, {near} within {NEAR:.3%} (R within {NEAR_R:g})"
    )
    return print_wrong(again.wrong if again.runs else ["no run has predictions"], line)


def check_pages(results: Path) -> str:
    """Name every rendered file that is not what the records render to.

    Raises:
        InputError: another folder than results/, whose pages are not rendered.
    """
    if results.resolve() != RESULTS.resolve():
        raise InputError(f"pages are those of {RESULTS}, got results={results}")
    return print_wrong(rendering.stale_texts(), "every rendered text is what the records render to")


def check_cells(results: Path, given: Args) -> str:
    """Train published cells again and name those that differ by more than noise; return in words how many agree.

    Raises:
        Broken: a cell differs, or nothing could be decided.
    """
    known = [name for name in option_names("experiment") if name not in NOT_PUBLISHED]
    datasets, experiments = given.listed("datasets", option_names("dataset")), given.listed("experiments", known)
    models = given.listed("models", option_names("model")) if given.get("models") else [QUICK]
    cells = published_cells(results, datasets, experiments, models)
    if not given.switch("all"):
        seed, n = given.count("seed", random.randrange(10**6)), given.count("count", 12)  # noqa: S311 - no secret
        print(f"{min(n, len(cells))} of {len(cells)} published cells, drawn with seed={seed}", flush=True)
        cells = draw_cells(cells, n, seed)
    found, wrong = rerun_cells(cells, given.count("jobs"))
    wrong = {**beyond_noise(found), **wrong}
    decided = {name for name, cell in found.items() if cell.decided} | wrong.keys()
    lines = [f"{name}: {line}" for name, line in wrong.items()]
    agree = f"{len(decided) - len(wrong)} of {len(decided)} cells agree within noise"
    return print_wrong(lines if decided else ["nothing could be decided"], agree)


class Broken(Exception):
    """Something differs; the message is what was found in words."""


def print_wrong(wrong: Sequence[str], line: str) -> str:
    """Print a line for everything that is wrong, and return `line` where nothing is.

    Raises:
        Broken: something is.
    """
    for one in wrong:
        print(f"DIFFERS {one}", file=sys.stderr)
    if wrong:
        raise Broken(line)
    return line


def write_scores(metric: str, results: Path, out: Path) -> None:
    """Write one score of all published runs, computed from their predictions, as a CSV file below `out`."""
    rows, path = rescore(metric, results), out / f"rescored_{metric}.csv"
    path.parent.mkdir(parents=True, exist_ok=True)
    write_atomically(path, to_csv(rows, list(rows[0]) if rows else ()))
    print(f"{metric} of {len({row['run'] for row in rows})} runs on validation and test: {path}")


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    with user_errors():
        given = parse_args(argv, KEYS, __doc__, names=("what",))
        what = check_choice("what", given.get("what", ""), ("all", *CHECKS, "rescore"))
        results = Path(given.get("results") or RESULTS)
        checks: dict[str, Callable[[], str]] = {
            "data": check_data,
            "scores": lambda: check_scores(results),
            "pages": lambda: check_pages(results),
            "cells": lambda: check_cells(results, given),
        }
        if what == "rescore":
            write_scores(given.get("metric", ""), results, given.out)
            return
        for name in checks if what == "all" else [what]:
            try:
                print(f"{name}: {checks[name]()}", flush=True)
            except Broken as error:
                print(f"{name}: {error}")
                raise SystemExit(1) from None


if __name__ == "__main__":
    main()
