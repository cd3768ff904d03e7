"""Tables of our records beside the paper's numbers.

Ours is mean +- standard deviation over seeds (n - 1), the paper's is its own mean +- standard deviation over 3 seeds.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pandas as pd

from cmixup.metrics import lower_is_better
from scripts.records.names import Titles
from scripts.records.records import select_records, values_by_seed
from scripts.stats.intervals import FEW, Interval, Summary, compare_methods, interval_text, summarise_values

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Score:
    """One method's score: ours, the paper's, both or neither.

    `decimals` is how many the paper prints.
    """

    ours: Summary | None = None
    paper: float | None = None
    paper_std: float | None = None
    decimals: int = 3
    best: bool = False

    @property
    def printed(self) -> Summary | None:
        """The paper's mean and standard deviation over 3 seeds."""
        std = math.nan if self.paper_std is None else self.paper_std
        return None if self.paper is None else Summary(self.paper, std, 3)

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's."""
        return None if self.ours is None or self.paper is None else self.ours.mean - self.paper

    @property
    def z(self) -> float | None:
        """Ours minus the paper's in standard errors of that difference; None where a spread is not known."""
        if self.ours is None or self.printed is None:
            return None
        error = math.sqrt(sum(side.std**2 / side.n for side in (self.ours, self.printed)))
        return (self.ours.mean - self.printed.mean) / error if error > 0 else None


@dataclass(frozen=True)
class Block:
    """The part of a table for one dataset.

    Attributes:
        compare: the method whose paired differences to the others are shown.
        cells: by method and metric, methods in the order of their rows.
        intervals: `compare` minus each other method, by method and metric.
        notes: what a reader must know.
        runs: the table of each method's runs below results/runs; none where it has no runs.
        titles: how all of them are printed.
    """

    dataset: str
    metrics: Sequence[str]
    cells: Mapping[str, Mapping[str, Score]]
    compare: str = ""
    intervals: Mapping[str, Mapping[str, Interval]] = field(default_factory=dict)
    notes: Sequence[str] = ()
    runs: Mapping[str, str] = field(default_factory=dict)
    titles: Titles = field(default_factory=Titles)


@dataclass(frozen=True)
class ResultTable:
    """A titled table of blocks; `notes` are on all of them, `missing` lists what is not in it and why.

    `epoch` is the one whose weights are scored.
    """

    title: str
    blocks: Sequence[Block]
    missing: Sequence[str] = ()
    notes: Sequence[str] = ()
    epoch: str = "of the best validation score"

    @property
    def legend(self) -> str:
        """What stands in its columns."""
        ours = (
            "Ours: mean ± standard deviation over n seeds (n - 1 in the denominator), test split, weights "
            f"{self.epoch}. Paper: its mean ± standard deviation over 3 seeds. Bold: best of ours, among the methods "
            "with the most seeds."
        )
        sentences = [ours]
        scores = [score for block in self.blocks for row in block.cells.values() for score in row.values()]
        if any(score.z is not None for score in scores):
            sentences.append(
                "z: ours minus the paper's, in standard errors of that difference, sqrt(se² + se²), where se is the "
                "standard deviation / sqrt(n), and n is 3 for the paper."
            )
        if any(block.intervals for block in self.blocks):
            sentences.append(
                "Minus it: paired difference over seeds, mean [95 % t interval], bold where that excludes 0."
            )
        return " ".join(sentences)


def make_block(
    records: pd.DataFrame,
    paper: Sequence[Row],
    *,
    dataset: str,
    methods: Sequence[str],
    metrics: Sequence[str],
    compare: str,
    titles: Titles,
    notes: Sequence[str] = (),
) -> Block:
    """Gather one dataset's part of a table.

    Args:
        records: of one experiment and preset.
        paper: its rows, from `scripts.records.experiment.paper_rows`; of two for one cell the first counts.
        dataset, methods, metrics: our spellings; one row a method, one group of columns a metric.
        compare: the method whose paired differences to the others are computed.
        titles, notes: passed on.
    """
    mine = select_records(records, dataset=dataset, split="test")
    groups = mine.groupby(["metric", "method"], sort=False).indices
    values = {
        metric: {m: values_by_seed(mine.iloc[groups.get((metric, m), [])], {"method": m}) for m in methods}
        for metric in metrics
    }
    compared = {
        metric: compare_methods(values[metric], compare, lower_is_better=lower_is_better(metric)) for metric in metrics
    }
    printed = {(r["method"], r["metric"]): r for r in reversed(paper) if r["dataset"] == dataset}
    cells: dict[str, dict[str, Score]] = {method: {} for method in methods}
    for metric, comparison in compared.items():
        for method in methods:
            row, ours = printed.get((method, metric)), comparison.summaries.get(method)
            best = method == comparison.best and "ci95" not in metric  # the width of an interval is no score to win by
            cells[method][metric] = Score(ours, best=best) if row is None else Score(
                ours, float(row["mean"]), float(row["std"]) if row["std"] else None,
                len(str(row["mean"]).partition(".")[2]), best,
            )  # fmt: skip
    intervals = {m: {s: of.intervals[m] for s, of in compared.items() if m in of.intervals} for m in methods}
    places = dict(zip(mine["method"], mine["experiment"], strict=True))
    runs = {method: f"{place}/{dataset}.csv" for method, place in places.items()}
    if 0 < max((len(v) for of in values.values() for v in of.values()), default=0) < FEW:
        few = f"Fewer than {FEW} seeds: no method is marked as the best, and no interval over them is printed."
        notes = [*notes, few]
    return Block(dataset, metrics, cells, compare, {m: of for m, of in intervals.items() if of}, notes, runs, titles)


