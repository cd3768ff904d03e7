"""The site's pages of records: every published run by its file.

They are made as the site is built, so that a number leads to the seeds behind it from disk, without a server.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

from scripts.records import names
from scripts.records.experiment import RESULTS
from scripts.records.published import EVERY_STUDY, run_files
from scripts.records.records import options_text
from scripts.records.run_tables import cell_of, read_runs

#: What is said of runs beside their scores: above their table where they share it, and else in a column of its own.
FACTS = ("method", "layer", "bandwidth", "alpha", "options", "words", "epochs", "stack_seeds", "verdict", "commit")
#: What is said above the table alone, however many values there are.
ABOVE = ("unit", "selection_rule", "notes", "device", "threads", "versions", "checksums", "dirty")
Report = Mapping[str, Any]


def pages() -> Iterator[tuple[str, dict[str, Any], str]]:
    """Yield name, content and template of every page: of each file of runs, and of their folders."""
    listed: dict[str, list[str]] = defaultdict(list)
    for path in [*run_files(RESULTS), *run_files(RESULTS, EVERY_STUDY)]:
        name = str(path.relative_to(RESULTS.parent)).partition(".")[0]
        _, _, folder, *rest = name.split("/")
        title = names.dataset_title(rest[0])
        yield _page(name, f"{title}: {folder}", _runs(path))
        listed[folder].append(f'<li><a href="{rest[0]}.html">{escape(title)}</a></li>')
    for folder, items in listed.items():
        yield _page(f"results/runs/{folder}/index", f"Runs of {folder}", f"<ul>{''.join(items)}</ul>")
    links = "".join(f'<li><a href="{folder}/index.html">{folder}</a></li>' for folder in listed)
    yield _page("results/runs/index", "Every published run, by its experiment", f"<ul>{links}</ul>")


def _page(name: str, title: str, body: str) -> tuple[str, dict[str, Any], str]:
    made = "<p><code>make docs</code> makes this page, <code>make publish</code> what it is made of.</p>"
    return name, {"title": escape(title), "body": f"<h1>{escape(title)}</h1>{body}{made}"}, "page.html"


def _runs(path: Path) -> str:
    """Return the runs of a file, a table a cell; those of the study a table an experiment and setting."""
    cells: dict[str, list[Report]] = defaultdict(list)
    for report in read_runs(path):
        setting = f"{report['experiment']} {report['options'].get('condition', '')}"
        cells[setting if "condition" in report["options"] else cell_of(report)].append(report)
    file = path.relative_to(RESULTS.parent)
    return f"<p>Every run of <code>{file}</code>, a row each, in tables by cell.</p>" + "".join(
        f"<h2>{escape(name).replace('/', '/<wbr>')}</h2>{_facts(runs)}{_table(runs)}" for name, runs in cells.items()
    )


def _values(runs: Iterable[Report], key: str) -> list[str]:
    return list(dict.fromkeys(_said(r.get(key)) for r in runs))


def _said(value: Any) -> str:
    """Return a fact as text: options as they are typed, a list's entries in a row, nothing for what is not there."""
    if isinstance(value, dict):
        return options_text(value)
    if isinstance(value, list):
        return " ".join(map(_said, value))
    if isinstance(value, float):
        return _digits(value)
    return "" if value is None or value is False else str(value)


def _facts(runs: Sequence[Report]) -> str:
    values = {key: [v for v in _values(runs, key) if v] for key in (*FACTS, *ABOVE)}
    shown = {key: found for key, found in values.items() if found and (key in ABOVE or len(_values(runs, key)) == 1)}
    rows = "".join(f"<dt>{key}</dt><dd>{escape('; '.join(found))}</dd>" for key, found in shown.items())
    return f"<details><summary>What these runs share</summary><dl>{rows}</dl></details>"


def _table(runs: Sequence[Report]) -> str:
    scores = list(dict.fromkeys((part, metric) for r in runs for part in r["scores"] for metric in r["scores"][part]))
    own = [key for key in FACTS if len(_values(runs, key)) > 1]
    head = [*own[:1], "seed", *(f"{part} {metric}" for part, metric in scores), "best epoch", "seconds", *own[1:]]
    body = [
        [*(_values([r], key)[0] for key in own[:1]), r["seed"],
         *(_digits(r["scores"].get(part, {}).get(metric)) for part, metric in scores),
         _digits(r.get("best_epoch")), _digits(r.get("seconds")), *(_values([r], key)[0] for key in own[1:])]
        for r in runs
    ]  # fmt: skip
    rows = "".join(f"<tr>{''.join(f'<td>{escape(str(cell))}</td>' for cell in row)}</tr>" for row in body)
    titles = "".join(f"<th>{escape(title)}</th>" for title in head)
    shown = f"<thead><tr>{titles}</tr></thead><tbody>{rows}</tbody>"
    return f'<div class="table-wrapper"><table class="docutils">{shown}</table></div>'


def _digits(value: float | None) -> str:
    return "" if value is None else f"{value:.6g}" if math.isfinite(value) else "not finite"
