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
from scripts.records import names
from scripts.records.records import by_seed_or_none, select_records
from scripts.records.stats import Interval, Summary, paired_or_none, summarise_values

Row = Mapping[str, Any]
FEW = 3  # with fewer seeds no method is marked as the best and no interval over seeds is printed


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


@dataclass(frozen=True)
class Block:
    """The part of a table for one dataset.

    Attributes:
        compare: the method whose paired differences to the others are shown.
        cells: by method and metric, methods in the order of their rows.
        intervals: `compare` minus each other method, by method and metric.
        notes: what a reader must know.
        runs: the file of each method's runs below results/runs, without its ending; none where it has no runs.
    """

    dataset: str
    metrics: Sequence[str]
    cells: Mapping[str, Mapping[str, Score]]
    compare: str = ""
    intervals: Mapping[str, Mapping[str, Interval]] = field(default_factory=dict)
    notes: Sequence[str] = ()
    runs: Mapping[str, str] = field(default_factory=dict)


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
        return (
            "Ours: mean ± standard deviation over n seeds (n - 1 in the denominator), test split, weights "
            f"{self.epoch}. Paper: its mean ± standard deviation over 3 seeds. Bold: best of ours, among the methods "
            "with the most seeds."
        )


def make_block(
    records: pd.DataFrame,
    paper: Sequence[Row],
    *,
    dataset: str,
    methods: Sequence[str],
    metrics: Sequence[str],
    compare: str,
    notes: Sequence[str] = (),
) -> Block:
    """Gather one dataset's part of a table.

    Args:
        records: of one experiment and preset.
        paper: its rows, from `scripts.records.paper.paper_rows`.
        dataset, methods, metrics: our spellings; one row a method, one group of columns a metric.
        compare: the method whose paired differences to the others are computed.
        notes: passed on.
    """
    mine = select_records(records, dataset=dataset, split="test")
    values = {m: {s: by_seed_or_none(mine, method=m, metric=s) for s in metrics} for m in methods}
    # The width of an interval is no score to win by.
    best = {s: _best_methods({m: values[m][s] for m in methods}, s) for s in metrics if "ci95" not in s}
    cells = {
        m: {s: _make_cell(values[m][s], _paper_row(paper, dataset, m, s), m == best.get(s)) for s in metrics}
        for m in methods
    }
    intervals: dict[str, dict[str, Interval]] = {}
    for method in methods:
        pairs = {s: paired_or_none(values[compare][s], values[method][s]) for s in metrics} if compare in values else {}
        found = {s: one for s, one in pairs.items() if one and one.n >= FEW and method != compare}
        if found:
            intervals[method] = found
    places = dict(zip(mine["method"], mine["experiment"], strict=True))
    runs = {method: f"{place}/{dataset}/{method}" for method, place in places.items()}
    if 0 < max((len(scores[s]) for scores in values.values() for s in metrics), default=0) < FEW:
        notes = [
            *notes,
            f"Fewer than {FEW} seeds: no method is marked as the best, and no interval over them is printed.",
        ]
    return Block(dataset, metrics, cells, compare, intervals, notes, runs)


def _best_methods(values: Mapping[str, Mapping[int, float]], metric: str) -> str | None:
    most = max(map(len, values.values()), default=0)
    if most < FEW:
        return None
    # Seeds differ more than methods: a mean over fewer of them could be best by an easy one.
    means = {m: summarise_values(list(v.values())).mean for m, v in values.items() if len(v) == most}
    means = {m: mean for m, mean in means.items() if not math.isnan(mean)}  # a score that is none never beats a number
    if not means:
        return None
    lower = lower_is_better(metric)
    return min(means, key=lambda m: means[m] if lower else -means[m])


def _paper_row(paper: Sequence[Row], dataset: str, method: str, metric: str) -> Row | None:
    wanted = (dataset, method, metric)
    return next((r for r in paper if (r["dataset"], r["method"], r["metric"]) == wanted), None)


def _make_cell(values: Mapping[int, float], row: Row | None, best: bool) -> Score:
    ours = summarise_values(list(values.values())) if values else None
    if row is None:
        return Score(ours, best=best)
    text = str(row["mean"])
    decimals = len(text.partition(".")[2])
    return Score(ours, float(text), float(row["std"]) if row["std"] else None, decimals, best)


