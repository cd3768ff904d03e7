"""Print the tests of a source file, and why each is one, by the rules of tests/README.md; `make tests-of` runs this.

Example: `python -m tests.tests_of file=cmixup/pairing/label.py run=1`.
"""

import subprocess
import sys
from collections.abc import Sequence
from functools import cache

from cmixup.errors import InputError
from scripts.config.arguments import near_hint, parse_args
from scripts.driver.cli import user_errors
from tests.modules import EVERY, NAMES, PACKAGES, REPO, imports
from tests.robustness.mutants import MUTANTS, read_mutants

KEYS = {"file": "a source file, from the root of the checkout", "run": "1 runs the tests, too; default 0"}
TESTS = [name for name in EVERY if name.rpartition(".")[2].startswith("test_")]
FILES = {path.relative_to(REPO).as_posix(): name for name, path in NAMES.items()}


def path_of(name: str) -> str:
    """The path of a module's file from the root of the checkout."""
    return EVERY[name].relative_to(REPO).as_posix()


@cache
def mutants() -> dict[str, set[str]]:
    """The tests that kill mutants of each source file; a test file, or `file::test`."""
    found: dict[str, set[str]] = {}
    for mutant in read_mutants(MUTANTS):
        found.setdefault(mutant.file, set()).update(mutant.tests)
    return found


@cache
def importers() -> dict[str, set[str]]:
    """The modules that import each module."""
    found: dict[str, set[str]] = {name: set() for name in EVERY}
    for name in EVERY:
        for other in imports(name):
            found[other].add(name)
    return found


def importing(name: str) -> dict[str, int]:
    """The test modules that import a module, and over how many imports, the nearest first."""
    found: dict[str, int] = {}
    met, level, distance = {name}, importers()[name], 1
    while level:
        found |= dict.fromkeys(sorted(level.intersection(TESTS)), distance)
        met, distance = met | level, distance + 1
        level = set().union(*(importers()[one] for one in level)) - met
    return found


def targets(name: str) -> list[str]:
    """The `make` targets that run `-m module` or `-m room stem`; tests/quickstart/targets.yaml tries each."""
    found, target = [], ""
    commands = f"-m {name} ", f"-m {' '.join(name.rsplit('.', 1))} "
    for line in (REPO / "Makefile").read_text().splitlines():
        target = target if line[:1] in "\t" else line.partition(":")[0]
        if any(command in f"{line} " for command in commands):
            found.append(f"make {target}")
    return found


def find_tests(file: str) -> dict[str, str]:
    """Return what tests a source file: test files and `make` targets, each with the reason.

    Raises:
        InputError: no source file has this path.
    """
    if file not in FILES:
        raise InputError(f"file must be one of {', '.join(PACKAGES)}, got {file!r}{near_hint(file, list(FILES))}")
    module = FILES[file].removesuffix(".__main__")
    room, _, stem = module.removeprefix("cmixup.").rpartition(".")
    above = importing(FILES[file])
    nearest = min(above.values(), default=0)
    named = {one for one in TESTS if one.endswith(f".test_{stem}")}
    own = named & {*(one for one in above if above[one] == 1), f"tests.{room}.test_{stem}"}
    found = dict.fromkeys((path_of(one) for one in sorted(own)), "has its name")
    for test in mutants().get(file, ()):
        found.setdefault(test.partition("::")[0], "kills its mutants")
    if nearest == 1 or not found:
        for one, distance in above.items():
            if distance == nearest or (nearest > 1 and one.startswith(f"tests.{room}.")):
                found.setdefault(path_of(one), "imports it" + (distance > 1) * f" over {distance} imports")
    if not found and not file.endswith("__init__.py"):
        there = [one for one in TESTS if one.startswith(f"tests.{room}.") and f'"{stem}"' in EVERY[one].read_text()]
        found = dict.fromkeys((path_of(one) for one in there), "names it")
    return found | dict.fromkeys(targets(module), "runs it")


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    with user_errors():
        given = parse_args(argv, KEYS, __doc__)
        found = find_tests(given.get("file", ""))
    width = max(map(len, found), default=0)
    for test, reason in found.items():
        print(f"{test:<{width}}  {reason}", flush=True)
    if given.switch("run") and found:
        command = [sys.executable, "-m", "pytest", *(test for test in found if test.endswith(".py"))]
        raise SystemExit(subprocess.run(command, check=False).returncode)


if __name__ == "__main__":
    main()
