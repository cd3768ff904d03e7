"""Render everything that shows numbers of results/: tables, figures, and sentences of the pages.

Nothing here is typed by hand; a test compares the committed files with a fresh rendering. Where the records no longer
support a sentence, an error says which, and nothing is written. `tables` prints published tables with other metrics,
computed from the stored predictions. `records` writes every run with all scores as one CSV file, which any spreadsheet
opens. `make docs` makes one site of all pages.

python -m scripts.render
python -m scripts.render tables names=table1 metrics=rmse,mae
"""

from __future__ import annotations

from collections.abc import Sequence

from cmixup.errors import InputError, check_choice
from cmixup.files import write_atomically
from cmixup.metrics import parse_score
from scripts.config.arguments import OUT, parse_args
from scripts.driver.cli import user_errors
from scripts.records.experiment import RESULTS
from scripts.records.rescored import table_runs
from scripts.report import rendering
from scripts.report.result_table import table_page
from scripts.report.tables import list_tables

KEYS = {
    "what": "files, tables or records; default files",
    "check": "of files: 1 writes nothing, names the texts that are stale, and fails if any is; default 0",
    "names": "of tables: only these, between commas; default all",
    "metrics": "of tables: their columns; default those of the page",
    "out": f"{OUT}; records.csv goes into it",
}


def published_tables(chosen: Sequence[str], metrics: Sequence[str]) -> str:
    """Return published tables as Markdown, all or those of experiments, with the page's metrics or others."""
    for metric in metrics:
        parse_score(metric)
    tables = list(list_tables(table_runs(), metrics))
    known = tuple(dict.fromkeys(experiment.name for experiment, _, _ in tables))
    for name in chosen:
        check_choice("names", name, known)
    return "\n".join(table_page(table) for experiment, _, table in tables if experiment.name in (chosen or known))


def main(argv: Sequence[str] | None = None) -> None:
    """Entry point."""
    with user_errors():
        given = parse_args(argv, KEYS, __doc__, names=("what",))
        what = check_choice("what", given.get("what", "files"), ("files", "tables", "records"))
        if what == "tables":
            print(published_tables(*(given[key].split(",") if key in given else [] for key in ("names", "metrics"))))
        elif what == "records":
            path = given.out / "records.csv"
            write_atomically(path, table_runs().drop(columns="shared").to_csv(index=False, lineterminator="\n"))
            print(f"written to {path}")
        elif not given.switch("check"):
            rendering.render_everything()
            print(f"rendered into {RESULTS}")
        elif stale := rendering.stale_texts():
            raise InputError(f"stale, run python -m scripts.render: {', '.join(stale)}")
        else:
            print("every rendered text is what the records render to, and every sentence holds")


if __name__ == "__main__":
    main()