def summary_text(found: Summary | None, decimals: int) -> str:
    """Return mean ± standard deviation, the mean alone without one, and a dash without values."""
    if found is None:
        return "—"
    return f"{found.mean:.{decimals}f}" + ("" if math.isnan(found.std) else f" ± {found.std:.{decimals}f}")


def mean_text(values: Mapping[int, float], decimals: int = 3) -> str:
    """Return `summary_text` of values by seed."""
    return summary_text(summarise_values(list(values.values())) if values else None, decimals)


def interval_text(found: Interval | None, decimals: int = 3, *, bold: bool = False) -> str:
    """Return a mean with its interval, a dash without one; `bold` marks an interval that excludes 0."""
    if found is None:
        return "—"
    text = f"{found.mean:+.{decimals}f} [{found.low:+.{decimals}f}, {found.high:+.{decimals}f}]"
    return f"**{text}**" if bold and not found.low <= 0 <= found.high else text


def ours_text(cell: Score) -> str:
    """Return our mean ± std, or a dash."""
    return summary_text(cell.ours, cell.decimals)


def paper_text(cell: Score) -> str:
    """Return the paper's mean ± std, or a dash."""
    return summary_text(cell.printed, cell.decimals)


def difference_text(cell: Score) -> str:
    """Return ours minus the paper's with its sign, or a dash."""
    return "—" if cell.difference is None else f"{cell.difference:+.{cell.decimals}f}"


def block_header(block: Block) -> list[str]:
    """Return the column titles of a block."""
    columns: list[str] = []
    for metric in block.metrics:
        columns += [
            f"{names.metric_title(metric)} ours",
            *(["paper", "diff"] if _shown_columns(block, metric) else []),
        ]
    return ["method", "n", *columns]


def _shown_columns(block: Block, metric: str) -> bool:
    # What the paper does not have needs no columns for it.
    return any(cells[metric].paper is not None for cells in block.cells.values())


def block_lines(block: Block, bold: str = "{}") -> list[list[str]]:
    """Return a block's cells as text, one list a method; `bold` wraps the best of ours."""
    table = []
    for method, cells in block.cells.items():
        counts = {cell.ours.n for cell in cells.values() if cell.ours}
        row = [names.method_title(method), "/".join(map(str, sorted(counts))) or "—"]
        for metric, cell in cells.items():
            ours = ours_text(cell)
            row.append(bold.format(ours) if cell.best else ours)
            row += [paper_text(cell), difference_text(cell)] if _shown_columns(block, metric) else []
        table.append(row)
    return table


def interval_lines(block: Block) -> list[str]:
    """Return one sentence a metric: the paired differences of the block's `compare` to the other methods."""
    sentences = []
    for metric in block.metrics:
        parts = [
            f"{names.method_title(method)} {interval_text(found[metric], block.cells[method][metric].decimals)}"
            for method, found in block.intervals.items()
            if metric in found
        ]
        if parts:
            n = max(found[metric].n for found in block.intervals.values() if metric in found)
            sentences.append(
                f"{names.method_title(block.compare)} minus each other method, "
                f"{names.metric_title(metric)}, paired over {n} seeds, mean [95 % t interval]: "
                + "; ".join(parts)
                + "."
            )
    return sentences


def table_page(table: ResultTable, *, linked: bool = False) -> str:
    """Return the whole table as Markdown; the published one's methods are `linked` to their runs."""
    parts = [f"## {table.title}", "", table.legend]
    for block in table.blocks:
        parts += ["", f"### {names.dataset_title(block.dataset)}", ""]
        rows = block_lines(block, "**{}**")
        for method, row in zip(block.cells, rows, strict=True):
            if linked and method in block.runs:
                row[0] = f"[{row[0]}](../runs/{block.runs[method]}.jsonl)"
        parts += markdown_rows(block_header(block), rows)
        for sentence in (*interval_lines(block), *block.notes):
            parts += ["", sentence]
    for note in table.notes:
        parts += ["", note]
    if table.missing:
        parts += ["", "### Not in this table", "", *(f"- {line}" for line in table.missing)]
    return "\n".join(parts) + "\n"


def markdown_rows(head: Sequence[str], body: Sequence[Sequence[str]]) -> list[str]:
    """Return a Markdown table, its first column left, the others right."""
    rule = ["---", *["---:"] * (len(head) - 1)]
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
