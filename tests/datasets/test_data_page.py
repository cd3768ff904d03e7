"""docs/data.md has every licence and split of the code, read here from the classes of datasets/."""

import inspect
import re
from pathlib import Path

import pytest

from scripts.config.parts import dataset_class
from scripts.records.experiment import RESULTS

ROOT = RESULTS.parent
TEXT = (ROOT / "docs" / "data.md").read_text()
NAMES = re.findall(r"^\| \[`(\w+)`\]", TEXT, re.MULTILINE)


@pytest.mark.parametrize("name", NAMES)
def test_a_row_leads_to_the_class_and_has_its_split_and_licence(name: str) -> None:
    kind = dataset_class(name)
    (row,) = re.findall(rf"^\| \[`{name}`\].*$", TEXT, re.MULTILINE)
    assert f"(../{Path(inspect.getfile(kind)).relative_to(ROOT)})" in row
    assert f".. autoclass:: {kind.__module__}.{kind.__name__}\n" in TEXT
    assert " / ".join(map(str, getattr(kind, "split_sizes", ()))) in row
    assert all(source.licence in row for source in (*(file for group in kind.files for file in group), *kind.folders))
