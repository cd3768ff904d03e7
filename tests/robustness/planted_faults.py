"""Plant each fault of tests/planted_faults.yaml and say which test of its file sees it; exit status 1 if none does.

The tests are those that `make tests-of` lists. Example: `python -m tests.robustness.planted_faults jobs=1`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scripts.config.arguments import parse_args
from scripts.config.compose import read_part
from scripts.driver.cli import user_errors
from tests.robustness.mutants import KEYS, ROOT, Mutant, judge_listed
from tests.tests_of import find_tests

FAULTS = ROOT / "tests" / "planted_faults.yaml"


def read_faults(path: Path = FAULTS) -> list[Mutant]:
    """Return the planted faults of a file, each with the test files of its source file."""
    entries: Any = read_part(path)
    return [
        Mutant(e["file"], e["old"], e["new"], tuple(t for t in find_tests(e["file"]) if t.endswith(".py")), e["why"])
        for e in entries
    ]


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    with user_errors():
        judge_listed(parse_args(argv, KEYS, __doc__), read_faults())


if __name__ == "__main__":
    main()
