"""Tables of our records beside the paper's numbers.

Ours is mean +- standard deviation over seeds (n - 1), the paper's is its own mean +- standard deviation over 3 seeds.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import pandas as pd

from cmixup.metrics import metric_of
from scripts.records import names
from scripts.records.csv_rows import to_csv
from scripts.records.run_tables import by_seed
from scripts.stats.intervals import (
    FEW,
    Interval,
    Summary,
    interval_text,
    paired_or_none,
    summarise_values,
    welch_interval,
)

CSV_COLUMNS = (
    "dataset", "method", "metric", "n", "mean", "std", "paper_mean", "paper_std", "difference", "best",
    "difference_low", "difference_high", "compare", "minus_it", "minus_it_low", "minus_it_high", "minus_it_n",
)  # fmt: skip


@dataclass(frozen=True)
class Score:
    """One method's score: ours, the paper's (over 3 seeds), both or neither."""

    ours: Summary | None = None
    paper: Summary | None = None
    decimals: int = 3  # that the paper prints
    best: bool = False
    pair: Interval | None = None  # the compared method minus this one, over the seeds that both have

    @property
    def difference(self) -> float | None:
        """Ours minus the paper's."""
        return self.ours.mean - self.paper.mean if self.ours and self.paper else None

    @property
    def interval(self) -> Interval | None:
        """Ours minus the paper's with Welch's 95 % t interval, where both spreads are known."""
        return welch_interval(self.ours, self.paper) if self.ours and self.paper else None

    @property
    def difference_text(self) -> str:
        """Ours minus the paper's, with its interval where it has one, bold if that excludes 0."""
        if interval := self.interval:
            return interval_text(interval, self.decimals, bold=True)
        return "—" if self.difference is None else f"{self.difference:+.{self.decimals}f}"


@dataclass(frozen=True)
class Block:
    """The part of a table for one dataset."""

    dataset: str
    metrics: Sequence[str]  # what its page shows
    # by method, in the order of rows, and metric; the CSV file has further ones
    cells: Mapping[str, Mapping[str, Score]]
    compare: str = ""  # the method whose paired differences to the others are shown
    notes: Sequence[str] = ()
    runs: Mapping[str, str] = field(default_factory=dict)  # the table of a method's runs below results/runs


@dataclass(frozen=True)
class ResultTable:
    """A titled table of blocks."""

    title: str
    blocks: Sequence[Block]
    missing: Sequence[str] = ()  # cells that are not in it, and why
    notes: Sequence[str] = ()
    epoch: str = "of the best validation score"  # whose weights are scored
    preset: str = "paper"
    about: str = ""  # how runs of the preset differ from the paper's


def make_block(
    runs: pd.DataFrame, paper: Sequence[Mapping[str, str]], *, dataset: str, methods: Sequence[str],
    metrics: Sequence[str], compare: str, notes: Sequence[str] = (), more: Sequence[str] = (),
) -> Block:  # fmt: skip
    """Gather one dataset's part of a table from the runs of an experiment and preset, and the paper's rows.

    Of two rows of the paper for one cell the first counts; `more` are metrics that the page does not show. The other
    arguments are those of `Block`.
    """
    dataset_runs = runs[runs["dataset"] == dataset]
    printed = {(r["method"], r["metric"]): r for r in reversed(paper) if r["dataset"] == dataset}
    cells: dict[str, dict[str, Score]] = {method: {} for method in methods}
    max_n = 0
    for metric in (*metrics, *more):
        values = {m: by_seed(dataset_runs[dataset_runs["method"] == m], f"test_{metric}") for m in methods}
        ours = {m: summarise_values(list(v.values())) for m, v in values.items() if v}
        n, sign = max(map(len, values.values()), default=0), 1 if metric_of(metric).lower_is_better else -1
        max_n = max(max_n, n)
        # Seeds differ more than methods: a mean over fewer of them could be best by an easy one. The width of an
        # interval is no score to win by.
        means = {m: sign * summary.mean for m, summary in ours.items()
                 if summary.n == n >= FEW and not math.isnan(summary.mean) and "ci95" not in metric}  # fmt: skip
        best = min(means, key=lambda m: means[m], default="")
        for method in methods:
            pair = paired_or_none(values.get(compare, {}), values[method]) if method != compare else None
            theirs, decimals = None, 3
            if row := printed.get((method, metric)):
                theirs = Summary(float(row["mean"]), float(row["std"] or math.nan), 3)
                decimals = len(row["mean"].partition(".")[2])
            pair = pair if pair and pair.n >= FEW else None
            cells[method][metric] = Score(ours.get(method), theirs, decimals, method == best, pair)
    if 0 < max_n < FEW:
        note = f"Fewer than {FEW} seeds: no method is marked as the best, and no interval over them is printed."
        notes = [*notes, note]
    places = dict(zip(dataset_runs["method"], dataset_runs["experiment"], strict=True))
    files = {method: f"{place}/{dataset}.csv" for method, place in places.items()}
    return Block(dataset, metrics, cells, compare, notes, files)


