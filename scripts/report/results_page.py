"""The results as one HTML file: every table beside the paper and the authors' code, every number with its record.

The file needs no network and no other file: pictures and records are inside. results_page.html is its frame.
"""

from __future__ import annotations

import base64
import html
import json
import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
from scripts.records.tables import LEGEND, Block, Table, difference_text, interval_lines, ours_text, paper_text

FRAME = Path(__file__).with_suffix(".html")
ROW, WIDTH, LEFT, RIGHT = 22, 640, 150, 20  # of a plot, in its own units
SAME = (
    "options", "layer", "bandwidth", "alpha", "commit", "checksums", "device", "versions", "unit", "notes", "epochs",
    "stack_seeds", "selection_rule", "verdict",
)  # fmt: skip
INTRO = (
    "Every number of ours opens its runs: options, commit, checksums, seed by seed. In plots a point is a seed, the "
    "blue line our mean, the orange one the paper's."
)
Report = Mapping[str, Any]


def page(
    tables: Sequence[tuple[Experiment, str, Table]],
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
    sections = [
        _table(_Source(experiment, preset, experiment.records_of(records, preset), evidence), table)
        for experiment, preset, table in tables
    ]
    chosen = {
        "table": {e.name: e.title for e, _, _ in tables},
        "dataset": {b.dataset: names.dataset_title(b.dataset) for _, _, t in tables for b in t.blocks},
        "method": {m: names.method_title(m) for _, _, t in tables for b in t.blocks for m in b.cells},
        "preset": {preset: preset for _, preset, _ in tables},
    }
    return Template(FRAME.read_text()).substitute(
        intro=f"<p>{html.escape(LEGEND)} {html.escape(INTRO)}</p>",
        filters="".join(_filter(key, values) for key, values in chosen.items()),
        map=_map(map_rows),
        sections="".join(sections),
        figures="".join(_figure(title, path) for title, path in figures.items()),
        cells=json.dumps(cells(reports), separators=(",", ":")).replace("</", "<\\/"),
    )


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


@dataclass(frozen=True)
class _Source:
    """Whose numbers a part of the page shows."""

    experiment: Experiment
    preset: str
    records: pd.DataFrame
    evidence: Evidence


def _table(source: _Source, table: Table) -> str:
    blocks = "".join(_block(source, block) for block in table.blocks)
    notes = "".join(f'<p class="note">{html.escape(note)}</p>' for note in (*table.notes, *_missing(table)))
    return f'<section class="table"><h2>{html.escape(table.title)}</h2>{notes}{blocks}</section>'


def _missing(table: Table) -> list[str]:
    return [f"Not in this table: {'; '.join(table.missing)}."] if table.missing else []


def _block(source: _Source, block: Block) -> str:
    name, preset, first = source.experiment.name, source.preset, block.metrics[0]
    mine = select(source.records, dataset=block.dataset, split="test")
    body = {m: (_row(block, m, mine), _authors(source, block, m)) for m in block.cells}
    authors = any(theirs != "—" for _, theirs in body.values())
    head = ["method", "n"]
    for metric in block.metrics:
        head += [names.metric_title(metric), "paper", "ours minus paper"]
    head += [f"authors' code, {names.metric_title(first)}"] if authors else []
    rows = "".join(
        f'<tr data-method="{m}">{row}{_td(theirs) if authors else ""}</tr>' for m, (row, theirs) in body.items()
    )
    titles = "".join(f"<th>{html.escape(title)}</th>" for title in head)
    notes = "".join(f'<p class="note">{html.escape(s)}</p>' for s in (*interval_lines(block), *block.notes))
    return (
        f'<section class="block" data-table="{name}" data-dataset="{block.dataset}" data-preset="{preset}">'
        f"<h3>{html.escape(names.dataset_title(block.dataset))}, preset {html.escape(preset)}</h3>"
        f'<div class="wide"><table><tr>{titles}</tr>{rows}</table></div>{plot(block, mine, first)}{notes}</section>'
    )


def _row(block: Block, method: str, mine: pd.DataFrame) -> str:
    """Return the table cells of a method."""
    found = select(mine, method=method)
    cell = str(found["run"].iloc[0]).rpartition("/")[0] if len(found) else ""
    counts = {c.ours.n for c in block.cells[method].values() if c.ours}
    parts = [_td(names.method_title(method)), _td("/".join(map(str, sorted(counts))) or "—")]
    for score in block.cells[method].values():
        number = html.escape(ours_text(score))
        linked = f'<a class="run" href="#{html.escape(cell)}">{number}</a>' if score.ours else number
        parts.append(f'<td class="best">{linked}</td>' if score.best else f"<td>{linked}</td>")
        parts += [_td(paper_text(score)), _td(difference_text(score))]
    return "".join(parts)


def _authors(source: _Source, block: Block, method: str) -> str:
    """Return the mean ± std of the first metric by the authors' own code, or a dash.

    Their code was run as they released it, so it has no number beside runs that change an option.
    """
    metric = block.metrics[0]
    score = block.cells[method][metric]
    if score.ours is None or source.experiment.own_options():
        return "—"
    query = {"experiment": source.experiment.recorded_under(method, block.dataset), "preset": source.preset,
             "dataset": block.dataset, "method": method, "metric": metric}  # fmt: skip
    return codes(source.evidence, query, score.decimals)[0]


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


def _td(text: str) -> str:
    return f"<td>{html.escape(text)}</td>"


def _map(markdown: str) -> str:
    """Return the map's Markdown table as HTML; links to files of results/ become their text."""
    rows = [line.strip("|").split("|") for line in markdown.splitlines() if line.startswith("|")]
    head, _, *body = [[_inline(cell.strip()) for cell in row] for row in rows]
    shown = "".join(
        "<tr>" + "".join(f'<td data-of="{of}">{cell}</td>' for of, cell in zip(head[:-1], row, strict=False)) + "</tr>"
        for row in body
    )
    titles = "".join(f"<th>{cell}</th>" for cell in head[:-1])
    legend = _inline(markdown.splitlines()[-1])
    return (
        f'<h2>The paper, artefact by artefact</h2><div class="wide"><table class="map"><tr>{titles}</tr>{shown}'
        f"</table></div><p>{legend}</p>"
    )


def _inline(text: str) -> str:
    """Return Markdown's bold and code as HTML."""
    parts = html.escape(text).split("**")
    bold = "".join(f"<strong>{p}</strong>" if i % 2 else p for i, p in enumerate(parts))
    return "".join(f"<code>{p}</code>" if i % 2 else p for i, p in enumerate(bold.split("`")))


def _figure(title: str, path: Path) -> str:
    data = base64.b64encode(path.read_bytes()).decode()
    shown = html.escape(title)
    return f'<figure><img alt="{shown}" src="data:image/png;base64,{data}"><figcaption>{shown}</figcaption></figure>'
