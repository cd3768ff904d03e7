"""Make a PDF of docs/report.md with pandoc and typst, both from wheels: `python docs/report_pdf.py outputs/report.pdf`.

Pictures are embedded. A link within the repository becomes its text, since the PDF is read without the repository.
"""

from __future__ import annotations

import itertools
import re
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "docs" / "report.md"
COMMENT = re.compile(r"<!--.*?-->\n?", re.DOTALL)
SPAN = re.compile(r"</?span[^>]*>")
INNER_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((?!https?:)[^)]+\)")
PICTURE = re.compile(r"!\[([^\]]*)\]\(([^)]+)\)")
SEPARATOR = re.compile(r"^\|(?: :?-+:? \|)+$")
TALL = {"front.png": 55}  # percent of the text's width that a picture takes where it is not all
TITLE = re.compile(r"\A# (.+)\n")
STYLE = """\
#set document(title: "{title}")
#set page(paper: "a4", margin: (x: 2.1cm, y: 2.2cm), numbering: "1")
#set text(size: 10pt, lang: "en")
#set par(justify: true)
#show heading: set block(above: 1.3em, below: 0.7em)
#set table(inset: 4pt, stroke: (x, y) => if y == 0 {{ (bottom: 0.7pt) }} else {{ (bottom: 0.2pt + gray) }})
#show table: set text(size: 7.5pt)
#show table: set par(justify: false)
#show figure: set block(breakable: true)
#show raw: set text(size: 8.5pt)
#let horizontalrule = line(length: 100%)
#align(center, text(size: 17pt, weight: "bold")[{title}])
"""


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
        return f"![{picture[1]}](/{path}){{width={TALL.get(path.name, 100)}%}}"

    plain = "\n".join(set_widths(INNER_LINK.sub(r"\1", PICTURE.sub(rooted, plain)).split("\n")))
    body = pypandoc.convert_text(plain, "typst", format="markdown", extra_args=["--wrap=none"])
    return STYLE.format(title=title[1]) + body


def set_widths(lines: list[str]) -> list[str]:
    """Return lines of Markdown whose tables say how wide columns are: pandoc reads that from the number of dashes."""
    done = list(lines)
    for start, line in enumerate(lines):
        if SEPARATOR.match(line):
            rows = list(itertools.takewhile(lambda row: row.startswith("|"), lines[start + 1 :]))
            longest = [
                max(len(cell) for cell in column)
                for column in zip(*(row.strip("|").split("|") for row in [lines[start - 1], *rows]), strict=True)
            ]
            done[start] = "|" + "|".join(f":{'-' * max(8, min(size, 45))}" for size in longest) + "|"
    return done


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
