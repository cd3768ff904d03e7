"""A dashboard of one's own runs as one HTML file: what wandb's page of a project shows, without an account."""

from __future__ import annotations

import base64
import csv
import html
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from cmixup.done import checked
from cmixup.metrics import lower_is_better
from scripts.driver.predictions import PREDICTIONS, read_predictions
from scripts.driver.runs import HISTORY
from scripts.records.stats import summarise
from scripts.report.collected import Collected
from scripts.report.figures import to_png
from scripts.report.prediction_figure import draw_predictions
from scripts.report.sweep_figure import draw_panels, panel

STYLE = (
    "body{font:14px sans-serif;margin:2em;max-width:1200px}table{border-collapse:collapse}img{max-width:100%}"
    "td,th{padding:3px 8px;border-bottom:1px solid #ddd;text-align:right}td:first-child,th:first-child{text-align:left}"
)
Report = Mapping[str, Any]
Cells = dict[str, list[tuple[Path, Report]]]


def cells_of(runs: Sequence[tuple[Path, Report]]) -> Cells:
    """Return the runs by what they share: all but the seed."""
    cells: Cells = {}
    for folder, report in runs:
        cells.setdefault(report["run"].rpartition("/")[0], []).append((folder, report))
    return cells


def best_cell(cells: Cells) -> str:
    """Return the cell with the best mean validation score, of those that were selected by the first one's metric."""
    metric = next(iter(cells.values()))[0][1]["selection"]
    means = {name: _mean(mine, metric) for name, mine in cells.items() if mine[0][1]["selection"] == metric}
    sign = 1 if lower_is_better(metric) else -1
    return min(means, key=lambda name: math.inf if math.isnan(means[name]) else sign * means[name])


def rows_of(cells: Cells) -> list[dict[str, str]]:
    """Return a row a cell: what it is, how many seeds, mean and standard deviation of its scores, its verdict."""
    rows = []
    for mine in cells.values():
        first = mine[0][1]
        options = " ".join(f"{key}={value}" for key, value in first["options"].items())
        row = {key: str(first[key]) for key in ("dataset", "method", "preset")} | {"options": options}
        row |= {"seeds": " ".join(str(r["seed"]) for _, r in mine)}
        for split in ("val", "test"):
            for metric in first["scores"][split]:
                found = summarise([r["scores"][split].get(metric, math.nan) for _, r in mine])
                row[f"{split} {metric}"] = f"{found.mean:.4g}" + (f" ± {found.std:.2g}" if found.n > 1 else "")
        rows.append(row | {"verdict": first["verdict"], "commit": str(first.get("commit", ""))[:8]})
    return rows


def curves(cells: Cells) -> Figure:
    """Draw the score that selects checkpoints over epochs, the mean over seeds, a line a cell."""
    figure = Figure(figsize=(9, 4.5))
    axis = figure.subplots()
    for name, mine in cells.items():
        column = f"val_{mine[0][1]['selection']}"
        seeds = [[float(row[column]) for row in _history(folder)] for folder, _ in mine]
        length = min(map(len, seeds))
        mean = [sum(seed[k] for seed in seeds) / len(seeds) for k in range(length)]
        axis.plot(range(1, length + 1), mean, label=name.split("/", 1)[-1][-70:], linewidth=1.2)
    axis.set(xlabel="epoch", ylabel="validation score that selects checkpoints", title="curves, mean over seeds")
    axis.grid(alpha=0.3)
    if len(cells) <= 12:
        axis.legend(fontsize=7)
    figure.tight_layout()
    return figure


def page(runs: Sequence[tuple[Path, Report]], swept: Sequence[Collected]) -> str:
    """Return the page: a table of the runs, their curves, the sweep, and the best run's predictions.

    Args:
        runs: folder and report of each.
        swept: the same runs over the values of an option, if they differ in one.
    """
    cells = cells_of(runs)
    rows = rows_of(cells)
    head = list(dict.fromkeys(key for row in rows for key in row))
    body = [_row("th", head), *(_row("td", [row.get(key, "") for key in head]) for row in rows)]
    parts = [
        f"<h1>{len(runs)} runs of {len(cells)} cells</h1>",
        f"<table>{''.join(body)}</table>",
        _image(curves(cells)),
    ]
    if swept:
        panels = {group.label: panel(group.points) for group in swept}
        label = f"test {swept[0].metric}, 95 % t band"
        parts += [f"<h2>Over {html.escape(swept[0].option)}</h2>"]
        parts.append(_image(draw_panels(panels, swept[0].option, label, "mean")))
    folder, report = cells[best_cell(cells)][0]
    if (folder / PREDICTIONS).is_file():
        ((_, parts_of_it),) = read_predictions(folder / PREDICTIONS).items()
        test = parts_of_it["test"]
        picture = draw_predictions(test.target, test.prediction[""], [report["unit"]], report["run"])
        parts += ["<h2>Predictions of the cell that is best on validation</h2>", _image(picture)]
    return f'<!doctype html><meta charset="utf-8"><title>Runs</title><style>{STYLE}</style>{"".join(parts)}\n'


def _mean(mine: Sequence[tuple[Path, Report]], metric: str) -> float:
    return math.fsum(report["scores"]["val"][metric] for _, report in mine) / len(mine)


def _history(folder: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(checked(folder / HISTORY).read_text().splitlines()))


def _row(tag: str, cells: Sequence[str]) -> str:
    return f"<tr>{''.join(f'<{tag}>{html.escape(cell)}</{tag}>' for cell in cells)}</tr>"


def _image(figure: Figure) -> str:
    return f'<p><img alt="figure" src="data:image/png;base64,{base64.b64encode(to_png(figure)).decode()}"></p>'
