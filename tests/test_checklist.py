"""docs/checklist.md answers every item of two checklists, and each link leads to a file and a heading."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "checklist.md"
ROWS = [line.strip("|").split(" | ") for line in PAGE.read_text().splitlines() if line.startswith("| ")]
LINKS = re.findall(r"\]\(([^)]+)\)", PAGE.read_text())
ITEMS = [f"{module}{'abcdefg'[k]}" for module, count in enumerate((3, 5, 7, 3, 6, 3, 3, 2), 1) for k in range(count)]


def anchors(path: Path) -> set[str]:
    """Return the anchors that a forge gives the headings of a page."""
    heads = re.findall(r"^#+ (.+)$", path.read_text(), re.MULTILINE)
    return {re.sub(r"[^\w -]", "", head.lower()).replace(" ", "-") for head in heads}


def test_every_item_of_both_lists_is_answered_once():
    names = [row[0].strip() for row in ROWS if not set(row[0].strip()) <= set("-")]
    first, second = (part for part in " ".join(names).split("item")[1:])
    assert first.count("?") == 16
    assert re.findall(r"\b\d[a-g]\b", second) == ITEMS


def test_every_answer_is_one_of_four_and_says_where_or_why():
    answers = [row for row in ROWS if row[1].strip("` -") not in ("", "answer")]
    assert {row[1].strip(" `") for row in answers} == {"yes", "no", "partly", "not applicable"}
    assert all(len(row) == 3 and len(row[2].strip()) > 7 for row in answers)
    assert all("](" in row[2] or "`" in row[2] or "public" in row[2] for row in answers if "yes" in row[1])


@pytest.mark.parametrize("link", sorted(set(LINKS)))
def test_a_link_leads_to_a_file_and_a_heading(link):
    path, _, anchor = link.partition("#")
    target = (PAGE.parent / path).resolve()
    assert target.is_file()
    if anchor:
        assert anchor in anchors(target)
