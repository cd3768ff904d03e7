"""Pages with prose: sentences that are rendered from claims, and a look at the rest for comparisons.

A sentence stands as `<span id="its-claim">...</span>`. Everything outside these, and outside blocks between markers of
scripts.render, is written by hand and states no comparison and no number.
"""

from __future__ import annotations

import itertools
import re
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from cmixup.errors import InputError
from scripts.report.claims import FILE, Verdict, read
from scripts.report.experiment import RESULTS

SPAN = re.compile(r'<span id="([\w-]+)">(.*?)</span>', re.DOTALL)
RENDERED = ("bandwidth.md", "reliability.md", "theory.md")
WIDTH = 120
BLOCK = re.compile(r"<!-- (\w+):begin .*?<!-- \1:end -->|^```.*?^```", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\([^)]*\)|`[^`]*`|<!--.*?-->", re.DOTALL)
STATES = re.compile(
    r"\d\.\d|%|±|\b(?:(?:better|worse|best|worst|lower|higher|lowest|highest|less|least|more|most|fewer|fewest|smaller"
    r"|smallest|larger|largest|closer|nearer|nearest|wider|narrower|stronger|weaker|easier|easiest|first|last|leads?|ahead"
    r"|behind|beats?|beaten|exceeds?|outperforms?|agrees?|differs?|differences?|reproduces?|reproduced|level|same as"
    r"|as good as|near|slightly|clearly|far|above|below|reached|reaches|helps|fails?|ranks?|dwarfs?|twice|half"
    r"|hardly|barely|almost|nearly|within)\b)",
    re.IGNORECASE,
)


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
    for paragraph in _paragraphs(page):
        unknown = {name for name, _ in SPAN.findall(paragraph)} - set(verdicts)
        if unknown:
            raise InputError(f"{FILE} has no claim {', '.join(sorted(unknown))}")
        put = SPAN.sub(lambda found: f'<span id="{found[1]}">{sentence(verdicts[found[1]])}</span>', paragraph)
        parts.append(_wrap(put) if SPAN.search(paragraph) else paragraph)
    return "".join(parts)


def _paragraphs(page: str) -> list[str]:
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


def stated(page: str, exceptions: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield every hand-written sentence that compares or gives a number, with the words that say so.

    Args:
        page: its text.
        exceptions: pieces of text that may stand.
    """
    for paragraph in _paragraphs(BLOCK.sub("\n", page)):
        plain = " ".join(LINK.sub(" ", SPAN.sub("\n", without(paragraph, exceptions))).split())
        for one in re.split(r"(?<=[.!?:;])\s+", plain):
            if found := sorted({word.lower() for word in STATES.findall(one)}):
                yield one, ", ".join(found)


def without(text: str, exceptions: Sequence[str]) -> str:
    """Return a text without the pieces that may stand, however their lines are broken."""
    for piece in exceptions:
        text = re.sub(r"\s+".join(map(re.escape, piece.split())), " ", text)
    return text


def notes(key: str, results: Path = RESULTS) -> list[dict[str, Any]]:
    """Return another list of the file of claims: `exceptions`, or what is `explained`."""
    found: list[dict[str, Any]] = read(results / FILE)[key]
    return found


def pages(results: Path = RESULTS) -> list[Path]:
    """Return the pages whose prose is held to the claims; `RENDERED` ones are rendered as a whole."""
    return [results.parent / "README.md", *(p for p in sorted(results.glob("*.md")) if p.name not in RENDERED)]
