"""Render everything that shows numbers from results/runs: records.csv, tables, figures, and sentences of the pages.

Nothing here is typed by hand; a test compares the committed files with a fresh rendering. Only what changed since the
last rendering is drawn again: the code that draws it, or a file that it reads. A sentence that the records no longer
support (results/claims.yaml) leaves its page, and the command names it. `claims` prints every such sentence with its
numbers, and its exit status is 1 if one is not supported. `make docs` makes one site of all pages.

python -m scripts.render claims failing=1
"""

from __future__ import annotations

from collections.abc import Sequence

from cmixup.errors import InputError, check_choice
from scripts.claims.check import check_all
from scripts.claims.evidence import Evidence
from scripts.driver.arguments import parse_args
from scripts.driver.cli import user_errors
from scripts.records.experiment import RESULTS
from scripts.records.published import published_records
from scripts.report import rendering

KEYS = {
    "what": "files or claims; default files",
    "all": "of files: 1 renders all of them, changed or not; default 0",
    "check": "of files: 1 writes nothing, names what is stale, and fails if anything is; default 0",
    "names": "of claims: only these, between commas; default all",
    "failing": "of claims: 1 prints the ones alone that do not hold; default 0",
}


def check() -> None:
    """Say that every rendered file is what the records render to and every claim holds.

    Raises:
        InputError: a file or a claim that is not so.
    """
    if stale := [*rendering.stale_files(), *rendering.stale_pictures()]:
        raise InputError(f"stale, run python -m scripts.render: {', '.join(stale)}")
    print("every rendered file is what the records render to, and every claim holds")


def write(*, everything: bool) -> None:
    """Render what changed, or everything, and name the claims that no longer hold."""
    changed = rendering.render(everything=everything)
    print(f"rendered into {RESULTS}: {', '.join(changed) or 'nothing, since nothing changed'}")
    if failing := rendering.failing_claims():
        print(f"{len(failing)} claims no longer hold (python -m scripts.render claims failing=1): {', '.join(failing)}")


def print_claims(chosen: Sequence[str], *, failing: bool) -> None:
    """Print claims with their numbers, all or the ones named; `failing` leaves out those that hold.

    Raises:
        SystemExit: one of all claims does not hold.
    """
    verdicts = check_all(Evidence(published_records(RESULTS), RESULTS))
    wrong = [verdict.claim.name for verdict in verdicts if not verdict.holds]
    for verdict in verdicts:
        if (not chosen or verdict.claim.name in chosen) and not (failing and verdict.holds):
            print("\n".join(verdict.lines()))
    print(f"{len(verdicts) - len(wrong)} of {len(verdicts)} claims hold")
    if wrong:
        print("FAILS:", ", ".join(wrong))
        raise SystemExit(1)


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    with user_errors():
        given = parse_args(argv, KEYS, __doc__, names=("what",))
        what = check_choice("what", given.get("what", "files"), ("files", "claims"))
        if what == "claims":
            print_claims(given.get("names", "").split(",") if "names" in given else [], failing=given.switch("failing"))
        elif given.switch("check"):
            check()
        else:
            write(everything=given.switch("all"))


if __name__ == "__main__":
    main()
