"""The pictures of docs/bandwidth.md, drawn by the code above each."""

from __future__ import annotations

import contextlib
import re

from matplotlib import pyplot
from matplotlib.figure import Figure

from scripts.records.experiment import RESULTS
from scripts.records.register import draws

ROOT = RESULTS.parent
DRAWN = re.compile(r"```python\n((?:(?!```).)*?)```\n\n!\[[^]]*\]\((figures/[\w.]+)\)", re.DOTALL)


@draws
def doc_figures() -> dict[str, Figure]:
    """Return what a block of the page calls `figure`, by the path of the picture below it, below results/."""
    figures = {}
    with contextlib.chdir(ROOT):
        for code, path in DRAWN.findall((ROOT / "docs" / "bandwidth.md").read_text()):
            block: dict[str, Figure] = {}
            exec(compile(code, path, "exec"), block)  # noqa: S102 - our own page
            figures[path] = block["figure"]
            pyplot.close(block["figure"])
    return figures
