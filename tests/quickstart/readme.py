"""README's first command, as typed, in a checkout where nothing has been run: `python3 -m tests.quickstart.readme`.

It must end within LIMIT seconds, print a table that has what README says, and leave the tree as it was. `WITH=` of the
environment narrows it to try this file itself. Needs nothing but Python.
"""

import csv
import os
import re
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from tests.quickstart.step import REPO, Red, changed, check_clean, processor, run

LIMIT = 900  # on an idle machine it takes some two minutes, on one that four others share, seven
TABLE = "tables/table1_paper.csv"  # below results/ as published, below outputs/ as trained here
REAL, STAND_IN, SEEDS = {"airfoil", "no2"}, {"diabetes"}, 10


def first_command(readme: str) -> str:
    """Return the first line of README's first block of shell, with its comment."""
    return re.findall(r"^```bash\n(.*)$", readme, re.MULTILINE)[0]


def read(path: Path) -> dict[tuple[str, str], Mapping[str, str]]:
    """Return a table's test RMSE: its rows by dataset and method."""
    with path.open(newline="") as stream:
        return {(row["dataset"], row["method"]): row for row in csv.DictReader(stream) if row["metric"] == "rmse"}


def check_table(ours: Path, published: Path, mirror: bool) -> str:
    """Return a sentence on a trained table that has every method of the published one with as many seeds.

    On the same data each mean must be within a standard deviation over seeds of the published one: another processor
    rounds otherwise, and does no more than that.

    Args:
        ours: the table that was trained.
        published: the one in results/.
        mirror: raw files are at hand, so that the stand-in will not do.

    Raises:
        Red: something is missing or far off.
    """
    found, there = read(ours), read(published)
    methods, datasets = {method for _, method in there}, {dataset for dataset, _ in found}
    if not (datasets >= REAL or (not mirror and datasets == STAND_IN)):
        raise Red(f"{ours} has {', '.join(sorted(datasets))}; {' and '.join(sorted(REAL))} belong there")
    for key in ((dataset, method) for dataset in sorted(datasets & (REAL | STAND_IN)) for method in sorted(methods)):
        row, theirs = found.get(key, {}), there.get(key, {})
        if row.get("n") != str(SEEDS):
            raise Red(f"{ours} has {row.get('n', 'no')} seeds of {' '.join(key)}, not {SEEDS}")
        if theirs and not abs(float(row["mean"]) - float(theirs["mean"])) <= float(theirs["std"]):
            raise Red(f"{ours} has {row['mean']} for {' '.join(key)}; published: {theirs['mean']} ± {theirs['std']}")
    return f"{len(methods)} methods x {' and '.join(sorted(datasets))}, {SEEDS} seeds"


def main(repo: Path = REPO) -> None:
    """Entry point."""
    line, narrowed = first_command((repo / "README.md").read_text()), os.environ.get("WITH", "")
    before, table = changed(repo), repo / "outputs" / TABLE
    command = f"{line.partition('#')[0].strip()} {narrowed}" if narrowed else line
    print(f"$ {command}", flush=True)
    started = time.time()
    seconds = run(command, LIMIT, shown=True, repo=repo)
    check_clean(command, before, repo)
    if not table.is_file() or table.stat().st_mtime < started:
        raise Red(f"README's first command did not write {table}")
    print(f"README's first command: {seconds / 60:.1f} minutes with its set-up on {processor()}; the tree is clean")
    if not narrowed:
        mirror = bool(os.environ.get("CMIXUP_MIRROR")) or (repo / "../shared/data").is_dir()  # the Makefile's
        print(check_table(table, repo / "results" / TABLE, mirror))


if __name__ == "__main__":
    try:
        main()
    except Red as error:
        sys.exit(f"RED: {error}")
