"""Tables on a terminal: of its width, with no number cut."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from rich import box
from rich.table import Table
from rich.text import Text

from scripts.driver.progress import Console

WIDE = 1000  # columns of what is no terminal: a file or a pipe takes lines of any length
GAP = 2  # columns between two of a table's


def width_here() -> int:
    """Return the columns of the terminal, or `WIDE` where standard output is none."""
    return Console().width if sys.stdout and sys.stdout.isatty() else WIDE


def parts_that_fit(widths: Sequence[int], width: int) -> list[list[int]]:
    """Return which columns stand together: the first in every part, the others in order, as many as fit.

    Args:
        widths: of every column.
        width: of the terminal; a column that does not fit beside the first is alone with it.
    """
    parts: list[list[int]] = []
    used = width + 1
    for k, size in enumerate(widths[1:], 1):
        if used + GAP + size > width:
            parts.append([0])
            used = widths[0]
        parts[-1].append(k)
        used += GAP + size
    return parts or [[0]]


def print_table(
    head: Sequence[str],
    rows: Sequence[Sequence[str]],
    title: str = "",
    *,
    left: int = 1,
    styles: Sequence[str | None] = (),
    width: int = 0,
) -> None:
    """Print a table in as many parts, one below the other, as the terminal's width asks for.

    Args:
        head: names of the columns.
        rows: cells, with rich's markup.
        title: printed once, above.
        left: how many columns, from the first, are aligned to the left; the others hold numbers.
        styles: of the rows.
        width: of the terminal; 0 asks for it.
    """
    width = width or width_here()
    columns = list(zip(head, *rows, strict=True))
    widths = [max(Text.from_markup(cell).cell_len for cell in column) for column in columns]
    for n, part in enumerate(parts_that_fit(widths, width)):
        name = title if n == 0 else f"{title} (continued)"
        grid = Table(title=name, title_justify="left", box=box.SIMPLE_HEAD, padding=(0, 1, 0, 0), pad_edge=False)
        for k in part:
            grid.add_column(head[k], justify="left" if k < left else "right", overflow="fold")
        for row, style in zip(rows, styles or [None] * len(rows), strict=True):
            grid.add_row(*(row[k] for k in part), style=style)
        Console(width=width, highlight=False).print(grid)
