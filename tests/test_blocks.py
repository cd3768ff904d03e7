"""The Python of README and docs/ runs as a user pastes it, each block alone, and prints what the page shows below it.

Those of the tutorial run after its first, and are the cells of the notebook.
"""

import contextlib
import importlib.util
import io
import json
import re
import runpy
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

ROOT = Path(__file__).resolve().parents[1]
MAKER = runpy.run_path(str(ROOT / "docs" / "notebook.py"), run_name="notebook")
PAGE = (ROOT / "docs" / "tutorial.md").read_text()
NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?")
#: Where `needs` is before a block, the block runs only where this module is installed.
BLOCK = re.compile(
    r"(?:<!-- needs: (?P<needs>[\w.]+) -->\n)?```python\n(?P<code>.*?)```(?:\n\n```text\n(?P<output>.*?)```)?",
    re.DOTALL,
)


def blocks() -> Iterator[Any]:
    """Every block, by its page and its number there."""
    for path in (ROOT / "README.md", *sorted(set((ROOT / "docs").glob("*.md")) - {ROOT / "docs" / "tutorial.md"})):
        for number, block in enumerate(BLOCK.finditer(path.read_text())):
            absent = block["needs"] is not None and not is_installed(block["needs"])
            yield pytest.param(
                block["code"], block["output"] or "", id=f"{path.relative_to(ROOT)}-{number}",
                marks=pytest.mark.skipif(absent, reason=f"needs {block['needs']}"),
            )  # fmt: skip


def is_installed(module: str) -> bool:
    parent = module.rpartition(".")[0]
    return (not parent or is_installed(parent)) and importlib.util.find_spec(module) is not None


@pytest.mark.parametrize(("code", "output"), [*blocks()])
def test_a_block_runs_alone_without_a_warning_and_prints_what_the_page_shows(code: str, output: str) -> None:
    printed = io.StringIO()
    with warnings.catch_warnings(), contextlib.redirect_stdout(printed):
        warnings.simplefilter("error")  # such as mse_loss's, of shapes that broadcast
        torch.manual_seed(0)
        exec(compile(code, "block", "exec"), {"__name__": "__main__"})  # noqa: S102 - our own pages
    assert printed.getvalue() == output


@pytest.mark.skipif(not is_installed("sklearn"), reason="needs sklearn")
def test_the_notebook_is_made_from_the_page_and_its_cells_print_what_the_page_shows() -> None:
    notebook = (ROOT / "examples" / "tutorial.ipynb").read_text()
    assert notebook == MAKER["make_notebook"](PAGE, MAKER["read_address"]())
    code = [cell["source"] for cell in json.loads(notebook)["cells"] if cell["cell_type"] == "code"]
    install, *cells = map("".join, code)
    assert "git+" not in MAKER["write_install"]("")  # an address is never invented
    blocks = [block[2] for block in MAKER["CODE"].finditer(PAGE)]
    assert len(cells) == len(blocks) >= 3
    names = {"__name__": "__main__"}
    exec(compile(install, "install", "exec"), names)  # noqa: S102 - our own page; does nothing where cmixup imports
    for number, (code, text) in enumerate(zip(cells, blocks, strict=True)):
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(code, "cell", "exec"), dict(names) if number else names)  # noqa: S102
        assert NUMBER.sub("#", printed.getvalue()) == NUMBER.sub("#", text)
        pairs = zip(NUMBER.findall(printed.getvalue()), NUMBER.findall(text), strict=True)
        for ours, page in pairs:  # other processors round differently, and training amplifies that
            assert float(ours) == pytest.approx(float(page), rel=0.03, abs=1.0)
