"""Parts go into their places of a page, and text around them stays."""

import pytest

from cmixup.errors import InputError
from scripts.report.rendering import WIDTH, joined_words, page_places, splice_page

PAGE = """# Title

By hand, <span id="one">old
words</span>, `<span id="no-place">`.

| a | <span id="cell">x</span> |

- Item: <span id="item"></span>.

<!-- block:begin (who fills it) -->
old
<!-- block:end -->
"""


def test_parts_are_spliced_in_and_long_sentences_are_wrapped() -> None:
    parts = {"one": "new words", "cell": "y " * 80 + "y", "item": "word " * 40 + "end", "block": "| a |"}
    assert page_places(PAGE) == ["one", "cell", "item", "block"]
    page = splice_page(PAGE, parts)
    assert 'By hand, <span id="one">new words</span>, `<span id="no-place">`.' in page
    assert f'| a | <span id="cell">{parts["cell"]}</span> |' in page  # a row stays a line
    assert "<!-- block:begin (who fills it) -->\n| a |\n<!-- block:end -->" in page
    item = page.partition("- Item")[2].partition("</span>")[0]
    assert max(map(len, item.splitlines())) <= WIDTH
    assert all(line.startswith("  word") for line in item.splitlines()[1:])
    assert splice_page(page, parts) == page


@pytest.mark.parametrize("parts", [{"one": "a"}, {"one": "", "cell": "", "item": "", "block": "", "more": ""}])
def test_a_place_without_a_part_and_a_part_without_a_place_are_refused(parts: dict[str, str]) -> None:
    with pytest.raises(InputError, match="every place of a page must have its part"):
        splice_page(PAGE, parts)


def test_words_are_listed() -> None:
    assert [joined_words(words) for words in ([], ["a"], ["a", "b"], ["a", "b", "c"])] == [
        "none", "a", "a and b", "a, b and c"
    ]  # fmt: skip
