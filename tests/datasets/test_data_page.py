"""docs/data.md has every licence and split of the code, read here from the classes of datasets/."""

import re

import pytest

from scripts.config.parts import dataset_class
from scripts.records.experiment import RESULTS

ROOT = RESULTS.parent
TEXT = (ROOT / "docs" / "data.md").read_text()
NAMES = re.findall(r"^### `(\w+)`$", TEXT, re.MULTILINE)


@pytest.mark.parametrize("name", NAMES)
def test_a_card_has_origin_split_and_citation_and_a_row_its_licence(name: str) -> None:
    kind = dataset_class(name)
    card = TEXT.partition(f"### `{name}`\n")[2].partition("\n### ")[0]
    assert all(f"- **{field}**: " in card for field in ("Origin", "Shapes", "Citation"))
    assert " / ".join(map(str, getattr(kind, "split_sizes", ()))) in card
    row = TEXT.partition(f"| `{name}` |")[2].partition("\n")[0]
    assert all(source.licence in row for source in (*(file for group in kind.files for file in group), *kind.folders))
