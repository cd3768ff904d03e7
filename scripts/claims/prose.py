"""Pages with prose: the sentences in them that are rendered from claims.

A sentence stands as `<span id="its-claim">...</span>`. Everything outside these, and outside blocks between markers of
scripts.render, is written by hand and states no comparison and no number (`tests.scripts.claims.typed`).
"""

from __future__ import annotations

import itertools
import re
import textwrap
from collections.abc import Mapping
from pathlib import Path

from cmixup.errors import InputError
from scripts.claims.check import Verdict
from scripts.records.experiment import RESULTS

SPAN = re.compile(r'(?<!`)<span id="([\w-]+)">(.*?)</span>', re.DOTALL)
ROOMS = ("configs", "docs", "examples", "results", "tests")
#: Pages of results/ whose numbers no claim gives: commands write them or fill them in. A README.md is none.
RENDERED = ("bandwidth.md", "reliability.md", "theory.md", "tables/*.md", "benchmarks.md", "study/*.md")
WIDTH = 120
UNSUPPORTED = re.compile(r"\*\*\[([\w-]+): the records no longer support")
MARKED = re.compile(r"(<!-- (\w+):begin [^\n]*-->\n)(.*?)(<!-- \2:end -->)", re.DOTALL)
BLOCK = re.compile(r"<!-- (\w+):begin .*?<!-- \1:end -->|^```.*?^```", re.DOTALL | re.MULTILINE)


def claim_sentence(verdict: Verdict) -> str:
    """Return what a page prints of a claim: its sentence, or a visible line that the records do not support it."""
    if verdict.holds:
        return verdict.text
    return f"**[{verdict.claim.name}: the records no longer support this sentence; `python -m scripts.render claims`]**"


def page_places(page: str) -> list[str]:
    """Return the names of a page's markers and spans, in their order."""
    return [name for name, _ in SPAN.findall(page)] + [name for _, name, *_ in MARKED.findall(page)]


def splice_page(page: str, parts: Mapping[str, str]) -> str:
    """Return a page with every part in its place: between its markers, or in its span, whose paragraph is wrapped anew.

    Raises:
        InputError: a part without a place, or a place without a part.
    """
    if wrong := sorted(set(page_places(page)) ^ set(parts)):
        raise InputError(f"every place of a page must have its part, and every part a place: not so {', '.join(wrong)}")
    return fill_places(page, parts)


def fill_places(page: str, parts: Mapping[str, str]) -> str:
    """Return a page with these parts in their places, and all other places as they are; see `splice_page`."""
    page = MARKED.sub(lambda m: f"{m[1]}{parts[m[2]]}\n{m[4]}" if m[2] in parts else m[0], page)
    return "".join(_fill_spans(one, parts) if SPAN.search(one) else one for one in split_paragraphs(page))


def _fill_spans(paragraph: str, parts: Mapping[str, str]) -> str:
    filled = SPAN.sub(lambda found: f'<span id="{found[1]}">{parts.get(found[1], found[2])}</span>', paragraph)
    return filled if paragraph.lstrip().startswith("|") else _wrap_lines(filled)  # a table's rows stay lines


def split_paragraphs(page: str) -> list[str]:
    """Return the page in pieces: a paragraph or an item of a list each, and what lies between them."""
    inside = {i for block in BLOCK.finditer(page) for i in range(block.start(), block.end())}
    starts = [m.start() for m in re.finditer(r"^(?=\s*(?:[-*]|\d+\.) )|^[ \t]*\n", page, re.MULTILINE)]
    edges = [0, *(s for s in starts if s not in inside), len(page)]
    return [page[a:b] for a, b in itertools.pairwise(edges)]


def _wrap_lines(paragraph: str) -> str:
    blank = re.match(r"\n*", paragraph)
    assert blank
    bullet = re.match(r"[ \t]*(?:(?:[-*]|\d+\.) )?", paragraph[blank.end() :])
    assert bullet
    text = " ".join(paragraph[blank.end() + bullet.end() :].split()).replace('<span id="', "<span\0id=")
    lines = textwrap.wrap(
        text, WIDTH, initial_indent=bullet[0], subsequent_indent=" " * bullet.end(), break_long_words=False,
        break_on_hyphens=False,
    )  # fmt: skip
    tail = paragraph[len(paragraph.rstrip("\n")) :]
    return blank[0] + "\n".join(lines).replace("<span\0id=", '<span id="') + tail


def prose_pages(results: Path = RESULTS) -> list[Path]:
    """Return the Markdown files of the repository that are written by hand, whose prose is held to the claims."""
    root = results.parent
    found = [*root.glob("*.md"), *(path for room in ROOMS for path in (root / room).rglob("*.md"))]
    return sorted(p for p in found if p.name == "README.md" or not any(p.match(f"results/{one}") for one in RENDERED))