def summary_text(summary: Summary | None, decimals: int) -> str:
    """Return mean ± standard deviation, the mean alone without one, and a dash without values."""
    if summary is None:
        return "—"
    return f"{summary.mean:.{decimals}f}" + ("" if math.isnan(summary.std) else f" ± {summary.std:.{decimals}f}")


def mean_text(values: Mapping[int, float], decimals: int = 3) -> str:
    """Return `summary_text` of values by seed."""
    return summary_text(summarise_values(list(values.values())) if values else None, decimals)


def ours_text(cell: Score) -> str:
    """Return our mean ± std, or a dash."""
    return summary_text(cell.ours, cell.decimals)


def paper_text(cell: Score) -> str:
    """Return the paper's mean ± std, or a dash."""
    return summary_text(cell.printed, cell.decimals)


def difference_text(cell: Score) -> str:
    """Return ours minus the paper's with its sign, or a dash."""
    return "—" if cell.difference is None else f"{cell.difference:+.{cell.decimals}f}"


def table_page(table: ResultTable, *, linked: bool = False) -> str:
    """Return the whole table as Markdown, a table for each dataset and metric.

    Args:
        table: which.
        linked: whether methods lead to their runs, as they do on the published page.
    """
    parts = [f"## {table.title}", "", table.legend]
    for block in table.blocks:
        parts += ["", f"### {block.titles.datasets.get(block.dataset, block.dataset)}"]
        for metric in block.metrics:
            head, rows = metric_rows(block, metric)
            for method, row in zip(block.cells, rows, strict=True):
                if linked and method in block.runs:
                    row[0] = f"[{row[0]}](../runs/{block.runs[method]})"
            parts += ["", *markdown_rows(head, rows)]
        for note in block.notes:
            parts += ["", note]
    for note in table.notes:
        parts += ["", note]
    if table.missing:
        parts += ["", "### Not in this table", "", *(f"- {line}" for line in table.missing)]
    return "\n".join(parts) + "\n"


def metric_rows(block: Block, metric: str) -> tuple[list[str], list[list[str]]]:
    """Return the head and the rows of one metric: ours, the paper's and z where it has any, and paired differences."""
    cells = {method: scores[metric] for method, scores in block.cells.items()}
    pairs = {method: intervals[metric] for method, intervals in block.intervals.items() if metric in intervals}
    printed, titles = any(cell.paper is not None for cell in cells.values()), block.titles
    head = ["method", "n", f"{titles.metrics.get(metric, metric)} ours"] + ["paper", "ours - paper", "z"] * printed
    if pairs:
        n = max(interval.n for interval in pairs.values())
        head.append(f"{titles.methods.get(block.compare, block.compare)} minus it, n = {n}")
    rows = []
    for method, cell in cells.items():
        ours = f"**{ours_text(cell)}**" if cell.best else ours_text(cell)
        row = [titles.methods.get(method, method), str(cell.ours.n) if cell.ours else "—", ours]
        row += [paper_text(cell), difference_text(cell), z_text(cell)] if printed else []
        row += [interval_text(pairs.get(method), cell.decimals, bold=True)] if pairs else []
        rows.append(row)
    return head, rows


def z_text(cell: Score) -> str:
    """Return z with its sign, or a dash."""
    return "—" if cell.z is None else f"{cell.z:+.1f}"


def markdown_rows(head: Sequence[str], body: Sequence[Sequence[str]], left: int = 1) -> list[str]:
    """Return a Markdown table, its first columns left, the others right; cells on the right do not wrap on the site."""
    rule = [*["---"] * left, *["---:"] * (len(head) - left)]
    return [f"| {' | '.join(row)} |" for row in (head, rule, *body)]


def to_table_csv(table: ResultTable) -> str:
    """Return the table as CSV, one row a dataset, method and metric."""
    rows = [
        {
            "dataset": block.dataset,
            "method": method,
            "metric": metric,
            "n": cell.ours.n if cell.ours else 0,
            "mean": cell.ours.mean if cell.ours else None,
            "std": cell.ours.std if cell.ours else None,
            "paper_mean": cell.paper,
            "paper_std": cell.paper_std,
            "difference": cell.difference,
            "best": cell.best,
        }
        for block in table.blocks
        for method, cells in block.cells.items()
        for metric, cell in cells.items()
    ]
    return pd.DataFrame(rows).to_csv(index=False, lineterminator="\n")
