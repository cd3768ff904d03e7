"""The results as one HTML file: every table beside the paper and the authors' code, every method with its records."""

from __future__ import annotations

import base64
import html
import itertools
import json
import math
import re
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

import pandas as pd

from scripts.claims.evidence import Evidence
from scripts.claims.paper_verdict import codes
from scripts.records import names
from scripts.records.experiment import Experiment
from scripts.records.published import cell_of
from scripts.records.records import by_seed, select
from scripts.records.tables import LEGEND, Block, ResultTable, header, interval_lines, lines

FRAME = Path(__file__).with_suffix(".html")
ROW, WIDTH, LEFT, RIGHT = 22, 640, 150, 20  # of a plot, in its own units
SAME = (
    "options", "layer", "bandwidth", "alpha", "commit", "checksums", "device", "kernels", "versions", "unit", "notes",
    "epochs", "stack_seeds", "selection_rule", "verdict",
)  # fmt: skip
INTRO = (
    "The name of a method opens its runs: options, commit, checksums, seed by seed. In plots a point is a seed, the "
    "blue line our mean, the orange one the paper's."
)
Report = Mapping[str, Any]


def page(
    tables: Sequence[tuple[Experiment, str, ResultTable]],
    records: pd.DataFrame,
    reports: Sequence[Report],
    evidence: Evidence,
    *,
    map_rows: str,
    figures: Mapping[str, Path],
) -> str:
    """Return the page.

    Args:
        tables: experiment, preset and table, in their order on the page.
        records: tidy records that the tables are made of.
        reports: of all published runs.
        evidence: these records, and the authors' runs.
        map_rows: the map of the paper's artefacts, as Markdown.
        figures: title to PNG file.
    """
    chosen = {
        "table": {e.name: e.title for e, _, _ in tables},
        "dataset": {b.dataset: names.dataset_title(b.dataset) for _, _, t in tables for b in t.blocks},
        "method": {m: names.method_title(m) for _, _, t in tables for b in t.blocks for m in b.cells},
        "preset": {preset: preset for _, preset, _ in tables},
    }
    body = [f"<p>{html.escape(f'{LEGEND} {INTRO}')}</p><h2>The paper, artefact by artefact</h2>", _map(map_rows)]
    for experiment, preset, shown in tables:
        mine = experiment.records_of(records, preset)
        notes = [*shown.notes, *([f"Not in this table: {'; '.join(shown.missing)}."] if shown.missing else [])]
        blocks = "".join(_block(experiment, preset, block, mine, evidence) for block in shown.blocks)
        body.append(f'<section class="table"><h2>{html.escape(shown.title)}</h2>{_notes(notes)}{blocks}</section>')
    for title, path in figures.items():
        png, shown_title = base64.b64encode(path.read_bytes()).decode(), html.escape(title)
        image = f'<img alt="{shown_title}" src="data:image/png;base64,{png}">'
        body.append(f"<figure>{image}<figcaption>{shown_title}</figcaption></figure>")
    filters = "".join(_filter(key, values) for key, values in chosen.items())
    data = json.dumps(cells(reports), separators=(",", ":")).replace("</", "<\\/")
    frame = Template(FRAME.read_text())
    return frame.substitute(title="cmixup: results", filters=filters, body="".join(body), cells=data)


def _map(rows: str) -> str:
    """Return the map, Markdown of a table and a paragraph, as HTML without its column of links."""
    shown, legend = rows.split("\n\n")
    head, _, *body = [[_inline(cell.strip()) for cell in line.strip("|").split("|")[:-1]] for line in shown.split("\n")]
    return f"{_table(head, body, 'map')}<p>{_inline(legend)}</p>"


