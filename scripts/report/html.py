"""Pages that open from disk: Markdown as HTML, tables and pictures, in the frame html.html with everything inside."""

from __future__ import annotations

import base64
import html
import itertools
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from string import Template
from typing import Any

FRAME = Path(__file__).with_suffix(".html")


def document(title: str, body: str, filters: str = "", cells: Mapping[str, Any] | None = None) -> str:
    """Return a page.

    Args:
        title: of the page.
        body: HTML.
        filters: HTML of the choices by which blocks of the body are hidden.
        cells: what the page tells of a run's cell where the address names it.
    """
    data = json.dumps(cells or {}, separators=(",", ":")).replace("</", "<\\/")
    return Template(FRAME.read_text()).substitute(title=html.escape(title), filters=filters, body=body, cells=data)


def of_markdown(text: str, kind: str = "") -> str:
    """Return Markdown as HTML, as far as our tables use it: headings, tables, lists, bold and code; links are text."""
    parts = []
    for block in re.split(r"\n\n+", text.strip()):
        lines = block.split("\n")
        level = len(lines[0]) - len(lines[0].lstrip("#"))
        if lines[0].startswith("| "):
            head, _, *body = [[inline(cell.strip()) for cell in line.strip("|").split("|")] for line in lines]
            parts.append(table(head, body, kind))
        elif level:
            parts.append(f"<h{level}>{inline(block[level + 1 :])}</h{level}>")
        elif lines[0].startswith("- "):
            parts.append(f"<ul>{''.join(f'<li>{inline(line[2:])}</li>' for line in lines)}</ul>")
        else:
            parts.append(f"<p>{inline(block)}</p>")
    return "".join(parts)


def inline(text: str) -> str:
    """Return a line of Markdown as HTML."""
    linked = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", html.escape(text))
    return re.sub(r"`(.+?)`", r"<code>\1</code>", re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", linked))


def table(head: Sequence[str], body: Sequence[Sequence[str]], kind: str = "", methods: Sequence[str] = ()) -> str:
    """Return a table of cells in HTML; each says what it is of, for narrow screens, and a row may be of a method."""
    titles = "".join(f"<th>{cell}</th>" for cell in head)
    rows = ""
    for method, row in itertools.zip_longest(methods, body, fillvalue=""):
        cells = "".join(f'<td data-of="{of}">{cell}</td>' for of, cell in zip(head, row, strict=True))
        rows += f'<tr data-method="{method}">{cells}</tr>'
    return f'<div class="wide"><table class="{kind}"><tr>{titles}</tr>{rows}</table></div>'


def picture(title: str, png: bytes) -> str:
    """Return a picture with its title."""
    data, shown = base64.b64encode(png).decode(), html.escape(title)
    return f'<figure><img alt="{shown}" src="data:image/png;base64,{data}"><figcaption>{shown}</figcaption></figure>'
