"""The tutorial: each block runs alone after the first, prints what the page shows, and is a cell of the notebook."""

import contextlib
import io
import json
import re
import runpy

import pytest

pytest.importorskip("sklearn")
from tests.test_blocks import ROOT

MAKER = runpy.run_path(str(ROOT / "docs" / "notebook.py"), run_name="notebook")
PAGE = (ROOT / "docs" / "tutorial.md").read_text()
NUMBER = re.compile(r"[+-]?\d+(?:\.\d+)?")


def test_the_notebook_is_made_from_the_page_and_its_cells_print_what_the_page_shows():
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
