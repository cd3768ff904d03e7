"""The pictures of docs/gallery.md, drawn by the code that the page shows above each."""

from __future__ import annotations

import contextlib
import re

from matplotlib import pyplot
from matplotlib.figure import Figure

from scripts.records.experiment import RESULTS
from scripts.records.register import draws

ROOT = RESULTS.parent
DRAWN = re.compile(r"```python\n((?:(?!```).)*?)```\n\n!\[[^]]*\]\((figures/[\w.]+)\)", re.DOTALL)


@draws("docs/gallery.md", "cmixup", "results/curves", "results/runs", "results/predictions")
def gallery_figures() -> dict[str, Figure]:
    """Return what every block of the page calls `figure`, by the path of the picture below it, below results/."""
    found = {}
    with contextlib.chdir(ROOT):
        for code, path in DRAWN.findall((ROOT / "docs" / "gallery.md").read_text()):
            block: dict[str, Figure] = {}
            exec(compile(code, path, "exec"), block)  # noqa: S102 - our own page
            found[path] = block["figure"]
            pyplot.close(block["figure"])
    return found
