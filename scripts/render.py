"""Render everything that shows numbers from results/runs: tables, figures, and sentences of the pages.

Nothing here is typed by hand; a test compares the committed files with a fresh rendering. Only what changed since the
last rendering is drawn again: the code that draws it, or a file that it reads. A sentence that the records no longer
support (results/claims.yaml) leaves its page, and the command names it. `claims` prints every such sentence with its
numbers, and its exit status is 1 if one is not supported. `tables` prints published tables with other metrics, computed
from the stored predictions. `records` writes every score of every run as one CSV file, which any spreadsheet opens.
`make docs` makes one site of all pages.

python -m scripts.render claims failing=1
python -m scripts.render tables names=table1 metrics=rmse,mae
"""

from __future__ import annotations

from collections.abc import Sequence

from cmixup.errors import InputError, check_choice
from cmixup.files import write_atomically
from cmixup.metrics import parse_score
from scripts.claims.check import check_all
from scripts.claims.evidence import Evidence
from scripts.config.arguments import OUT, parse_args
from scripts.driver.cli import user_errors
from scripts.records.experiment import RESULTS
from scripts.records.records import records_csv
from scripts.records.rescored import filled_records
from scripts.records.tables import table_page
from scripts.report import rendering
from scripts.report.published_tables import shown_tables

KEYS = {
    "what": "files, claims, tables or records; default files",
    "all": "of files: 1 renders all of them, changed or not; default 0",
    "check": "of files: 1 writes nothing, names what is stale, and fails if anything is; default 0",
    "names": "of claims or tables: only these, between commas; default all",
    "metrics": "of tables: their columns; default those of the page",
    "out": f"{OUT}; records.csv goes into it",
    "failing": "of claims: 1 prints the ones alone that do not hold; default 0",
}


def check_rendered() -> None:
    """Say that every rendered file is what the records render to and every claim holds.

    Raises:
        InputError: a file or a claim that is not so.
    """
    if stale := [*rendering.stale_files(), *rendering.stale_pictures()]:
        raise InputError(f"stale, run python -m scripts.render: {', '.join(stale)}")
    print("every rendered file is what the records render to, and every claim holds")


def write_changed(*, everything: bool) -> None:
    """Render what changed, or everything, and name the claims that no longer hold."""
    changed = rendering.render_changed(everything=everything)
    print(f"rendered into {RESULTS}: {', '.join(changed) or 'nothing, since nothing changed'}")
    if failing := rendering.failing_claims():
        print(f"{len(failing)} claims no longer hold (python -m scripts.render claims failing=1): {', '.join(failing)}")


def print_claims(chosen: Sequence[str], *, failing: bool) -> None:
    """Print claims with their numbers, all or the ones named; `failing` leaves out those that hold.

    Raises:
        SystemExit: one of all claims does not hold.
    """
    verdicts = check_all(Evidence(filled_records(), RESULTS))
    wrong = [verdict.claim.name for verdict in verdicts if not verdict.holds]
    for verdict in verdicts:
        if (not chosen or verdict.claim.name in chosen) and not (failing and verdict.holds):
            print("\n".join(verdict.lines()))
    print(f"{len(verdicts) - len(wrong)} of {len(verdicts)} claims hold")
    if wrong:
        print("FAILS:", ", ".join(wrong))
        raise SystemExit(1)


def print_tables(chosen: Sequence[str], metrics: Sequence[str]) -> None:
    """Print published tables as Markdown.

    Args:
        chosen: names of experiments; all if empty.
        metrics: columns; those of the page if empty.

    Raises:
        InputError: no metric has one of the names, or no published table is of one of `chosen`.
    """
    for metric in metrics:
        parse_score(metric)
    found = shown_tables(filled_records(), metrics)
    known = tuple(dict.fromkeys(experiment.name for experiment, _, _ in found))
    for name in chosen:
        check_choice("names", name, known)
    print("\n".join(table_page(table) for experiment, _, table in found if experiment.name in (chosen or known)))


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    with user_errors():
        given = parse_args(argv, KEYS, __doc__, names=("what",))
        what = check_choice("what", given.get("what", "files"), ("files", "claims", "tables", "records"))
        chosen = given["names"].split(",") if "names" in given else []
        if what == "claims":
            print_claims(chosen, failing=given.switch("failing"))
        elif what == "tables":
            print_tables(chosen, given["metrics"].split(",") if "metrics" in given else [])
        elif what == "records":
            path = given.out / "records.csv"
            write_atomically(path, records_csv(filled_records()))
            print(f"written to {path}")
        elif given.switch("check"):
            check_rendered()
        else:
            write_changed(everything=given.switch("all"))


if __name__ == "__main__":
    main()
