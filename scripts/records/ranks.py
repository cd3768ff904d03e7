"""Mean rank of each method over datasets."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pandas as pd

from cmixup.metrics import lower_is_better
from scripts.records import names
from scripts.records.tables import Block


def ranks_beside_paper(blocks: Sequence[Block], metric: str) -> tuple[list[str], dict[str, float], dict[str, float]]:
    """Return the datasets that have every method's score, ours and the paper's, and the mean ranks of both over them.

    Methods that the paper has on no dataset do not count. The best score has rank 1; equal scores share the mean of
    their ranks.

    Args:
        blocks: one a dataset.
        metric: by which.
    """
    blocks = [block for block in blocks if metric in block.metrics]
    methods = [
        m
        for m in (blocks[0].cells if blocks else ())
        if any(m in b.cells and b.cells[m][metric].paper is not None for b in blocks)
    ]
    whole = [b for b in blocks if all(m in b.cells and b.cells[m][metric].difference is not None for m in methods)]
    cells = [[block.cells[m][metric] for m in methods] for block in whole]
    ours, paper = ([[s.mean for c in row if (s := getattr(c, of))] for row in cells] for of in ("ours", "printed"))
    shown = [block.dataset for block in whole] if methods else []
    return shown, _mean(methods, ours, metric), _mean(methods, paper, metric)


def _mean(methods: Sequence[str], scores: list[list[float]], metric: str) -> dict[str, float]:
    if not scores or not methods:
        return {}
    sign = 1 if lower_is_better(metric) else -1
    ranks = pd.DataFrame(sign * np.array(scores), columns=list(methods)).rank(axis=1, na_option="bottom")
    return {str(method): float(mean) for method, mean in ranks.mean().items()}


def rank_lines(blocks: Sequence[Block], metric: str) -> list[str]:
    """Return a sentence on the mean ranks; nothing with one method, or fewer than two datasets that have every one."""
    datasets, ours, paper = ranks_beside_paper(blocks, metric)
    if len(datasets) < 2 or len(ours) < 2:
        return []
    parts = [f"{names.method_title(m)} {ours[m]:.1f} ({paper[m]:.1f})" for m in sorted(ours, key=ours.__getitem__)]
    shown = ", ".join(names.dataset_title(d) for d in datasets)
    by = names.metric_title(metric)
    return [f"Mean rank by {by} over {shown}, 1 is best (the paper's in parentheses): {'; '.join(parts)}."]
