"""Try the targets of `make help` as targets.yaml says: `python -m tests.quickstart.targets only=lint,types`.

The cheap ones are tried every time, the others a third at a time by date. Each must end well within its limit and leave
the tree as it was. What is trained and drawn goes into a temporary folder.
"""

import datetime
import os
import re
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from scripts.config.arguments import parse_args
from scripts.driver.cli import user_errors
from tests.quickstart.step import REPO, Red, changed, check_clean, run

TABLE = Path(__file__).with_name("targets.yaml")
TURNS = 3
KEYS = {"only": "targets between commas, or all; default those of the day", "day": "whose third; default today"}


@dataclass(frozen=True)
class Line:
    """How a target is tried.

    Attributes:
        target: its name.
        with_: what is typed behind it; `{out}` is the temporary folder.
        in_turn: tried a third of the days, not always.
        needs_files: raw files must be at hand.
        not_: why it is not tried; only its recipe is expanded then (`make -n`).
        limit: seconds.
    """

    target: str
    with_: str = ""
    in_turn: bool = False
    needs_files: bool = False
    not_: str = ""
    limit: float = 300


def targets(makefile: str) -> list[str]:
    """Return the targets that `make help` lists."""
    return re.findall(r"^([a-z0-9-]+):.*## ", makefile, re.MULTILINE)


def read(text: str, known: Sequence[str]) -> list[Line]:
    """Return the lines of the table.

    Raises:
        Red: a target has no line, a line no target, or one says neither or both how it is tried and why not.
    """
    table: Mapping[str, dict[str, Any]] = yaml.safe_load(text)
    if lacking := [name for name in known if name not in table]:
        raise Red(f"targets.yaml has no line for {', '.join(lacking)}: say how CI tries them, or why not")
    if spare := [name for name in table if name not in known]:
        raise Red(f"targets.yaml has lines for {', '.join(spare)}, which `make help` does not list")
    if unclear := [name for name, given in table.items() if ("with" in given) == ("not" in given)]:
        raise Red(f"targets.yaml must say either `with` or `not` of {', '.join(unclear)}")
    return [Line(name, **{{"with": "with_", "not": "not_"}.get(key, key): value for key, value in given.items()})
            for name, given in table.items()]  # fmt: skip


def chosen(lines: Sequence[Line], day: int) -> list[Line]:
    """Return what is tried on a day: every line that is not in turn, and a third of those that are."""
    in_turn = [line for line in lines if line.in_turn]
    return [line for line in lines if not line.in_turn or in_turn.index(line) % TURNS == day % TURNS]


def tried(line: Line, out: Path, repo: Path = REPO) -> str:
    """Try a target and return a sentence on it.

    Raises:
        Red: it failed, did not end within its limit or changed the tree.
    """
    before = changed(repo)
    command = f"make {'-n ' if line.not_ else ''}{line.target} {line.with_.format(out=out)}".rstrip()
    seconds = run(command, line.limit, repo=repo)
    check_clean(command, before, repo)
    return f"{seconds:6.1f} s  {command}{f'   (not tried: {line.not_})' if line.not_ else ''}"


def try_all(lines: Sequence[Line], try_one: Callable[[Line], str]) -> list[str]:
    """Try targets one after another, say how each went, and return what was red."""
    red = []
    for line in lines:
        try:
            print(try_one(line), flush=True)
        except Red as error:
            red.append(str(error))
            print(f"RED: {error}", flush=True)
    return red


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    try:
        lines = read(TABLE.read_text(), targets((REPO / "Makefile").read_text()))
    except Red as error:
        sys.exit(f"RED: {error}")
    files = bool(os.environ.get("CMIXUP_MIRROR")) or (REPO / "../shared/data").is_dir()
    with user_errors():
        given, known = parse_args(argv, KEYS, __doc__), [line.target for line in lines]
        today = chosen(lines, given.count("day", datetime.date.today().toordinal()))
        if "only" in given:
            names = known if given["only"] == "all" else given.listed("only", known)
            today = [lines[known.index(name)] for name in names]
    if absent := [line.target for line in today if line.needs_files and not files]:
        print(f"not tried without raw files: {', '.join(absent)}")
    with tempfile.TemporaryDirectory(prefix="targets-") as out:
        red = try_all([line for line in today if files or not line.needs_files], lambda line: tried(line, Path(out)))
    if red:
        sys.exit(f"RED: {len(red)} of {len(today)} targets")


if __name__ == "__main__":
    main()
