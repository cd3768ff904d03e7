"""What a table that is fitted may hide, said as warnings: leaking columns, row numbers and labels far outside."""

from __future__ import annotations

import warnings
from collections.abc import Sequence

import numpy as np

from cmixup.sampling.inputs import Floats
from cmixup.sklearn.columns import Levels
from cmixup.table_checks import MIN_ROWS, NEARLY, far_labels, leak_score, looks_like_id

#: Columns times outputs that are looked at, at most: a millisecond or two each.
MOST_LOOKS = 200
MOST_NAMED = 8  # rows in a warning


def warn_of_traps(x: Floats, y: Floats, levels: Sequence[Levels], names: Sequence[object]) -> None:
    """Warn of what `cmixup.table_checks` finds, a line each; nothing is left out because of it.

    Args:
        x: (N, d) columns in the order of the table, NaN for gaps and the numbers of levels for categories.
        y: (N, d_y) labels, NaN where one is missing.
        levels: of the columns.
        names: of the columns, or their positions.
    """
    n, d = x.shape
    if n < MIN_ROWS or d * y.shape[1] > MOST_LOOKS:
        return
    for place, own in enumerate(levels):
        column, said = x[:, place], f"column {names[place]} of X"
        scores = [leak_score(column[known], y[known, output], levels=own is not None) for output, known in _known(y)]
        if d > 1 and max(scores) >= NEARLY:
            _warn(f"{said} alone predicts y nearly (rank correlation {max(scores):.3f}): leave it out if it is known "
                  "only once y is")  # fmt: skip
        elif d > 1 and own is None and looks_like_id(column):
            _warn(f"{said} looks like an ID (nearly as many whole numbers as rows): leave it out if it numbers them")
    for output, known in _known(y):
        if known.sum() < MIN_ROWS:
            continue
        rows = np.flatnonzero(known)[far_labels(y[known, output])]
        if len(rows):
            each = ", ".join(f"{row} ({y[row, output]:g})" for row in rows[:MOST_NAMED])
            more = f" and {len(rows) - MOST_NAMED} more" if len(rows) > MOST_NAMED else ""
            _warn(f"y lies far outside in rows {each}{more}: mend them if these are mistakes, or fit its logarithm")


def _known(y: Floats) -> list[tuple[int, np.ndarray]]:
    """Return each output's place and the rows that have its label."""
    return [(output, ~np.isnan(labels)) for output, labels in enumerate(y.T)]


def _warn(text: str) -> None:
    warnings.warn(text, UserWarning, stacklevel=5)  # of the caller of `fit`