def summary_text(summary: Summary | None, decimals: int) -> str:
    """Return mean ± standard deviation, the mean alone without one, and a dash without values."""
    if summary is None:
        return "—"
    return f"{summary.mean:.{decimals}f}" + ("" if math.isnan(summary.std) else f" ± {summary.std:.{decimals}f}")


def table_page(*tables: ResultTable, linked: bool = False) -> str:
    """Return the tables of an experiment as Markdown: a section a preset, in it a table a dataset.

    With `linked`, as on the published page, methods lead to their runs, and those without runs have no row. Of further
    scores it has that of the worst domain; the CSV file has all. The missing cells are the first table's.
    """
    legend = (
        f"Mean test score ± standard deviation over n seeds (the paper: 3), with the weights {tables[0].epoch}. Bold: "
        "our best of most seeds, and differences whose 95 % interval excludes 0 (from the paper by Welch, else paired)."
    )
    parts = [f"# {tables[0].title}", legend]
    for table in tables:
        parts += [f"## Preset {table.preset}", *([f"{table.about}."] if table.about else [])]
        for block in table.blocks:
            head, rows = block_rows(block, short=linked)
            absent = ", ".join(name for name, n, *_ in rows if linked and n == "—")
            for method, row in zip(block.cells, rows, strict=True):
                if linked and method in block.runs:
                    row[0] = f"[{row[0]}](../runs/{block.runs[method]})"
            rows = [row for row in rows if not (linked and row[1] == "—")]
            parts += [f"### {names.dataset_title(block.dataset)}", markdown_table(head, rows), *block.notes]
            parts += [f"Not trained: {absent}."] if absent else []
    return markdown_page(*parts, *tables[0].notes, *missing_part(tables[0].missing))


def missing_part(missing: Sequence[str]) -> list[str]:
    """Return the part of a page on missing cells; none where nothing is missing."""
    return ["### Not in this table", bullets(missing)] if missing else []


def block_rows(block: Block, *, short: bool = False) -> tuple[list[str], list[list[str]]]:
    """Return head and rows: of each metric ours and the paper's, where it has any, and of the first the differences.

    With `short` a further metric has a column only if it is of the worst domain, and where the paper prints it.
    """
    first, head = block.metrics[0], ["method", "n"]
    cells = [scores[first] for scores in block.cells.values()]
    rows = [[names.method_title(m), str(c.ours.n) if c.ours else "—"] for m, c in zip(block.cells, cells, strict=True)]
    for metric in block.metrics:
        printed = any(scores[metric].paper for scores in block.cells.values())
        pairs = [scores[metric].pair for scores in block.cells.values()] if metric == first else []
        if short and metric != first and not (printed and metric.startswith("worst")):
            continue
        head += [f"{names.metric_title(metric)} ours", *["paper"] * printed]
        head += ["ours - paper"] * (printed and metric == first)
        if n := max((pair.n for pair in pairs if pair), default=0):
            head.append(f"{names.method_title(block.compare)} minus it, n = {n}")
        for row, scores in zip(rows, block.cells.values(), strict=True):
            cell = scores[metric]
            ours = summary_text(cell.ours, cell.decimals)
            row += [
                f"**{ours}**" if cell.best else ours, *[summary_text(cell.paper, cell.decimals)] * printed,
                *[cell.difference_text] * (printed and metric == first),
                *([interval_text(cell.pair, cell.decimals, bold=True)] if n else []),
            ]  # fmt: skip
    return head, rows


def markdown_table(head: Sequence[str], body: Sequence[Sequence[str]], left: int = 1) -> str:
    """Return a Markdown table, its first columns left, the others right; cells on the right do not wrap on the site."""
    rule = [*["---"] * left, *["---:"] * (len(head) - left)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, rule, *body))


def bullets(lines: Iterable[str]) -> str:
    """Return a Markdown list."""
    return "\n".join(f"- {line}" for line in lines)


def markdown_page(*parts: str) -> str:
    """Return the parts of a page with a blank line between them."""
    return "\n\n".join(parts) + "\n"


def to_table_csv(table: ResultTable) -> str:
    """Return the table as CSV, one row a dataset, method and metric, with the 95 % intervals of its differences."""
    rows = []
    for block in table.blocks:
        for method, cells in block.cells.items():
            for metric, cell in cells.items():
                n, mean, std = (cell.ours.n, cell.ours.mean, cell.ours.std) if cell.ours else (0, None, None)
                paper = (cell.paper.mean, cell.paper.std) if cell.paper else (None, None)
                gap, pair = cell.interval, cell.pair
                rows.append((
                    block.dataset, method, metric, n, mean, std, *paper, cell.difference, cell.best,
                    *(gap.low if gap else None, gap.high if gap else None), block.compare if pair else None,
                    *((pair.mean, pair.low, pair.high, pair.n) if pair else (None,) * 4),
                ))  # fmt: skip
    return to_csv(rows, CSV_COLUMNS)
