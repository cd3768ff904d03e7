"""Problems that features and labels may hide: leaking columns, row numbers, equal rows, labels far outside.

All are looked for in arrays, without a model, in time O(N log N) a column. The thresholds were set so that the 30
tables of the study raise no more than two false alarms while planted faults are found
(`tests/datasets/test_table_problems.py`).
"""

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from cmixup.sampling.inputs import Floats, Ints

#: From this rank correlation on a column predicts the label nearly.
NEARLY = 0.99
#: Fewer known rows than these say nothing, and more are not looked at.
MIN_ROWS, MOST_ROWS = 30, 4000
PIECES = 64  # of a column of numbers; the tree that is tried has as many leaves
#: Share of the rows that differ from all others, from which on whole numbers may be an ID.
DIFFERENT = 0.9
#: A label lies far outside from so many interquartile ranges off the quartiles on (for normal labels 6 standard
#: deviations off the mean), if none lies within one such range of it on the way in.
FAR, GAP = 4.0, 1.0
MOST_FAR = 0.01  # of the rows; more are a part of the labels
MOST_NAMED = 8  # rows in a line


def leaks(columns: Mapping[Any, Floats], y: Floats, levels: Collection[Any]) -> dict[Any, tuple[int, float]]:
    """Return the columns (N,) that alone predict one of the labels (N, d_y) nearly: which, and how well (`leak_score`).

    NaN is a gap; `levels` names the columns that hold codes of categories.
    """
    leaking = {}
    for name, column in columns.items() if len(columns) > 1 else ():
        scores = [leak_score(column, labels, levels=name in levels) for labels in y.T]
        if max(scores) >= NEARLY:
            leaking[name] = (int(np.argmax(scores)), max(scores))
    return leaking


def far_rows(labels: Floats, names: Any) -> str:
    """Return the rows of `far_labels`, called by `names`, in words, with their labels; nothing if there are none."""
    known = np.flatnonzero(~np.isnan(labels))
    rows = known[far_labels(labels[known])]
    others = f" and {len(rows) - MOST_NAMED} more" if len(rows) > MOST_NAMED else ""
    return ", ".join(f"{names[row]} ({labels[row]:g})" for row in rows[:MOST_NAMED]) + others


def leak_score(values: Floats, labels: Floats, *, levels: bool = False) -> float:
    """Return how well one column alone predicts a label: 0 not at all, 1 perfectly.

    This is the larger of two rank correlations (Spearman's, in absolute value): of the column with the label, and, in
    one half of the rows, of the label with a tree of 64 leaves that is fitted to the other half. Codes of categories
    have no order: each is a leaf. Rows with a gap are left out.
    """
    rows = np.flatnonzero(~(np.isnan(values) | np.isnan(labels)))
    if len(rows) < MIN_ROWS:
        return 0.0
    order = np.random.default_rng(0).permutation(len(rows))[:MOST_ROWS]
    values, labels = values[rows[order]], labels[rows[order]]
    half = len(values) // 2
    if levels:
        leaf = np.unique(values, return_inverse=True)[1]
    else:
        leaf = np.searchsorted(np.unique(np.quantile(values[:half], np.arange(1, PIECES) / PIECES)), values)
    count = np.bincount(leaf[:half], minlength=leaf.max() + 1)
    sums = np.bincount(leaf[:half], labels[:half], minlength=leaf.max() + 1)
    means = np.where(count > 0, sums / np.maximum(count, 1), labels[:half].mean())
    tree_correlation = rank_correlation(means[leaf[half:]], labels[half:])
    return max(tree_correlation, 0.0 if levels else abs(rank_correlation(values, labels)))


def rank_correlation(first: Floats, second: Floats) -> float:
    """Return Spearman's rank correlation of two columns (N,), 0 if one of them is constant."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.nan_to_num(np.corrcoef(_ranks(first), _ranks(second))[0, 1]))


def looks_like_id(values: Floats, *, named: bool = False, rows: int = MIN_ROWS, different: float = DIFFERENT) -> bool:
    """Return whether a column of numbers looks as if it numbered the rows, though some rows may be given twice.

    It holds whole numbers in so many `rows` or more, and a share `different` of them differs. They rise or fall from
    row to row, or fill their range at least by half; in a column `named` like an ID any such numbers do.
    """
    known = values[~np.isnan(values)]
    if len(known) < rows or not (known == np.floor(known)).all():
        return False
    steps, count = np.diff(known), len(np.unique(known))
    if count < different * len(values):
        return False
    dense = known.max() - known.min() < 2 * count
    return bool(named or dense or (steps >= 0).all() or (steps <= 0).all())


def far_labels(labels: Floats) -> Ints:
    """Return the rows, in order, of labels (N,) beyond `FAR` that a gap parts from the others on their side.

    Labels above 0 lie so by their logarithms, too: large prices are no mistakes where prices span orders of magnitude.
    """
    far = np.full(len(labels), len(labels) >= MIN_ROWS)
    for values in [labels, np.log(labels)] if far.any() and labels.min() > 0 else [labels]:
        (low, high), outlying = np.quantile(values, (0.25, 0.75)), np.zeros(len(labels), dtype=bool)
        for excess in (values - high, low - values):
            distance = excess / (high - low or np.inf)
            ascending = np.sort(distance)
            ends = ascending[1:][(np.diff(ascending) >= GAP) & (ascending[1:] >= FAR)]
            side = distance >= np.append(ends, np.inf)[0]
            outlying |= side & (side.sum() <= max(1, MOST_FAR * len(labels)))
        far &= outlying
    return np.flatnonzero(far)


def _ranks(values: Floats) -> Floats:
    """Return the ranks of a column (N,), those of equal values averaged."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    return (np.cumsum(count) - (count - 1) / 2)[place]
