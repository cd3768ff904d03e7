"""Hold published numbers to what is found again, link by link, from the pages down to the cells that are trained again.

The links of the chain, which `all` (`make verify`) checks in this order and names the first that does not hold:

- `seal`: every file of results/ is what results/SEAL says.
- `code`: the code that runs is that of its commit, with no bytecode that is not what its source compiles to.
- `data`: every raw file that is here has its SHA-256.
- `scores`: every published score is what its stored predictions give.
- `pages`: every rendered file is what the records render to.
- `cells`: published cells, drawn with `seed`, give the same numbers when they are trained again
  (`scripts.plan.trained_again`).

What differs is named, a preset whose values have changed too; the status is then 1, and also where nothing could be
decided. Example: `python -m scripts.verify cells count=12 seed=5`.

`rescore metric=mae` computes any metric of `cmixup.metrics` of all published runs from their stored predictions.
"""

from __future__ import annotations

import random
import re
import sys
import time
from collections.abc import Callable, Sequence
from importlib import metadata
from pathlib import Path

import torch

from cmixup.errors import InputError, check_choice
from cmixup.files import sha256_of, write_atomically
from datasets.common.fetch import data_root, mirror_folders
from scripts.config.arguments import OUT, Args, parse_args
from scripts.config.compose import option_names
from scripts.config.parts import dataset_class
from scripts.driver.cli import user_errors
from scripts.driver.provenance import run_environment, stale_bytecode, unchecked_bytecode
from scripts.plan.trained_again import train_cells
from scripts.plan.verification import QUICK, draw_cells, published_cells
from scripts.records.experiment import NOT_PUBLISHED, RESULTS
from scripts.records.records import to_csv
from scripts.records.rescored import NEAR, NEAR_R, rescore, verify_scores
from scripts.records.seal import SEAL, broken_files, read_seal, root_line, seal_files
from scripts.report import rendering

LINKS = ("seal", "code", "data", "scores", "pages", "cells")
MINUTES = 8  # that all links take on two cores with the default count
KEYS = {
    "what": f"all, {', '.join(LINKS)}, or rescore",
    "metric": "of rescore: the score that is computed of all published runs, such as mae or worst_mae",
    "out": f"{OUT}; of rescore: rescored_<metric>.csv goes into it",
    "new": "of seal: seal these files as they are, paths below results/ between commas, or all; default none",
    "count": "cells to draw; default 12",
    "seed": "of the drawing; default: a new one, which is printed",
    "datasets": "whose cells, names between commas; default all",
    "experiments": "whose cells; default all",
    "models": "whose cells; default fcn3, the network that trains in seconds",
    "all": "of cells: 1 takes every one instead of a sample",
    "jobs": "processes; default one a core",
    "results": "where the published records are; default results/",
}


def check_sealed(results: Path, new: str) -> str:
    """Name every file of results/ that is not what was sealed; return what was found in words.

    Args:
        results: the folder results/.
        new: paths to seal as they are, between commas, or "all".

    Raises:
        InputError: there is no seal, or with `new` another file does not hold either.
        Broken: a file does not hold.
    """
    if new:
        named = [part.strip() for part in new.split(",") if part.strip()]
        print(f"sealed: root {seal_files(results, named, first=named == ['all'])}")
    if not (sealed := read_seal(results)):
        raise InputError(f"{results / SEAL} is not there: python -m scripts.verify seal new=all makes the first one")
    wrong = broken_files(results)
    return print_wrong(wrong, f"{len(sealed)} files, {len(wrong)} differ; {root_line(results)}")


def check_code() -> str:
    """Name what is not the code of its commit; return commit and digest of what runs here in words."""
    about, wrong = run_environment(torch.device("cpu")), list[str]()
    if about["dirty"]:
        wrong.append("code that was edited, or of unknown commit, so that what runs is not what was committed")
    wrong += [f"{path} is bytecode that Python runs without a look at its source" for path in unchecked_bytecode()]
    wrong += [f"{path} is bytecode of another source than stands beside it" for path in stale_bytecode()]
    return print_wrong(wrong, f"commit {about['commit'][:12] or 'unknown'}, digest {about['code']}")


def other_versions() -> str:
    """Return why no number needs to repeat here: PyTorch or NumPy of another version than that of constraints.txt."""
    pinned = dict(re.findall(r"(?m)^(torch|numpy)==(\S+)", (RESULTS.parent / "constraints.txt").read_text()))
    installed = {name: metadata.version(name).partition("+")[0] for name in pinned}
    other = [name for name in pinned if installed[name] != pinned[name]]
    words = [f"{name} {installed[name]} (constraints.txt: {pinned[name]})" for name in other]
    return f"packages: other: {', '.join(words)}" if other else ""


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
    """Train published cells again and name what differs; return in words how many repeat.

    Raises:
        Broken: a number differs, or nothing could be decided.
    """
    known = [name for name in option_names("experiment") if name not in NOT_PUBLISHED]
    datasets, experiments = given.listed("datasets", option_names("dataset")), given.listed("experiments", known)
    models = given.listed("models", option_names("model")) if given.get("models") else [QUICK]
    cells = published_cells(results, datasets, experiments, models)
    if not given.switch("all"):
        seed, n = given.count("seed", random.randrange(10**6)), given.count("count", 12)  # noqa: S311 - no secret
        print(f"{min(n, len(cells))} of {len(cells)} published cells, drawn with seed={seed}", flush=True)
        cells = draw_cells(cells, n, seed)
    judged, wrong, line = train_cells(cells, given.count("jobs"), within_noise=other_versions())
    lines = [f"{name}: {each}" for name, all_of in wrong.items() for each in all_of]
    return print_wrong(lines if judged or lines else ["nothing could be decided"], line)


class Broken(Exception):
    """A link does not hold; the message is what was found in words."""


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


def check_chain(links: dict[str, Callable[[], str]], results: Path) -> None:
    """Check all links in turn, a line for each, and end with the root of results/; the first that breaks ends it.

    Raises:
        SystemExit: a link does not hold, which the last line names.
    """
    print(f"{len(links)} links, about {MINUTES} minutes on two cores", flush=True)
    began = time.perf_counter()
    for name, link in links.items():
        started = time.perf_counter()
        try:
            line = link()
        except (Broken, InputError) as error:
            print(f"{name:8} {error}", flush=True)
            print(f"the link `{name}` does not hold", file=sys.stderr)
            raise SystemExit(1) from None
        print(f"{name:8} {line} ({time.perf_counter() - started:.0f} s)", flush=True)
    print(f"the chain holds ({(time.perf_counter() - began) / 60:.1f} minutes)\n{root_line(results)}")


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
        what = check_choice("what", given.get("what", ""), ("all", *LINKS, "rescore"))
        results = Path(given.get("results") or RESULTS)
        links: dict[str, Callable[[], str]] = {
            "seal": lambda: check_sealed(results, given.get("new", "")),
            "code": check_code,
            "data": check_data,
            "scores": lambda: check_scores(results),
            "pages": lambda: check_pages(results),
            "cells": lambda: check_cells(results, given),
        }
        if what == "all":
            return check_chain(links, results)
        if what == "rescore":
            return write_scores(given.get("metric", ""), results, given.out)
        try:
            print(f"{what}: {links[what]()}")
        except Broken as error:
            print(f"{what}: {error}")
            raise SystemExit(1) from None


if __name__ == "__main__":
    main()
