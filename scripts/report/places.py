"""Places of a page that code fills: between two markers, or a sentence's `<span id="its-name">`."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Mapping, Sequence

from cmixup.errors import InputError

SPAN = re.compile(r'(?<!`)<span id="([\w-]+)">(.*?)</span>', re.DOTALL)
MARKED = re.compile(r"(<!-- (\w+):begin [^\n]*-->\n)(.*?)(<!-- \2:end -->)", re.DOTALL)
WIDTH = 120
#: Stands in a page where the records do not hold what its sentence says.
UNSUPPORTED = re.compile(r"\*\*\[([\w-]+): the records no longer support")


def page_places(page: str) -> list[str]:
    """Return the names of a page's markers and spans."""
    return [name for name, _ in SPAN.findall(page)] + [name for _, name, *_ in MARKED.findall(page)]


def splice_page(page: str, parts: Mapping[str, str]) -> str:
    """Return a page with every part in its place: between its markers, or in its span, whose text is wrapped anew.

    Raises:
        InputError: a part without a place, or a place without a part.
    """
    if wrong := sorted(set(page_places(page)) ^ set(parts)):
        raise InputError(f"every place of a page must have its part, and every part a place: not so {', '.join(wrong)}")
    page = MARKED.sub(lambda m: f"{m[1]}{parts[m[2]]}\n{m[4]}", page)
    return SPAN.sub(lambda m: _fill_span(m, parts[m[1]]), page)


def _fill_span(span: re.Match[str], text: str) -> str:
    """Return a span with its text, wrapped from where the span begins; a row of a table stays one line."""
    begin, before = f'<span id="{span[1]}">', span.string[span.string.rfind("\n", 0, span.start()) + 1 : span.start()]
    if before.startswith("|"):
        return f"{begin}{text}</span>"
    indent = re.match(r" *(?:- )?", before)
    assert indent
    column = 0 if "</span>" in before else len(before)  # a span that ends on this line may end elsewhere now
    lines = textwrap.wrap(
        begin.replace(" ", "\0") + text, WIDTH, initial_indent="\0" * column, subsequent_indent=" " * indent.end(),
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
    return "\n".join(lines)[column:].replace("\0", " ") + "</span>"


def joined_words(words: Sequence[str]) -> str:
    """Return words as a list in a sentence, "none" for no words."""
    return " and ".join([", ".join(words[:-1]), words[-1]] if len(words) > 1 else words) or "none"
