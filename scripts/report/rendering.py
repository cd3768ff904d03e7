"""Rendering: run every entry of the register, write what they make, and say what is stale."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path

from matplotlib.figure import Figure

from cmixup.errors import InputError
from cmixup.files import write_atomically
from scripts.records.experiment import RESULTS
from scripts.records.reads import read_once
from scripts.records.register import ENTRIES, FIGURES, FILES, PARTS
from scripts.report.figures import write_figures
from scripts.report.places import UNSUPPORTED, page_places, splice_page

ROOT = RESULTS.parent
ENTRY = re.compile(r"^@(?:draws|writes|fills|sentence)\b", re.MULTILINE)


@dataclass
class Rendered:
    """What a rendering made.

    Attributes:
        figures: pictures by path below results/.
        files: texts by path below the repository.
        parts: texts by page, a path below the repository, and place.
    """

    figures: dict[str, Figure] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    parts: dict[str, dict[str, str]] = field(default_factory=dict)


def find_modules() -> list[str]:
    """Return the files of scripts/ that have an entry, as names of modules."""
    paths = sorted(path for path in (ROOT / "scripts").rglob("*.py") if ENTRY.search(path.read_text()))
    return [".".join(path.relative_to(ROOT).with_suffix("").parts) for path in paths]


def run_entries(*kinds: str) -> Rendered:
    """Return what all entries of some kinds make."""
    made = Rendered()
    with read_once():
        for module in find_modules():
            import_module(module)
            for entry in (entry for entry in ENTRIES.get(module, []) if entry.kind in kinds):
                result = entry.make()
                if entry.kind == FIGURES:
                    made.figures |= result
                elif entry.kind == FILES:
                    made.files |= {f"{RESULTS.name}/{path}": text for path, text in result.items()}
                else:
                    for page, parts in result.items():
                        made.parts.setdefault(page, {}).update(parts)
    return made


def page_texts(made: Rendered, root: Path) -> dict[str, str]:
    """Return every text that a rendering gives, by path below the repository: files, and pages with their parts.

    Raises:
        InputError: a place of a page has no part, or a part has no place.
    """
    pages = [*root.glob("*.md"), *(root / "docs").glob("*.md"), *(root / RESULTS.name).glob("*.md")]
    for page in (str(path.relative_to(root)) for path in pages):
        if page not in made.files and page not in made.parts and (places := page_places((root / page).read_text())):
            raise InputError(f"{page}: no entry fills {', '.join(places)}")
    return made.files | {page: splice_page((root / page).read_text(), parts) for page, parts in made.parts.items()}


def stale_texts(root: Path = ROOT) -> list[str]:
    """Return which texts below `root` are not what the entries render, then the sentences that no longer hold."""
    texts = page_texts(run_entries(FILES, PARTS), root)
    stale = [name for name, text in texts.items() if not (root / name).is_file() or (root / name).read_text() != text]
    return stale + [f"sentence {name}" for text in texts.values() for name in UNSUPPORTED.findall(text)]


def render_everything() -> list[str]:
    """Write every figure, file and page; return the sentences that no longer hold.

    Raises:
        InputError: a place of a page has no part, or a part has no place.
    """
    made = run_entries(FIGURES, FILES, PARTS)
    texts = page_texts(made, ROOT)
    for name, text in texts.items():
        write_atomically(ROOT / name, text)
    write_figures(made.figures)
    return [name for text in texts.values() for name in UNSUPPORTED.findall(text)]
