"""docs/data.md has every checksum, split and missing dataset of the code, read here from the sources and configs."""

import re

import pytest

from scripts.config.compose import option_names
from scripts.config.parts import dataset_class
from scripts.records.experiment import RESULTS
from scripts.report.data_cards import PAGE, YOURS, read_fields

ROOT = RESULTS.parent
TEXT = (ROOT / PAGE).read_text()
DIGEST = re.compile(r"\b[0-9a-f]{64}\b")


def test_every_checksum_that_the_code_verifies_is_on_the_page_and_no_other() -> None:
    sources = " ".join(path.read_text() for path in (ROOT / "datasets").glob("*.py"))
    assert sorted(DIGEST.findall(TEXT)) == sorted(set(DIGEST.findall(sources)))
    for file in (file for name in option_names("dataset") for group in dataset_class(name).files for file in group):
        assert not file.sha256 or f"\n{file.sha256}  {file.path}\n" in TEXT


@pytest.mark.parametrize("name", [name for name in option_names("dataset") if name not in YOURS])
def test_a_card_has_origin_split_licence_and_citation(name: str) -> None:
    card = TEXT.partition(f"### `{name}`\n")[2].partition("\n### ")[0]
    assert all(f"- **{field}**: " in card for field in ("Origin", "Shapes", "Licence", "Citation"))
    sizes = getattr(dataset_class(name), "split_sizes", ())
    assert " / ".join(map(str, sizes)) in card
    assert f"| `{name}` |" in TEXT


def test_fields_of_a_card() -> None:
    given = "Origin: here, https://a.b/c\nand there.\ny: 1 to 2. x: three.\nLicence: MIT. Citation: Doe."
    assert dict(read_fields(given)) == {
        "Origin": "here, https://a.b/c and there.", "y": "1 to 2.", "x": "three.", "Licence": "MIT.", "Citation": "Doe."
    }  # fmt: skip
