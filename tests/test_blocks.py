"""The Python of README and docs/ runs as a user pastes it, each block alone, and prints what the page shows below it.

Those of the tutorial run in their order: see test_tutorial.py.
"""

import contextlib
import importlib.util
import io
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import torch

ROOT = Path(__file__).resolve().parents[1]
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
