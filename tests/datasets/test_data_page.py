"""docs/data.md has every checksum, licence and split of the code, read here from the classes of datasets/."""

import re

import pytest

from scripts.config.parts import dataset_class
from scripts.records.experiment import RESULTS

ROOT = RESULTS.parent
TEXT = (ROOT / "docs" / "data.md").read_text()
DIGEST = re.compile(r"\b[0-9a-f]{64}\b")
NAMES = re.findall(r"^### `(\w+)`$", TEXT, re.MULTILINE)


def test_checksums_are_those_that_the_code_verifies() -> None:
    files = [file for name in NAMES for group in dataset_class(name).files for file in group if file.sha256]
    assert sorted(DIGEST.findall(TEXT)) == sorted({file.sha256 for file in files})
    assert all(f"\n{file.sha256}  {file.path}\n" in TEXT for file in files)


@pytest.mark.parametrize("name", NAMES)
def test_a_card_has_origin_split_licence_and_citation(name: str) -> None:
    kind = dataset_class(name)
    card = TEXT.partition(f"### `{name}`\n")[2].partition("\n### ")[0]
    assert all(f"- **{field}**: " in card for field in ("Origin", "Shapes", "Licence", "Citation"))
    assert " / ".join(map(str, getattr(kind, "split_sizes", ()))) in card
    row = TEXT.partition(f"| `{name}` |")[2].partition("\n")[0]
    assert all(source.licence in row for source in (*(file for group in kind.files for file in group), *kind.folders))
