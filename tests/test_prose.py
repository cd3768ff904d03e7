"""The pages are plain English: phrases that recurred and say little are counted, and sentences are short."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
DOCS = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES = [*DOCS, ROOT / "CONTRIBUTING.md", *sorted((ROOT / "results").glob("*.md"))]
#: Phrases, with what to write in their place.
BANNED = {
    r"\bwith this page\b": "the result",
    r"\b\w+ of (?:yours|ours|theirs)\b": "your ..., our ..., their ...",
    r"\bwhat (?:came|comes) of\b": "the result of",
    r"\b(?:is|are|was|were|be) held to\b": "is compared with, must be",
    r"\bstands? (?:in|after|beside)\b": "is in, follows",
}
#: Words that may occur so many times on all pages together.
RARE = {r"\bbeside\b": 10, r", too\b": 10}
MOST_WORDS = 30  # of a sentence; numbers and what is in brackets do not count
NOT_TEXT_LINES = re.compile(r"^\s*\|.*$|^    \S.*$", re.MULTILINE)


def prose(path: Path) -> str:
    """Return the text of a page without blocks of code and what is quoted."""
    text = re.sub(r"```.*?```|<!--.*?-->|\$\$.*?\$\$", "", path.read_text(), flags=re.DOTALL)
    return re.sub(r'"[^"\n]*"|`[^`\n]*`', "x", text)


def count(pattern: str, pages: list[Path] = PAGES) -> list[str]:
    """Return where a phrase occurs."""
    return [
        f"{path.relative_to(ROOT)}: {found[0]}"
        for path in pages
        for found in re.finditer(pattern, " ".join(prose(path).split()), re.IGNORECASE)
    ]


def sentences(path: Path) -> list[str]:
    """Return the sentences of a page's paragraphs and lists."""
    text = NOT_TEXT_LINES.sub("", prose(path))
    text = re.sub(r"<[^>]+>|\[([^\]]*)\]\([^)]*\)", r"\1", text)
    blocks = re.split(r"\n\s*\n|\n(?=\s*(?:[-*#]|\d+\.) )", text)
    return [one for block in blocks for one in re.split(r"(?<=[.!?])[*_)]*\s+", " ".join(block.split())) if one]


def words(sentence: str) -> int:
    """Return the number of words with a letter, outside brackets."""
    outside = re.sub(r"\([^()]*\)|\[[^\]]*\]", "", sentence)
    return len([word for word in outside.split() if re.search("[A-Za-z]", word)])


@pytest.mark.parametrize("pattern", BANNED)
def test_a_phrase_that_says_little_is_on_no_page(pattern: str) -> None:
    assert count(pattern) == [], f"write {BANNED[pattern]}"


@pytest.mark.parametrize("pattern", RARE)
def test_a_word_is_rare(pattern: str) -> None:
    assert len(found := count(pattern)) <= RARE[pattern], found


@pytest.mark.parametrize("path", DOCS, ids=lambda path: path.name)
def test_sentences_are_short(path: Path) -> None:
    assert [one for one in sentences(path) if words(one) > MOST_WORDS] == []


def test_the_check_finds_what_it_is_for(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    long = " ".join(["word"] * (MOST_WORDS + 1))
    page.write_text(f"With this\npage a method of yours stands in a table.\n\n```\nwhat came of it\n```\n\n{long}.\n")
    text = " ".join(prose(page).split())
    assert [bool(re.search(pattern, text, re.IGNORECASE)) for pattern in BANNED] == [True, True, False, False, True]
    assert [words(one) > MOST_WORDS for one in sentences(page)] == [False, True]
    assert words("It falls (by a lot, in all of them) from -0.3 [-1, +2] to 4 %.") == 4
