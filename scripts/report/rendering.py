"""Rendering: the register of figures, files and parts of pages, the places of pages, and stale texts.

A figure, a file or the parts of a page are a function with a decorator of these, without arguments or with defaults.
Every file of scripts/ that has one is found, so that a new figure is one file and edits no other:

    @draws
    def figures() -> dict[str, Figure]: ...
"""

import io
import re
from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar

from cmixup.errors import InputError
from cmixup.files import write_atomically
from scripts.records.experiment import RESULTS

Figure = Any  # Matplotlib's, which is not imported: it takes a second, and tables need none
F = TypeVar("F", bound=Callable[..., Mapping[str, Any]])
FIGURES: list[Callable[..., Mapping[str, Any]]] = []
FILES: list[Callable[..., Mapping[str, str]]] = []
PARTS: list[Callable[..., Mapping[str, Mapping[str, str]]]] = []
ROOT = RESULTS.parent
ENTRY = re.compile(r"^@(?:draws|writes|fills)\b", re.MULTILINE)


def draws(function: F) -> F:
    """Register a function that returns figures by the paths of their pictures below results/."""
    FIGURES.append(function)
    return function


def writes(function: F) -> F:
    """Register a function that returns texts by the paths of their files below results/."""
    FILES.append(function)
    return function


def fills(function: F) -> F:
    """Register a function that returns texts by page and place: `{"README.md": {"study": ...}}`."""
    PARTS.append(function)
    return function


def to_png(figure: Figure) -> bytes:
    """Return a figure as the bytes of a PNG file."""
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=130, metadata={"Software": ""})
    return stream.getvalue()


def write_figures(figures: Mapping[str, Figure], results: Path = RESULTS) -> list[Path]:
    """Write figures as PNG files, given by their paths below `results`; returns the files."""
    for name, figure in figures.items():
        write_atomically(results / name, to_png(figure))
    return [results / name for name in figures]


def find_modules() -> list[str]:
    """Return the files of scripts/ that have an entry, as names of modules."""
    paths = sorted(path for path in (ROOT / "scripts").rglob("*.py") if ENTRY.search(path.read_text()))
    return [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths]


def rendered_texts(root: Path) -> dict[str, str]:
    """Return every text by path below the repository: files, and pages with their parts."""
    texts, parts = dict[str, str](), dict[str, dict[str, str]]()
    for module in find_modules():
        import_module(module)
    for make_files in FILES:
        texts |= {f"{RESULTS.name}/{path}": text for path, text in make_files().items()}
    for make_parts in PARTS:
        for page, filled in make_parts().items():
            parts.setdefault(page, {}).update(filled)
    pages = [*root.glob("*.md"), *(root / "docs").glob("*.md"), *(root / RESULTS.name).glob("*.md")]
    for page in (str(path.relative_to(root)) for path in pages):
        if page not in texts and page not in parts and (places := page_places((root / page).read_text())):
            raise InputError(f"{page}: no entry fills {', '.join(places)}")
    return texts | {page: splice_page((root / page).read_text(), filled) for page, filled in parts.items()}


def stale_texts(root: Path = ROOT) -> list[str]:
    """Return the texts below `root` that differ from a fresh rendering."""
    texts = rendered_texts(root)
    return [name for name, text in texts.items() if not (root / name).is_file() or (root / name).read_text() != text]


def render_everything() -> None:
    """Write every figure, file and page."""
    for name, text in rendered_texts(ROOT).items():
        write_atomically(ROOT / name, text)
    for function in FIGURES:
        write_figures(function())


SPAN = re.compile(r'(?<!`)<span id="([\w-]+)">(.*?)</span>', re.DOTALL)
MARKED = re.compile(r"(<!-- (\w+):begin [^\n]*-->\n)(.*?)(<!-- \2:end -->)", re.DOTALL)


def page_places(page: str) -> list[str]:
    """Return the names of a page's markers and spans."""
    return [name for name, _ in SPAN.findall(page)] + [name for _, name, *_ in MARKED.findall(page)]


def splice_page(page: str, parts: Mapping[str, str]) -> str:
    """Return a page with every part in its place, between its markers or in its span.

    A part without a place, or a place without a part, is an `InputError`.
    """
    if wrong := sorted(set(page_places(page)) ^ set(parts)):
        raise InputError(f"every place of a page must have its part, and every part a place: not so {', '.join(wrong)}")
    page = MARKED.sub(lambda m: f"{m[1]}{parts[m[2]]}\n{m[4]}", page)
    return SPAN.sub(lambda m: f'<span id="{m[1]}">{parts[m[1]]}</span>', page)
