"""Make a PDF of docs/report.md with pandoc and typst, both from wheels: `python docs/report_pdf.py outputs/report.pdf`.

Pictures are embedded. A link within the repository becomes its text, since the PDF is read without the repository.
"""

from __future__ import annotations

import itertools
import re
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "docs" / "report.md"
COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)
SPAN = re.compile(r"</?span[^>]*>")
INNER_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?:)[^)]+\)")
PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)]+)\)")
SEPARATOR = re.compile(r"^\|(?: :?-+:? \|)+$")
MOST = 40  # of the share that a column may ask for
WIDTHS = {
    "figure_bandwidth_paper.png": 72,
    "table1.png": 78,
    "first.png": 85,
}  # percent of the text's width that a picture takes where it is not all
TITLE = re.compile(r"\A# (.+)\n")
STYLE = """\
#set document(title: "{title}")
#set page(paper: "a4", margin: (x: 2cm, y: 1.9cm), numbering: "1")
#set text(size: 9.5pt, lang: "en")
#set par(justify: true, leading: 0.58em)
#show heading: set block(above: 1.2em, below: 0.65em)
#set table(inset: (x: 4pt, y: 2.6pt))
#set table(stroke: (x, y) => if y == 0 {{ (bottom: 0.7pt) }} else {{ (bottom: 0.2pt + gray) }})
#show table: set text(size: 7.3pt)
#show table: set par(justify: false, leading: 0.5em)
#show figure: set block(breakable: true)
#show figure.caption: set text(size: 8.5pt)
#show raw: set text(size: 8.2pt)
#let horizontalrule = line(length: 100%)
#show figure.where(kind: image): set figure(placement: auto)
#align(center, text(size: 17pt, weight: "bold")[{title}])
#v(-0.6em)
#align(center)[{by}]
#v(0.4em)
"""


def make_byline() -> str:
    """Return who wrote the software, and its version, of CITATION.cff."""
    lines = (ROOT / "CITATION.cff").read_text().splitlines()
    name, version = (next(x for x in lines if x.strip().startswith(key)) for key in ("- name: ", "version: "))
    return f"{name.partition(': ')[2]}, version {version.partition(': ')[2]}"


def make_typst(text: str, folder: Path) -> str:
    """Return a page of Markdown as a document of typst.

    Args:
        text: the page; its first line is the title.
        folder: where its relative paths start. Paths of pictures in the document start at the repository.
    """
    import pypandoc

    title = TITLE.match(text)
    if not title:
        raise ValueError("the report must begin with a title")
    plain = SPAN.sub("", COMMENT.sub("", text[title.end() :]))

    def rooted(picture: re.Match[str]) -> str:
        path = (folder / picture[2]).resolve().relative_to(ROOT)
        return f"![{picture[1]}](/{path}){{width={WIDTHS.get(path.name, 100)}%}}"

    plain = "\n".join(set_widths(INNER_LINK.sub(r"\1", PICTURE.sub(rooted, plain)).split("\n")))
    body = pypandoc.convert_text(plain, "typst", format="markdown", extra_args=["--wrap=none"])
    return STYLE.format(title=title[1], by=make_byline()) + body


def set_widths(lines: list[str]) -> list[str]:
    """Return lines of Markdown whose tables say how wide columns are: pandoc reads that from the number of dashes."""
    done = list(lines)
    for start, line in enumerate(lines):
        if SEPARATOR.match(line):
            rows = list(itertools.takewhile(lambda row: row.startswith("|"), lines[start + 1 :]))
            columns = zip(*(row.strip("|").split("|") for row in [lines[start - 1], *rows]), strict=True)
            done[start] = "|" + "|".join(f":{'-' * column_width(column)}" for column in columns) + "|"
    return done


def column_width(cells: Sequence[str]) -> int:
    """Return the share of the line that a column, its title first, asks for.

    It is the usual length of a cell that is not empty, or more: half of the title, or the longest word.
    """
    title, *body = (cell.strip() for cell in cells)
    lengths = sorted(len(cell) for cell in body if cell) or [0]
    word = max(len(word) for cell in cells for word in cell.split() or [""])
    return max(word, len(title) // 2, min(lengths[len(lengths) * 3 // 4], MOST))


def main(out: str) -> None:
    """Write the PDF to `out`."""
    import typst

    document = make_typst(SOURCE.read_text(), SOURCE.parent)
    target = Path(out)
    target.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        source = Path(name) / "report.typ"
        source.write_text(document.replace('image("/', f'image("{ROOT}/'))
        target.write_bytes(typst.compile(str(source), root="/"))
    sys.stdout.write(f"wrote {target}, {target.stat().st_size / 1e3:.0f} kB\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
