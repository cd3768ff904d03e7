"""Plant each fault of tests/planted_faults.yaml and say which test of its file sees it; exit status 1 if none does.

The tests are those that `make tests-of` lists. Example: `python -m tests.robustness.planted_faults jobs=1`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from scripts.config.arguments import parse_args
from scripts.config.compose import read_part
from scripts.driver.cli import user_errors
from tests.robustness.mutants import KEYS, ROOT, Mutant, judge_all, matches, summary
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
        given = parse_args(argv, KEYS, __doc__)
        faults = matches(read_faults(), given.get("only", ""))
        jobs = given.count("jobs") or len(os.sched_getaffinity(0))
        verdicts = judge_all(faults, ROOT, jobs, lambda line: print(line, flush=True))
    print(summary(verdicts))
    if not all(v.expected for v in verdicts):
        sys.exit(1)


if __name__ == "__main__":
    main()
