"""Pages with prose: the sentences in them that are rendered from claims.

A sentence stands as `<span id="its-claim">...</span>`. Everything outside these, and outside blocks between markers of
scripts.render, is written by hand and states no comparison and no number (`scripts.claims.typed`).
"""

from __future__ import annotations

import itertools
import re
import textwrap
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from cmixup.errors import InputError
from scripts.claims.check import FILE, Verdict, read
from scripts.records.experiment import RESULTS

SPAN = re.compile(r'(?<!`)<span id="([\w-]+)">(.*?)</span>', re.DOTALL)
ROOMS = ("configs", "docs", "examples", "results", "tests")
#: Pages of results/ that commands write as a whole; a README.md is none.
RENDERED = ("bandwidth.md", "reliability.md", "theory.md", "tables/*.md", "benchmarks/*.md", "study/*.md")
WIDTH = 120
BLOCK = re.compile(r"<!-- (\w+):begin .*?<!-- \1:end -->|^```.*?^```", re.DOTALL | re.MULTILINE)


def sentence(verdict: Verdict) -> str:
    """Return what a page prints of a claim: its sentence, or a visible line that the records do not support it."""
    if verdict.holds:
        return verdict.text
    return f"**[{verdict.claim.name}: the records no longer support this sentence; `python -m scripts.claims`]**"


def fill(page: str, verdicts: Mapping[str, Verdict]) -> str:
    """Return a page with every claimed sentence as it is now; paragraphs that hold one are wrapped anew.

    Raises:
        InputError: the page has a sentence of a claim that there is not.
    """
    parts = []
    for paragraph in paragraphs(page):
        unknown = {name for name, _ in SPAN.findall(paragraph)} - set(verdicts)
        if unknown:
            raise InputError(f"{FILE} has no claim {', '.join(sorted(unknown))}")
        put = SPAN.sub(lambda found: f'<span id="{found[1]}">{sentence(verdicts[found[1]])}</span>', paragraph)
        parts.append(_wrap(put) if SPAN.search(paragraph) else paragraph)
    return "".join(parts)


def paragraphs(page: str) -> list[str]:
    """Return the page in pieces: a paragraph or an item of a list each, and what lies between them."""
    inside = {i for block in BLOCK.finditer(page) for i in range(block.start(), block.end())}
    starts = [m.start() for m in re.finditer(r"^(?=\s*(?:[-*]|\d+\.) )|^[ \t]*\n", page, re.MULTILINE)]
    edges = [0, *(s for s in starts if s not in inside), len(page)]
    return [page[a:b] for a, b in itertools.pairwise(edges)]


def _wrap(paragraph: str) -> str:
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


def notes(key: str, results: Path = RESULTS) -> list[dict[str, Any]]:
    """Return another list of the file of claims: `exceptions`, or what is `explained`."""
    found: list[dict[str, Any]] = read(results / FILE)[key]
    return found


def pages(results: Path = RESULTS) -> list[Path]:
    """Return the Markdown files of the repository that are written by hand, whose prose is held to the claims."""
    root = results.parent
    found = [*root.glob("*.md"), *(path for room in ROOMS for path in (root / room).rglob("*.md"))]
    return sorted(p for p in found if p.name == "README.md" or not any(p.match(f"results/{one}") for one in RENDERED))
