"""Write examples/tutorial.ipynb from docs/tutorial.md: `python docs/notebook.py`.

Prose becomes Markdown cells and Python blocks become code cells; the output shown on the page is left out, since the
notebook makes its own. The first cell installs cmixup where it is missing, from the address in `[project.urls]`.
"""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PAGE, NOTEBOOK = ROOT / "docs" / "tutorial.md", ROOT / "examples" / "tutorial.ipynb"
CODE = re.compile(r"```python\n(.*?)```(?:\n\n```text\n(.*?)```)?", re.DOTALL)


def write_install(address: str) -> str:
    """Return the code of the first cell: it does nothing where cmixup can be imported."""
    source = f"git+{address}" if address else ""
    install = (
        f'    get_ipython().run_line_magic("pip", "install --quiet \\"cmixup[sklearn] @ {source}\\"")'
        if source
        else "    raise SystemExit(\"install it in a checkout first: pip install '.[sklearn]'\") from None"
    )
    return f"try:\n    import cmixup\nexcept ImportError:\n{install}"


def make_notebook(page: str, address: str = "") -> str:
    """Return the notebook of a page as JSON text.

    page: Markdown with Python blocks, in the order in which they run.
    address: of the repository; empty where it has none yet.
    """
    cells = [make_cell("code", write_install(address))]
    place = 0
    for block in CODE.finditer(page):
        cells += [make_cell("markdown", page[place : block.start()]), make_cell("code", block[1])]
        place = block.end()
    cells.append(make_cell("markdown", page[place:]))
    for number, cell in enumerate(cells):
        cell["id"] = f"cell-{number}"
    language = {"display_name": "Python 3", "language": "python", "name": "python3"}
    whole = {"cells": cells, "metadata": {"kernelspec": language}, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def make_cell(kind: str, text: str) -> dict[str, object]:
    """Return a cell of a notebook, of kind `markdown` or `code`."""
    empty: dict[str, object] = {"execution_count": None, "outputs": []} if kind == "code" else {}
    return {"cell_type": kind, "metadata": {}, "source": text.strip().splitlines(keepends=True), **empty}


def read_address() -> str:
    """Return the repository's address of pyproject.toml, or "" where there is none."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    return str(project.get("urls", {}).get("Repository", ""))


if __name__ == "__main__":
    NOTEBOOK.write_text(make_notebook(PAGE.read_text(), read_address()))
