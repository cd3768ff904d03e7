"""The room's rule: sampling works on arrays and knows nothing else of the library."""

import ast
from pathlib import Path

import pytest

REPO = Path(__file__).resolve().parents[2]
FILES = sorted((REPO / "cmixup" / "sampling").rglob("*.py"))


def imported(source: str) -> set[str]:
    """Every module that the source imports, in functions, too; `from a import b` counts as "a.b"."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            found |= {f"{'.' * node.level}{node.module or ''}.{alias.name}" for alias in node.names}
    return found


def strangers(source: str) -> set[str]:
    """The imported modules that the room may not know."""
    allowed = ("cmixup.errors.", "cmixup.sampling.")
    return {m for m in imported(source) if f"{m}.".startswith(("cmixup.", ".")) and not f"{m}.".startswith(allowed)}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_sampling_imports_nothing_of_the_library_but_errors_and_itself(path):
    assert strangers(path.read_text()) == set()


def test_the_rule_sees_every_form_of_import():
    source = "\n".join(
        [
            "import numpy, cmixup",
            "import cmixup.errors, cmixup.data",
            "from cmixup import errors, sampling, order",
            "from cmixup.errors import InputError",
            "from cmixup.sampling.inputs import Floats",
            "from . import tasks",
            "def f():\n    from cmixup.data import Split",
        ]
    )
    assert strangers(source) == {"cmixup", "cmixup.data", "cmixup.order", "..tasks", "cmixup.data.Split"}
