"""What reproduces: ours, the paper's and the authors' own code side by side, with a verdict by rule."""

from __future__ import annotations

import math
from pathlib import Path

import pandas as pd

from cmixup.stats import Summary, summarise
from scripts.report import names
from scripts.report.records import by_seed, read_csv
from scripts.report.tables import Table, markdown_rows

RULE = (
    "Agrees: ours and the paper's mean differ by at most two standard errors, 2 sqrt(std²/n + paper std²/3). "
    "Authors' code: their release run by us on seeds 0 to 2 (results/paper/original_rerun.csv), mean ± std; beside it "
    "our runs of the same seeds."
)


def agreement_lines(table: Table, records: pd.DataFrame, preset: str, results: Path) -> list[str]:
    """Return a Markdown table a dataset, for test RMSE.

    Args:
        table: Table 1 of one preset.
        records: what it was made from.
        preset: its preset.
        results: the folder results/.
    """
    rerun = read_csv(results / "paper" / "original_rerun.csv")
    parts = [RULE]
    for block in table.blocks:
        body = []
        for method, cells in block.cells.items():
            cell = cells["rmse"]
            if cell.ours is None or cell.paper is None:
                continue
            d = cell.decimals
            own = by_seed(
                records, experiment="table1", preset=preset, dataset=block.dataset, method=method, metric="rmse"
            )
            theirs = {
                int(r["seed"]): float(r["test_rmse"])
                for r in rerun
                if r["dataset"] == block.dataset and r["method"] == method
            }
            same = [own[s] for s in theirs if s in own]
            body.append(
                [
                    names.method_title(method),
                    _text(Summary(cell.paper, cell.paper_std or math.nan, 3), d),
                    _text(cell.ours, d),
                    _verdict(cell.ours, cell.paper, cell.paper_std),
                    _text(summarise(list(theirs.values())), d) if theirs else "—",
                    _text(summarise(same), d) if same else "—",
                ]
            )
        n = max(c["rmse"].ours.n for c in block.cells.values() if c["rmse"].ours)
        head = [names.dataset_title(block.dataset), "paper", f"ours, n = {n}", "verdict",
                "authors' code, n = 3", "ours, same seeds"]  # fmt: skip
        parts += ["", *markdown_rows(head, body)]
    return parts


def _text(value: Summary, decimals: int) -> str:
    if math.isnan(value.std):
        return f"{value.mean:.{decimals}f} (n = 1)"
    return f"{value.mean:.{decimals}f} ± {value.std:.{decimals}f}"


def _verdict(ours: Summary, paper: float, paper_std: float | None) -> str:
    if ours.n < 2:
        return "one seed: none"
    error = math.sqrt(ours.std**2 / ours.n + (paper_std or 0) ** 2 / 3)
    if abs(ours.mean - paper) <= 2 * error:
        return "agrees"
    return "ours is higher" if ours.mean > paper else "ours is lower"
