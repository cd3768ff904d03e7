"""The files that show tables: every table of the paper, sweep and ladder with published runs."""

from __future__ import annotations

from cmixup.metrics import with_everywhere
from scripts.records.register import writes
from scripts.records.rescored import filled_records
from scripts.records.tables import table_page, to_table_csv
from scripts.report.ladder import ladder_page
from scripts.report.shown import published_ladders, published_sweeps, shown_tables
from scripts.report.sweep import sweep_page


@writes("results/runs", "results/predictions", "results/paper")
def table_files() -> dict[str, str]:
    """Return every table as a page, and as CSV with the metrics that every run has, too."""
    records, texts = filled_records(), dict[str, str]()
    for experiment, preset, table in shown_tables(records):
        page = table_page(table, linked=True) + made_by(experiment.name, preset)
        texts[f"tables/{experiment.name}_{preset}.md"] = page
    for experiment, preset, table in shown_tables(records, more=with_everywhere(())):
        texts[f"tables/{experiment.name}_{preset}.csv"] = to_table_csv(table)
    return texts


@writes("results/runs", "results/paper")
def sweep_files() -> dict[str, str]:
    """Return the page of every sweep and ladder."""
    texts = {(e.name, preset): sweep_page(e, found, preset) for e, preset, found in published_sweeps()}
    texts |= {(e.name, preset): ladder_page(e, found, preset) for e, preset, found in published_ladders()}
    return {f"tables/{name}_{preset}.md": text + made_by(name, preset) for (name, preset), text in texts.items()}


def made_by(experiment: str, preset: str) -> str:
    """Return the last line of a page: the commands that make it."""
    trained = f"python -m scripts.reproduce {experiment} preset={preset}"
    return f"\n`{trained}` trains these runs, `make publish` renders this page.\n"