def _inline(text: str) -> str:
    """Return a line of Markdown as HTML: bold and code; links are text."""
    linked = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", html.escape(text))
    return re.sub(r"`(.+?)`", r"<code>\1</code>", re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", linked))


def _table(head: Sequence[str], body: Sequence[Sequence[str]], kind: str = "", methods: Sequence[str] = ()) -> str:
    """Return a table of cells in HTML; each says what it is of, for narrow screens, and a row may be of a method."""
    titles = "".join(f"<th>{cell}</th>" for cell in head)
    rows = ""
    for method, row in itertools.zip_longest(methods, body, fillvalue=""):
        cells = "".join(f'<td data-of="{of}">{cell}</td>' for of, cell in zip(head, row, strict=True))
        rows += f'<tr data-method="{method}">{cells}</tr>'
    return f'<div class="wide"><table class="{kind}"><tr>{titles}</tr>{rows}</table></div>'


def cells(reports: Sequence[Report]) -> dict[str, dict[str, Any]]:
    """Return what the page tells of every cell: what its runs share (`same`), and a row a seed (`columns`, `seeds`)."""
    grouped: dict[str, list[Report]] = defaultdict(list)
    for report in reports:
        grouped[cell_of(report)].append(report)
    found = {}
    for name, runs in grouped.items():
        shared = {key: runs[0].get(key) for key in SAME if all(r.get(key) == runs[0].get(key) for r in runs)}
        differing = [key for key in SAME if key not in shared and any(r.get(key) for r in runs)]
        scores = list(dict.fromkeys(f"{split} {m}" for r in runs for split in r["scores"] for m in r["scores"][split]))
        found[name] = {
            "same": {key: value for key, value in shared.items() if value not in (None, "", [], {})},
            "columns": ["seed", *scores, "best epoch", "seconds", *differing],
            "seeds": [
                [r["seed"], *(_score(r, s) for s in scores), r["best_epoch"], round(r["seconds"], 2),
                 *(r.get(key) for key in differing)]
                for r in runs
            ],
        }  # fmt: skip
    return found


def _score(report: Report, name: str) -> float | None:
    split, _, metric = name.partition(" ")
    value = report["scores"].get(split, {}).get(metric)
    return None if value is None or not math.isfinite(value) else value


def _filter(key: str, values: Mapping[str, str]) -> str:
    choices = "".join(f'<option value="{html.escape(v)}">{html.escape(title)}</option>' for v, title in values.items())
    return f'<label>{key} <select name="{key}"><option value="">all</option>{choices}</select></label>'


def _notes(notes: Sequence[str]) -> str:
    return "".join(f'<p class="note">{html.escape(note)}</p>' for note in notes)


def _block(experiment: Experiment, preset: str, block: Block, records: pd.DataFrame, evidence: Evidence) -> str:
    mine = select(records, dataset=block.dataset, split="test")
    runs = {str(method): cell_of({"run": run}) for method, run in zip(mine["method"], mine["run"], strict=True)}
    authors = [_authors(experiment, preset, block, method, evidence) for method in block.cells]
    head, body = header(block), []
    for method, line, theirs in zip(block.cells, lines(block, "**{}**"), authors, strict=True):
        name, *numbers = map(_inline, line)
        linked = f'<a class="run" href="#{html.escape(runs[method])}">{name}</a>' if method in runs else name
        body.append([linked, *numbers, theirs])
    if any(theirs != "—" for theirs in authors):
        head.append(f"authors' code, {names.metric_title(block.metrics[0])}")
    else:
        body = [row[:-1] for row in body]
    return (
        f'<section class="block" data-table="{experiment.name}" data-dataset="{block.dataset}" data-preset="{preset}">'
        f"<h3>{html.escape(names.dataset_title(block.dataset))}, preset {html.escape(preset)}</h3>"
        f"{_table([html.escape(title) for title in head], body, methods=list(block.cells))}"
        f"{plot(block, mine, block.metrics[0])}{_notes([*interval_lines(block), *block.notes])}</section>"
    )


def _authors(experiment: Experiment, preset: str, block: Block, method: str, evidence: Evidence) -> str:
    """Return the mean ± std of the first metric by the authors' own code, or a dash.

    Their code was run as they released it, so it has no number beside runs that change an option.
    """
    metric = block.metrics[0]
    score = block.cells[method][metric]
    if score.ours is None or experiment.own_options():
        return "—"
    query = {"experiment": experiment.recorded_under(method, block.dataset), "preset": preset,
             "dataset": block.dataset, "method": method, "metric": metric}  # fmt: skip
    return codes(evidence, query, score.decimals)[0]


def plot(block: Block, mine: pd.DataFrame, metric: str) -> str:
    """Return a dot plot of one score: a row a method, a point a seed, lines for our mean and the paper's."""
    values = {m: by_seed(mine, method=m, metric=metric) for m in block.cells}
    paper = {m: c[metric].paper for m, c in block.cells.items() if c[metric].paper is not None}
    every = [v for found in values.values() for v in found.values() if math.isfinite(v)]
    if not every:
        return ""
    every += [v for v in paper.values() if v is not None]
    low, high = min(every), max(every)
    span = (high - low) or abs(high) or 1.0

    def x(value: float) -> float:
        return LEFT + (WIDTH - LEFT - RIGHT) * (value - low) / span

    shown = [m for m in block.cells if values[m] or m in paper]
    height = ROW * len(shown) + 24
    title = f"{names.metric_title(metric)} of {names.dataset_title(block.dataset)}"
    parts = [f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{html.escape(title)}, seed by seed">']
    for k, method in enumerate(shown):
        y = ROW * k + ROW / 2
        name = names.method_title(method)
        marks = [f'<text class="name" x="{LEFT - 12}" y="{y + 4}" text-anchor="end">{name}</text>',
                 f'<line class="axis" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y}" y2="{y}"/>']  # fmt: skip
        points = {seed: v for seed, v in values[method].items() if math.isfinite(v)}
        marks += [
            f'<circle class="seed" cx="{x(v):.1f}" cy="{y}" r="5" tabindex="0"><title>{name}, '
            f"seed {seed}: {v:.6g}</title></circle>"
            for seed, v in points.items()
        ]
        if points:
            mean = math.fsum(points.values()) / len(points)
            marks.append(_line("mean", x(mean), y, f"our mean {mean:.6g}, n = {len(points)}"))
        if method in paper:
            marks.append(_line("theirs", x(float(paper[method] or 0)), y, f"the paper's {paper[method]:g}"))
        parts.append(f'<g data-method="{method}">{"".join(marks)}</g>')
    parts += [f'<text x="{LEFT}" y="{height - 4}">{low:.4g}</text>',
              f'<text x="{WIDTH - RIGHT}" y="{height - 4}" text-anchor="end">{high:.4g}</text>']  # fmt: skip
    return "".join([*parts, "</svg>"])


def _line(kind: str, x: float, y: float, title: str) -> str:
    return f'<line class="{kind}" x1="{x:.1f}" x2="{x:.1f}" y1="{y - 8}" y2="{y + 8}"><title>{title}</title></line>'
